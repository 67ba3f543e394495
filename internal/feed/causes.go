package feed

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"time"

	"github.com/cellway/cellway"
)

// causeEvery is how often the log is told at most of one cause that comes and goes
// with others while a source fails.
const causeEvery = time.Minute

// causes are those for which a source has failed since it was last well, each with
// when the log was told of it. Errors differ in what says nothing about the
// cause, such as ports, so they are not compared as they are.
type causes struct {
	now  string
	told map[string]time.Time
}

// failed takes in that the source fails for that cause, and reports whether the
// log is to be told: it has just begun, or fails for another reason than before.
func (c *causes) failed(now time.Time, cause string) (tell bool) {
	at, known := c.told[cause]
	tell = cause != c.now && (!known || now.Sub(at) >= causeEvery)
	if tell {
		if c.told == nil {
			c.told = map[string]time.Time{}
		}
		c.now, c.told[cause] = cause, now
	}
	return tell
}

// over takes in that the source is well, and reports whether it had failed.
func (c *causes) over() (tell bool) {
	tell = c.now != ""
	*c = causes{}
	return tell
}

// causeOf returns what kind of failure err is.
func causeOf(err error) string {
	if a, ok := errors.AsType[*answerError](err); ok && !errors.Is(err, errGateway) {
		return a.status
	}
	if reason, ok := reasonOf(err); ok {
		return string(reason)
	}
	switch {
	case errors.Is(err, ErrCut):
		return "cut"
	case errors.Is(err, cellway.ErrNotReady):
		return "none"
	case errors.Is(outOfReach(err), ErrUnreachable):
		return "unreachable"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "certificate"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "certificate"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Op // such as an alert of TLS from the other side
	}
	return "other"
}
