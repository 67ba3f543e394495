package engine

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// unwelcomeEvery is how often the log is told at most that a cell refuses this
// side's certificate for the same reason.
const unwelcomeEvery = time.Minute

// unwelcome remembers that a cell refuses the certificate that it is shown, or
// that it is shown none.
type unwelcome struct {
	on atomic.Bool // not as in a new one

	mu   sync.Mutex
	said string    // the reason that the log was told of last
	at   time.Time // when
}

// refused takes in that the cell refuses for that reason, and reports whether the
// log is to be told.
func (u *unwelcome) refused(now time.Time, reason string) (tell bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.on.Store(true)
	if reason == u.said && now.Sub(u.at) < unwelcomeEvery {
		return false
	}
	u.said, u.at = reason, now
	return true
}

// over takes in that the cell has answered, and reports whether that is news.
func (u *unwelcome) over() (tell bool) {
	if !u.on.Load() {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	tell = u.said != ""
	u.said = ""
	u.on.Store(false)
	return tell
}

// certificateAlerts are the alerts by which a server ends a handshake for its
// client's certificate (RFC 8446, section 6.2). Package tls has no values for
// them.
var certificateAlerts = []string{
	"tls: bad certificate", "tls: unsupported certificate", "tls: revoked certificate", "tls: expired certificate",
	"tls: unknown certificate", "tls: unknown certificate authority", "tls: certificate required",
}

// certificateAlert returns such an alert, if err is one from the other side.
func certificateAlert(err error) (reason string, ok bool) {
	remote, ok := errors.AsType[*net.OpError](err)
	if !ok || remote.Op != "remote error" || remote.Err == nil {
		return "", false
	}
	reason = remote.Err.Error()
	if slices.Contains(certificateAlerts, reason) {
		return strings.TrimPrefix(reason, "tls: "), true
	}
	return "", false
}

// refusesCertificate reports whether err is such an alert.
func refusesCertificate(err error) bool {
	_, ok := certificateAlert(err)
	return ok
}

// unshaken returns err as one of a connection that did not come about, if that is
// what it says of a connection to e that is new and has brought nothing yet.
//
// In TLS 1.3 a client has ended its handshake before the server has looked at
// its certificate, and may have sent a request by then. If that one is not good
// enough, the server says so in place of an answer. It reads no request over a
// handshake that has failed, and is asked for no certificate later: so nothing
// ran, whatever was sent. If nothing was, by the time that the connection had
// ended, the reason may be lost.
func (e *endpoint) unshaken(err error, nothingSent bool) error {
	if e.scheme != "https" {
		return err
	}
	reason, ok := certificateAlert(err)
	switch {
	case ok:
		e.unwelcome(reason)
	case !nothingSent && !isUnestablished(err):
		return err
	}
	return &connectError{e.name, err}
}

// lastWord returns what the other side has said last over c, if that was to refuse a
// certificate and err says only that c was closed: whoever has read it has closed
// c, and so a request was not written that was to be at the same time.
func lastWord(c *tls.Conn, err error) error {
	if c == nil || !errors.Is(err, net.ErrClosed) {
		return err
	}
	_, said := c.Read(make([]byte, 1)) // c is closed, so it waits for nothing
	if _, ok := certificateAlert(said); ok {
		return said
	}
	return err
}

// isUnestablished reports whether a connection of HTTP/2 had ended before a request
// was sent over it: net/http says that there has been none. It has no value for
// the error.
func isUnestablished(err error) bool {
	return err != nil && strings.Contains(err.Error(), "http2: client conn could not be established")
}

// unwelcome tells the log that the cell refuses the certificate that e was shown.
func (e *endpoint) unwelcome(reason string) {
	if p := e.pool; p.unwelcome.refused(time.Now(), reason) {
		noun := e.cfg.Noun
		p.all.cfg.Log.Error(noun+" ends the TLS handshake for the certificate that it was shown, or was not; nothing ran", noun, p.id, "endpoint", e.name,
			"alert", reason, "shown", e.cfg.TLS.ClientCertificate != nil, "mend", noun+"-cert and "+noun+"-key: a certificate for TLS clients by an authority that the "+noun+" trusts")
	}
}
