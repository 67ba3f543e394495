package gateway

import (
	"crypto/tls"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/cellway/cellway/guard"
	"github.com/cellway/cellway/internal/front"
)

// Bounds of what the log is told of requests that the guard refuses.
const (
	strangersEvery = time.Minute // one sender and reason is told of at most so often
	mostStrangers  = 8           // senders and reasons, in that time
	mostNames      = 4           // of a certificate, in a line
)

// strangers are those whose requests the guard has refused lately, as far as the
// log was told. Anybody may send such requests, so there is a bound to it.
type strangers struct {
	mu    sync.Mutex
	since time.Time
	told  map[string]bool
	more  uint64 // refused since then, and not told of
}

// refused takes in a refusal, and reports whether the log is to be told of it, and
// how many it was not told of since it was last.
func (s *strangers) refused(now time.Time, who string) (untold uint64, tell bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told == nil || now.Sub(s.since) >= strangersEvery {
		s.since, s.told = now, map[string]bool{}
	}
	if s.told[who] || len(s.told) == mostStrangers {
		s.more++
		return 0, false
	}
	s.told[who] = true
	untold, s.more = s.more, 0
	return untold, true
}

// tellOfRefusal tells the log whom the guard has refused, and why. state is that of
// TLS, or nil.
func (x *exchange) tellOfRefusal(state *tls.ConnectionState) {
	gw := x.gw
	names := namesOf(state)
	from := x.in.Peer().String()
	by := from
	if len(names) > 0 {
		by = strings.Join(names, ",")
	}
	untold, tell := gw.strangers.refused(x.start, string(x.verdict.Refused)+" "+by)
	if !tell {
		return
	}
	said := ""
	if v := x.fields.Values(guard.CellHeader); len(v) > 0 {
		said = front.Clip(v[0])
	}
	args := []any{"reason", string(x.verdict.Refused), "peer", from, "certificate", names, "for_cell", said, "refused_meanwhile", untold}
	if x.verdict.Refused == guard.NotRouted {
		args = append(args, "why", gw.whyNoRouter(x, state, names))
	}
	gw.log.Warn("a request is refused by the guard; it did not run", args...)
}

// whyNoRouter says why who has sent a request is believed to be no router.
func (gw *Gateway) whyNoRouter(x *exchange, state *tls.ConnectionState, names []string) string {
	cfg := &gw.cfg
	var why []string
	if len(x.fields.Values(guard.CellHeader)) == 0 {
		return "it has no " + guard.CellHeader + ", which routers set: it came past them"
	}
	if len(cfg.Routers) > 0 {
		why = append(why, "its address is in none of the networks of routers")
	}
	switch {
	case len(cfg.RouterNames) == 0:
	case state == nil:
		why = append(why, "it came in cleartext, so nothing says a name of router-names")
	case len(state.PeerCertificates) == 0:
		why = append(why, "it showed no certificate; router-names are looked for in one")
	case len(state.VerifiedChains) == 0:
		why = append(why, "its certificate was not verified: client-ca must hold the authority that has signed it")
	case len(names) == 0:
		why = append(why, "its certificate has neither a DNS name nor a URI in its subjectAltName")
	default:
		why = append(why, fmt.Sprintf("no name of its certificate (%s) is one of router-names (%s), letter for letter", strings.Join(names, ", "), short(cfg.RouterNames)))
	}
	return strings.Join(why, "; ")
}

// namesOf returns the names that a guard would look for, of the certificate that
// was shown.
func namesOf(state *tls.ConnectionState) (names []string) {
	if state == nil || len(state.PeerCertificates) == 0 {
		return nil
	}
	leaf := state.PeerCertificates[0]
	for _, n := range leaf.DNSNames {
		names = append(names, front.Clip(n))
	}
	for _, u := range leaf.URIs {
		names = append(names, front.Clip(u.String()))
	}
	return names[:min(len(names), mostNames)]
}

// short lists the first ones of names.
func short(names []string) string {
	if n := len(names); n > mostNames {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), n-mostNames)
	}
	return strings.Join(names, ", ")
}
