package serving

import (
	"flag"
	"log/slog"
	"net"
	"time"

	"github.com/cellway/cellway/internal/engine"
)

// Settings are those that routers and gateways have in common. [Settings.Declare]
// gives them their defaults; listen, admin, name and what has its own words in
// either program is declared there.
type Settings struct {
	Check, Version bool

	Listen, ListenTLS Words // addresses
	TLSCerts, TLSKeys Words // files
	TLSMin            string
	Admin             string

	DrainWait, DrainTimeout, DrainSpread time.Duration

	HTTP1, HTTP2                           string
	Loops                                  int
	MaxConnections, MaxInFlight, MaxFields int
	MaxHead, MaxBody                       Size
	HeadTimeout, IdleTimeout               time.Duration
	HandshakeTimeout                       time.Duration
	NoH2C                                  bool
	Name                                   string
	ExplainHeaders                         bool

	ClientBody, StreamIdle                                    time.Duration
	BreakerConnects, BreakerTimeouts                          int
	BreakerBackoff, BreakerMaxBackoff                         time.Duration
	ServerCA, ServerCert, ServerKey, ServerPeer, ServerSuffix string // cell-ca, or worker-ca, and so on

	AccessLog       string
	AccessLogSample Share
	LogFormat       string
	LogLevel        slog.Level

	names Names
}

// Names are the words in which a program speaks of itself and its neighbours.
type Names struct {
	Program string // router
	Clients string // who sends it requests: clients
	Server  string // one of those that it sends them to: cell
}

// Declare declares the settings whose words are the same in all programs, but for
// names.
func (s *Settings) Declare(fs *flag.FlagSet, names Names) {
	s.names = names
	second, clients, server := time.Second, names.Clients, names.Server
	fs.String("config", "", "`file` of settings")
	fs.BoolVar(&s.Version, "version", false, "say which build this is, and exit")

	fs.Var(&s.Listen, "listen", "`address` for "+clients+" in cleartext, HTTP/1.1 and HTTP/2; may be given more than once; empty: none")
	fs.Var(&s.ListenTLS, "listen-tls", "`address` for "+clients+" over TLS; may be given more than once")
	fs.Var(&s.TLSCerts, "tls-cert", "`file` of a certificate, PEM; may be given more than once, and the client's server name chooses; read again when it changes")
	fs.Var(&s.TLSKeys, "tls-key", "`file` of the key of a tls-cert, PEM; as many, in the same order")
	fs.StringVar(&s.TLSMin, "tls-min", "1.2", "lowest `version` of TLS that "+clients+" may use: 1.2 or 1.3")

	fs.DurationVar(&s.DrainTimeout, "drain-timeout", 60*second, "after drain-wait: how long what is under way may take to end")
	fs.DurationVar(&s.DrainSpread, "drain-spread", 5*second, "after drain-wait: over how long tunnels are ended, so that not all clients come back at once")

	fs.StringVar(&s.HTTP1, "http1", "engine", "`server` of HTTP/1.1 and 1.0: engine, the "+names.Program+"'s own, or net/http, Go's")
	fs.StringVar(&s.HTTP2, "http2", "engine", "`server` of HTTP/2: engine or net/http; with http1 net/http it is net/http in any case")
	fs.IntVar(&s.Loops, "loops", 0, "event loops of the engine, on Linux and for connections in cleartext; 0: one for each core; -1: none, so that each connection has a goroutine")
	fs.IntVar(&s.MaxInFlight, "max-in-flight", 0, "requests at a time, tunnels excepted; more are refused; 0: what the descriptor limit allows, at most 16384")
	s.MaxHead = 64 << 10
	fs.Var(&s.MaxHead, "max-head", "`bytes` of a request's head")
	fs.IntVar(&s.MaxFields, "max-fields", 256, "fields in a request's head")
	fs.Var(&s.MaxBody, "max-body", "`bytes` of a request's body; 0: no limit")
	fs.DurationVar(&s.IdleTimeout, "idle-timeout", 75*second, "how long a connection may be silent between requests")
	fs.DurationVar(&s.HandshakeTimeout, "handshake-timeout", 10*second, "how long a TLS handshake may take")
	fs.BoolVar(&s.NoH2C, "no-h2c", false, "refuse HTTP/2 in cleartext")

	fs.DurationVar(&s.ClientBody, "client-body-timeout", 30*second, "how long a client may be silent in the middle of a body")
	fs.DurationVar(&s.StreamIdle, "stream-idle-timeout", 10*time.Minute, "how long an answer or a tunnel may be silent")
	fs.IntVar(&s.BreakerConnects, "breaker-connects", 5, "failed connects in a row that open a "+server+"'s breaker")
	fs.IntVar(&s.BreakerTimeouts, "breaker-timeouts", 4, "late answers, of at least two tenants, that open a "+server+"'s breaker")
	fs.DurationVar(&s.BreakerBackoff, "breaker-backoff", 500*time.Millisecond, "how long a breaker is open at first")
	fs.DurationVar(&s.BreakerMaxBackoff, "breaker-max-backoff", 15*second, "how long a breaker is open at most")
	fs.StringVar(&s.ServerCA, server+"-ca", "", "`file` of the authorities of "+server+"s' certificates, PEM; empty: the system's; read again when it changes")
	fs.StringVar(&s.ServerCert, server+"-cert", "", "`file` of this "+names.Program+"'s certificate for "+server+"s, PEM; read again when it changes")
	fs.StringVar(&s.ServerKey, server+"-key", "", "`file` of the key of "+server+"-cert, PEM")
	fs.StringVar(&s.ServerPeer, server+"-peer", server, "what `name` a "+server+"'s certificate must hold: "+server+" (its id), host, or either")
	fs.StringVar(&s.ServerSuffix, server+"-peer-suffix", "", "`domain` that follows the "+server+"'s id in its certificate")

	fs.StringVar(&s.AccessLog, "access-log", "", "`file` of the access log, one JSON object a line; - is standard output; empty: none; opened again on SIGHUP")
	s.AccessLogSample = 1
	fs.Var(&s.AccessLogSample, "access-log-sample", "`share`, 0 to 1, of the requests that went well that are logged; others always are")
	fs.StringVar(&s.LogFormat, "log-format", "auto", "json, text, or auto: text on a terminal and otherwise json")
	fs.TextVar(&s.LogLevel, "log-level", slog.LevelInfo, "debug, info, warn or error")
}

// Validate tells faults of each setting that can't be so.
func (s *Settings) Validate(faults *Faults) {
	if len(s.Listen.All)+len(s.ListenTLS.All) == 0 {
		faults.Bad("listen", "neither listen nor listen-tls has an address")
	}
	s.eachAddress(func(key, addr string) {
		if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
			faults.Bad(key, "%q is not host:port or :port", addr)
		}
	})
	if certs, keys := len(s.TLSCerts.All), len(s.TLSKeys.All); certs != keys {
		faults.Bad("tls-key", "%d keys for %d certificates", keys, certs)
	}
	if len(s.ListenTLS.All) > 0 && len(s.TLSCerts.All) == 0 {
		faults.Bad("tls-cert", "listen-tls needs a certificate")
	}
	for _, set := range [...]struct{ key, server string }{{"http1", s.HTTP1}, {"http2", s.HTTP2}} {
		if set.server != "engine" && set.server != "net/http" {
			faults.Bad(set.key, "%q is neither engine nor net/http", set.server)
		}
	}
	if s.TLSMin != "1.2" && s.TLSMin != "1.3" {
		faults.Bad("tls-min", "%q is neither 1.2 nor 1.3", s.TLSMin)
	}
	server := s.names.Server
	faults.NotAPair(server, s.ServerCert, s.ServerKey)
	if _, ok := s.peer(); !ok {
		faults.Bad(server+"-peer", "%q is not %s, host or either", s.ServerPeer, server)
	}
	faults.Below(0, map[string]int{"max-connections": s.MaxConnections, "max-in-flight": s.MaxInFlight})
	faults.Below(1, map[string]int{"max-fields": s.MaxFields, "breaker-connects": s.BreakerConnects, "breaker-timeouts": s.BreakerTimeouts})
	faults.Negative(map[string]time.Duration{"drain-wait": s.DrainWait, "drain-timeout": s.DrainTimeout, "drain-spread": s.DrainSpread})
	faults.NotPositive(map[string]time.Duration{"head-timeout": s.HeadTimeout, "idle-timeout": s.IdleTimeout, "handshake-timeout": s.HandshakeTimeout,
		"client-body-timeout": s.ClientBody, "stream-idle-timeout": s.StreamIdle, "breaker-backoff": s.BreakerBackoff, "breaker-max-backoff": s.BreakerMaxBackoff})
	if s.BreakerMaxBackoff < s.BreakerBackoff {
		faults.Bad("breaker-max-backoff", "%v is below breaker-backoff, %v", s.BreakerMaxBackoff, s.BreakerBackoff)
	}
}

// eachAddress calls f for each address to listen at, with its setting.
func (s *Settings) eachAddress(f func(key, addr string)) {
	for _, addr := range s.Listen.All {
		f("listen", addr)
	}
	for _, addr := range s.ListenTLS.All {
		f("listen-tls", addr)
	}
	f("admin", s.Admin)
}

// Resolve tells faults of each address that can't be listened at on this machine.
func (s *Settings) Resolve(faults *Faults) {
	s.eachAddress(func(key, addr string) {
		_, err := net.ResolveTCPAddr("tcp", addr)
		faults.Note(key, err)
	})
}

// peer is whose name the certificate of a server must hold.
func (s *Settings) peer() (name engine.PeerName, ok bool) {
	switch s.ServerPeer {
	case s.names.Server:
		return engine.PeerIsCell, true
	case "host":
		return engine.PeerIsHost, true
	case "either":
		return engine.PeerIsEither, true
	}
	return 0, false
}

// Breaker is that of each server.
func (s *Settings) Breaker() engine.Breaker {
	return engine.Breaker{Connects: s.BreakerConnects, Timeouts: s.BreakerTimeouts, Backoff: s.BreakerBackoff, MaxBackoff: s.BreakerMaxBackoff}
}

// OrNone turns a setting in which 0 means none into a field in which 0 means the
// default.
func OrNone[T int | time.Duration | float64](n T) T {
	if n == 0 {
		return -1
	}
	return n
}
