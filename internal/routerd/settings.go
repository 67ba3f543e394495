package routerd

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/feed"
	"github.com/cellway/cellway/internal/serving"
)

// A settings value is what flags, environment and file say.
type settings struct {
	check, version bool

	fleet    string
	sources  serving.Words
	token    string
	sourceCA string
	sourceCert,
	sourceKey string
	keyring   string
	stateDir  string
	routerID  string
	pullEvery time.Duration

	listen, listenTLS serving.Words
	tlsCerts, tlsKeys serving.Words
	tlsMin            string
	http1             string
	loops             int
	admin             string

	drainWait, drainTimeout, drainSpread, grace time.Duration

	maxConnections, maxInFlight, maxFields            int
	maxHead, maxBody                                  serving.Size
	headTimeout, idleTimeout, handshakeTimeout        time.Duration
	noH2C                                             bool
	trusted                                           serving.Prefixes
	name                                              string
	explainHeaders                                    bool
	traceSampled                                      serving.Share
	cellInFlight, cellPending, cellTunnels, cellIdle  int
	cellAttempts, breakerConnects, breakerTimeouts    int
	cellQueueWait, cellConnect, cellFirstByte         time.Duration
	clientBody, streamIdle, requestTimeout            time.Duration
	breakerBackoff, breakerMaxBackoff                 time.Duration
	cellCA, cellCert, cellKey, cellPeer, cellPeerName string

	accessLog       string
	accessLogSample serving.Share
	logFormat       string
	logLevel        slog.Level
}

// flags declares all settings. The order is that of the example file.
func (s *settings) flags(fs *flag.FlagSet) {
	second := time.Second
	fs.String("config", "", "`file` of settings")
	fs.BoolVar(&s.check, "check", false, "read settings, keys, certificates, state folder and the place of the access log, look for a map at each source, say what is wrong, and exit")
	fs.BoolVar(&s.version, "version", false, "say which build this is, and exit")

	fs.StringVar(&s.fleet, "fleet", "", "`name` of the fleet; maps of another one are refused")
	fs.Var(&s.sources, "source", "where maps come from: `URL` of a control plane, or a folder or file; may be given more than once, and all are followed")
	fs.StringVar(&s.token, "source-token", "", "`file` of the token for control planes; read again each time")
	fs.StringVar(&s.sourceCA, "source-ca", "", "`file` of the authorities of control planes' certificates, PEM; empty: the system's")
	fs.StringVar(&s.sourceCert, "source-cert", "", "`file` of this router's certificate for control planes, PEM")
	fs.StringVar(&s.sourceKey, "source-key", "", "`file` of the key of source-cert, PEM")
	fs.StringVar(&s.keyring, "keyring", "/etc/cellway/keyring", "`file` of the keys whose maps are accepted; read again when it changes")
	fs.StringVar(&s.stateDir, "state-dir", "/var/lib/cellway-router", "`folder` of the last known good maps; must exist, and belong to this router alone")
	fs.StringVar(&s.routerID, "router-id", "", "`name` of this router in reports; empty: one that is made once and kept in the state folder")
	fs.DurationVar(&s.pullEvery, "pull-every", 10*time.Minute, "how often everything is pulled again, changed or not")

	s.listen.All = []string{":8080"}
	fs.Var(&s.listen, "listen", "`address` for clients in cleartext, HTTP/1.1 and HTTP/2; may be given more than once; empty: none")
	fs.Var(&s.listenTLS, "listen-tls", "`address` for clients over TLS; may be given more than once")
	fs.Var(&s.tlsCerts, "tls-cert", "`file` of a certificate, PEM; may be given more than once, and the client's server name chooses; read again when it changes")
	fs.Var(&s.tlsKeys, "tls-key", "`file` of the key of a tls-cert, PEM; as many, in the same order")
	fs.StringVar(&s.tlsMin, "tls-min", "1.2", "lowest `version` of TLS that clients may use: 1.2 or 1.3")
	fs.StringVar(&s.admin, "admin", "127.0.0.1:9090", "`address` for /metrics, /livez, /readyz, /map and /explain; keep it away from clients")

	fs.DurationVar(&s.drainWait, "drain-wait", 5*second, "after a signal to stop: how long to serve on while readiness fails, so that load balancers take notice")
	fs.DurationVar(&s.drainTimeout, "drain-timeout", 60*second, "after drain-wait: how long what is under way may take to end")
	fs.DurationVar(&s.drainSpread, "drain-spread", 5*second, "after drain-wait: over how long tunnels are ended, so that not all clients come back at once")
	fs.DurationVar(&s.grace, "grace", 10*second, "how long requests and tunnels may go on after a map by which they belong elsewhere")

	fs.StringVar(&s.http1, "http1", "engine", "`server` of HTTP/1.1 and 1.0: engine, the router's own, or net/http, Go's; HTTP/2 is net/http's in any case")
	fs.IntVar(&s.loops, "loops", 0, "event loops of the engine, on Linux and for connections in cleartext; 0: one for each core; -1: none, so that each connection has a goroutine")
	fs.IntVar(&s.maxConnections, "max-connections", 0, "clients' connections at a time; one more takes the place of an idle one, and is refused if none is; 0: what the descriptor limit allows")
	fs.IntVar(&s.maxInFlight, "max-in-flight", 0, "requests at a time, tunnels excepted; more are refused; 0: what the descriptor limit allows, at most 16384")
	s.maxHead = 64 << 10
	fs.Var(&s.maxHead, "max-head", "`bytes` of a request's head")
	fs.IntVar(&s.maxFields, "max-fields", 256, "fields in a request's head")
	fs.Var(&s.maxBody, "max-body", "`bytes` of a request's body; 0: no limit")
	fs.DurationVar(&s.headTimeout, "head-timeout", 10*second, "how long a client may take for a request's head")
	fs.DurationVar(&s.idleTimeout, "idle-timeout", 75*second, "how long a connection may be silent between requests")
	fs.DurationVar(&s.handshakeTimeout, "handshake-timeout", 10*second, "how long a TLS handshake may take")
	fs.BoolVar(&s.noH2C, "no-h2c", false, "refuse HTTP/2 in cleartext")
	fs.Var(&s.trusted, "trusted-proxies", "`networks` between clients and this router, with commas; what they say of the client is believed")
	fs.StringVar(&s.name, "name", "cellway", "what the router calls itself in Proxy-Status")
	fs.BoolVar(&s.explainHeaders, "explain-headers", false, "let clients see X-Cell-Id, X-Cell-Epoch, X-Cell-Key and X-Cell-Map-Version in answers")
	fs.Var(&s.traceSampled, "trace-sampled", "`share`, 0 to 1, of the traces begun here that are flagged as sampled")

	fs.IntVar(&s.cellInFlight, "cell-in-flight", defaultCellInFlight, "requests to one cell at a time; with cell-pending at most half of max-in-flight, else both are lowered")
	fs.IntVar(&s.cellPending, "cell-pending", defaultCellPending, "requests that wait for a place in one cell at a time; 0: none waits")
	fs.DurationVar(&s.cellQueueWait, "cell-queue-wait", 250*time.Millisecond, "how long a request waits for a place")
	fs.IntVar(&s.cellTunnels, "cell-tunnels", defaultCellTunnels, "tunnels to one cell at a time; at most half of max-connections")
	fs.IntVar(&s.cellIdle, "cell-idle-connections", 64, "unused connections kept for one endpoint")
	fs.IntVar(&s.cellAttempts, "cell-attempts", 3, "endpoints of the cell that one request may try when nothing connects")
	fs.DurationVar(&s.cellConnect, "cell-connect-timeout", second, "how long connecting to one endpoint may take")
	fs.DurationVar(&s.cellFirstByte, "cell-first-byte-timeout", 30*second, "how long a cell may take for an answer's head")
	fs.DurationVar(&s.clientBody, "client-body-timeout", 30*second, "how long a client may be silent in the middle of a body")
	fs.DurationVar(&s.streamIdle, "stream-idle-timeout", 10*time.Minute, "how long an answer or a tunnel may be silent")
	fs.DurationVar(&s.requestTimeout, "request-timeout", 0, "how long a request may take as a whole, tunnels excepted; 0: without end")
	fs.IntVar(&s.breakerConnects, "breaker-connects", 5, "failed connects in a row that open a cell's breaker")
	fs.IntVar(&s.breakerTimeouts, "breaker-timeouts", 4, "late answers, of at least two tenants, that open a cell's breaker")
	fs.DurationVar(&s.breakerBackoff, "breaker-backoff", 500*time.Millisecond, "how long a breaker is open at first")
	fs.DurationVar(&s.breakerMaxBackoff, "breaker-max-backoff", 15*second, "how long a breaker is open at most")
	fs.StringVar(&s.cellCA, "cell-ca", "", "`file` of the authorities of cells' certificates, PEM; empty: the system's; read again when it changes")
	fs.StringVar(&s.cellCert, "cell-cert", "", "`file` of this router's certificate for cells, PEM; read again when it changes")
	fs.StringVar(&s.cellKey, "cell-key", "", "`file` of the key of cell-cert, PEM")
	fs.StringVar(&s.cellPeer, "cell-peer", "cell", "what `name` a cell's certificate must hold: cell (its id), host, or either")
	fs.StringVar(&s.cellPeerName, "cell-peer-suffix", "", "`domain` that follows the cell's id in its certificate")

	fs.StringVar(&s.accessLog, "access-log", "", "`file` of the access log, one JSON object a line; - is standard output; empty: none; opened again on SIGHUP")
	s.accessLogSample = 1
	fs.Var(&s.accessLogSample, "access-log-sample", "`share`, 0 to 1, of the requests that went well that are logged; others always are")
	fs.StringVar(&s.logFormat, "log-format", "auto", "json, text, or auto: text on a terminal and otherwise json")
	fs.TextVar(&s.logLevel, "log-level", slog.LevelInfo, "debug, info, warn or error")
}

// program is how a router is called.
var program = serving.Program{
	Name: "cellway-router", Env: "CELLWAY_ROUTER", Topics: topics, Required: []string{"fleet", "source"},
	Help: "A router: it finds the key in a request, looks its cell up in the map, and forwards.\n\n" +
		"Usage:\n  cellway-router [settings]\n\n" +
		"Examples:\n  cellway-router --config /etc/cellway/router.conf --check\n" +
		"  cellway-router --fleet shop --source https://control.example:7700 --keyring keyring --state-dir state\n\n" +
		"Each setting is also a line \"name value\" of the file of --config, and a variable (CELLWAY_ROUTER_FLEET)\nof the environment. The command line stands before the environment, and that before the file.\n\n",
}

// topics order the settings for those who read them, those first that a router
// can't be without.
var topics = []boot.Topic{
	{Title: "The fleet and its maps", Settings: []string{"fleet", "source", "source-token", "source-ca", "source-cert", "source-key", "keyring", "state-dir", "router-id", "pull-every"}},
	{Title: "Addresses", Settings: []string{"listen", "listen-tls", "tls-cert", "tls-key", "tls-min", "admin"}},
	{Title: "This run", Settings: []string{"config", "check", "version"}},
	{Title: "Clients", Settings: []string{"trusted-proxies", "name", "explain-headers", "no-h2c", "http1", "loops", "max-connections", "max-in-flight", "max-head", "max-fields", "max-body",
		"head-timeout", "idle-timeout", "handshake-timeout", "client-body-timeout", "stream-idle-timeout", "request-timeout"}},
	{Title: "Cells", Settings: []string{"cell-in-flight", "cell-pending", "cell-queue-wait", "cell-tunnels", "cell-idle-connections", "cell-attempts", "cell-connect-timeout", "cell-first-byte-timeout",
		"breaker-connects", "breaker-timeouts", "breaker-backoff", "breaker-max-backoff", "cell-ca", "cell-cert", "cell-key", "cell-peer", "cell-peer-suffix"}},
	{Title: "The end", Settings: []string{"drain-wait", "drain-timeout", "drain-spread", "grace"}},
	{Title: "Logs", Settings: []string{"access-log", "access-log-sample", "log-format", "log-level", "trace-sampled"}},
}

// parse reads settings from args, environment and file.
func parse(args, environ []string, stdout io.Writer) (*settings, error) {
	s := &settings{}
	if err := program.Parse(s.flags, args, environ, stdout); err != nil {
		return nil, err
	}
	return s, nil
}

// validate finds what is wrong with the settings alone, all of it.
func (s *settings) validate() error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
	}
	if s.fleet == "" {
		bad("fleet", "no name is given; it is in the fleet's settings")
	}
	if len(s.sources.All) == 0 {
		bad("source", "none is given; without one there is never a new map")
	}
	for _, source := range s.sources.All {
		// A file may have such a name; what is meant is hardly ever one.
		if host, _, err := net.SplitHostPort(source); err == nil && !isURL(source) && !strings.ContainsRune(source, '/') {
			scheme := "https://"
			if a, err := netip.ParseAddr(host); host == "localhost" || err == nil && a.IsLoopback() {
				scheme = "http://"
			}
			bad("source", "%s is neither a URL nor a path; give %s%s, or ./%s for a file", source, scheme, source, source)
		}
	}
	if s.routerID != "" {
		if err := feed.ValidateRouterID(s.routerID); err != nil {
			bad("router-id", "%v", err)
		}
	}
	serving.Public{
		Clear: s.listen.All, Secure: s.listenTLS.All, Admin: s.admin, Certs: s.tlsCerts.All, Keys: s.tlsKeys.All, TLSMin: s.tlsMin, HTTP1: s.http1,
	}.Validate(bad)
	if (s.sourceCert == "") != (s.sourceKey == "") {
		bad("source-key", "source-cert and source-key go together; one is missing")
	}
	if (s.cellCert == "") != (s.cellKey == "") {
		bad("cell-key", "cell-cert and cell-key go together; one is missing")
	}
	if _, ok := peers[s.cellPeer]; !ok {
		bad("cell-peer", "%q is not cell, host or either", s.cellPeer)
	}
	for key, n := range map[string]int{"max-connections": s.maxConnections, "max-in-flight": s.maxInFlight, "cell-pending": s.cellPending} {
		if n < 0 {
			bad(key, "%d is below 0", n)
		}
	}
	for key, n := range map[string]int{"max-fields": s.maxFields, "cell-in-flight": s.cellInFlight, "cell-tunnels": s.cellTunnels,
		"cell-idle-connections": s.cellIdle, "cell-attempts": s.cellAttempts, "breaker-connects": s.breakerConnects, "breaker-timeouts": s.breakerTimeouts} {
		if n < 1 {
			bad(key, "%d is below 1", n)
		}
	}
	for key, d := range map[string]time.Duration{"drain-wait": s.drainWait, "drain-timeout": s.drainTimeout, "drain-spread": s.drainSpread,
		"grace": s.grace, "request-timeout": s.requestTimeout} {
		if d < 0 {
			bad(key, "%v is below 0", d)
		}
	}
	for key, d := range map[string]time.Duration{"pull-every": s.pullEvery, "head-timeout": s.headTimeout, "idle-timeout": s.idleTimeout,
		"handshake-timeout": s.handshakeTimeout, "cell-connect-timeout": s.cellConnect, "cell-first-byte-timeout": s.cellFirstByte,
		"cell-queue-wait": s.cellQueueWait, "client-body-timeout": s.clientBody, "stream-idle-timeout": s.streamIdle, "breaker-backoff": s.breakerBackoff, "breaker-max-backoff": s.breakerMaxBackoff} {
		if d <= 0 {
			bad(key, "%v is not above 0", d)
		}
	}
	if s.breakerMaxBackoff < s.breakerBackoff {
		bad("breaker-max-backoff", "%v is below breaker-backoff, %v", s.breakerMaxBackoff, s.breakerBackoff)
	}
	if err := errors.Join(errs...); err != nil {
		return boot.UsageError{Err: err}
	}
	return nil
}

// isURL tells a control plane from a file.
func isURL(source string) bool {
	return strings.HasPrefix(source, "http://") || strings.HasPrefix(source, "https://")
}
