package routerd

import (
	"flag"
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
	serving.Settings

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

	grace, requestTimeout                            time.Duration
	trusted                                          serving.Prefixes
	traceSampled                                     serving.Share
	cellInFlight, cellPending, cellTunnels, cellIdle int
	cellAttempts                                     int
	cellQueueWait, cellConnect, cellFirstByte        time.Duration
}

// flags declares all settings.
func (s *settings) flags(fs *flag.FlagSet) {
	second := time.Second
	s.Listen.All = []string{":8080"}
	s.Declare(fs, serving.Names{Program: "router", Clients: "clients", Server: "cell"})
	fs.BoolVar(&s.Check, "check", false, "read settings, keys, certificates, state folder and the place of the access log, look for a map at each source, say what is wrong, and exit")

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

	fs.StringVar(&s.Admin, "admin", "127.0.0.1:9090", "`address` for /metrics, /livez, /readyz, /map and /explain; keep it away from clients")

	fs.DurationVar(&s.DrainWait, "drain-wait", 5*second, "after a signal to stop: how long to serve on while readiness fails, so that load balancers take notice")
	fs.DurationVar(&s.grace, "grace", 10*second, "how long requests and tunnels may go on after a map by which they belong elsewhere")

	fs.IntVar(&s.MaxConnections, "max-connections", 0, "clients' connections at a time; one more takes the place of an idle one, and is refused if none is; 0: what the descriptor limit allows")
	fs.DurationVar(&s.HeadTimeout, "head-timeout", 10*second, "how long a client may take for a request's head")
	fs.Var(&s.trusted, "trusted-proxies", "`networks` between clients and this router, with commas; what they say of the client is believed")
	fs.StringVar(&s.Name, "name", "cellway", "what the router calls itself in Proxy-Status")
	fs.BoolVar(&s.ExplainHeaders, "explain-headers", false, "let clients see X-Cell-Id, X-Cell-Epoch, X-Cell-Key and X-Cell-Map-Version in answers")
	fs.Var(&s.traceSampled, "trace-sampled", "`share`, 0 to 1, of the traces begun here that are flagged as sampled")

	fs.IntVar(&s.cellInFlight, "cell-in-flight", defaultCellInFlight, "requests to one cell at a time; with cell-pending at most half of max-in-flight, else both are lowered")
	fs.IntVar(&s.cellPending, "cell-pending", defaultCellPending, "requests that wait for a place in one cell at a time; 0: none waits")
	fs.DurationVar(&s.cellQueueWait, "cell-queue-wait", 250*time.Millisecond, "how long a request waits for a place")
	fs.IntVar(&s.cellTunnels, "cell-tunnels", defaultCellTunnels, "tunnels to one cell at a time; at most half of max-connections")
	fs.IntVar(&s.cellIdle, "cell-idle-connections", 64, "unused connections kept for one endpoint")
	fs.IntVar(&s.cellAttempts, "cell-attempts", 3, "endpoints of the cell that one request may try when nothing connects")
	fs.DurationVar(&s.cellConnect, "cell-connect-timeout", second, "how long connecting to one endpoint may take")
	fs.DurationVar(&s.cellFirstByte, "cell-first-byte-timeout", 30*second, "how long a cell may take for an answer's head")
	fs.DurationVar(&s.requestTimeout, "request-timeout", 0, "how long a request may take as a whole, tunnels excepted; 0: without end")
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
	{Title: "Clients", Settings: []string{"trusted-proxies", "name", "explain-headers", "no-h2c", "http1", "http2", "loops", "max-connections", "max-in-flight", "max-head", "max-fields", "max-body",
		"head-timeout", "idle-timeout", "handshake-timeout", "client-body-timeout", "stream-idle-timeout", "request-timeout"}},
	{Title: "Cells", Settings: []string{"cell-in-flight", "cell-pending", "cell-queue-wait", "cell-tunnels", "cell-idle-connections", "cell-attempts", "cell-connect-timeout", "cell-first-byte-timeout",
		"breaker-connects", "breaker-timeouts", "breaker-backoff", "breaker-max-backoff", "cell-ca", "cell-cert", "cell-key", "cell-peer", "cell-peer-suffix"}},
	{Title: "The end", Settings: []string{"drain-wait", "drain-timeout", "drain-spread", "grace"}},
	{Title: "Logs", Settings: []string{"access-log", "access-log-sample", "log-format", "log-level", "trace-sampled"}},
}

// validate finds what is wrong with the settings alone, all of it.
func (s *settings) validate() error {
	var faults serving.Faults
	if s.fleet == "" {
		faults.Bad("fleet", "no name is given; it is in the fleet's settings")
	}
	if len(s.sources.All) == 0 {
		faults.Bad("source", "none is given; without one there is never a new map")
	}
	for _, source := range s.sources.All {
		// A file may have such a name; what is meant is hardly ever one.
		if host, _, err := net.SplitHostPort(source); err == nil && !isURL(source) && !strings.ContainsRune(source, '/') {
			scheme := "https://"
			if a, err := netip.ParseAddr(host); host == "localhost" || err == nil && a.IsLoopback() {
				scheme = "http://"
			}
			faults.Bad("source", "%s is neither a URL nor a path; give %s%s, or ./%s for a file", source, scheme, source, source)
		}
	}
	if s.routerID != "" {
		if err := feed.ValidateRouterID(s.routerID); err != nil {
			faults.Bad("router-id", "%v", err)
		}
	}
	s.Validate(&faults)
	faults.NotAPair("source", s.sourceCert, s.sourceKey)
	faults.Below(0, map[string]int{"cell-pending": s.cellPending})
	faults.Below(1, map[string]int{"cell-in-flight": s.cellInFlight, "cell-tunnels": s.cellTunnels, "cell-idle-connections": s.cellIdle, "cell-attempts": s.cellAttempts})
	faults.Negative(map[string]time.Duration{"grace": s.grace, "request-timeout": s.requestTimeout})
	faults.NotPositive(map[string]time.Duration{"pull-every": s.pullEvery, "cell-connect-timeout": s.cellConnect,
		"cell-first-byte-timeout": s.cellFirstByte, "cell-queue-wait": s.cellQueueWait})
	return faults.Usage()
}

// isURL tells a control plane from a file.
func isURL(source string) bool {
	return strings.HasPrefix(source, "http://") || strings.HasPrefix(source, "https://")
}
