package gatewayd

import (
	"flag"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/serving"
)

// A settings value is what flags, environment and file say.
type settings struct {
	serving.Settings

	cell        string
	routers     serving.Prefixes
	routerNames serving.Words
	direct      bool
	workers     workersFrom

	clientCA, clientCerts string

	tenantRate, tenantBurst       float64
	tenantInFlight, tenantTunnels int
	tenantLimits                  string

	attempts                         int
	timeout, tryTimeout              time.Duration
	retryBackoff, retryMaxBackoff    time.Duration
	retryAfterMax                    time.Duration
	retryDeposit, retryFloor         float64
	retryTenantBurst, retryCellBurst float64
	probe                            string
	probeInterval, probeTimeout      time.Duration
	probeFall, probeRise             int
	canary, canaryPath, canaryAsk    string
	lookback                         time.Duration
	remember                         int

	workerInFlight, workerPending, workerTunnels, workerIdle int
	workerQueueWait, workerConnect                           time.Duration
}

// flags declares all settings.
func (s *settings) flags(fs *flag.FlagSet) {
	second := time.Second
	s.Listen.All = []string{":8081"}
	s.Declare(fs, serving.Names{Program: "gateway", Clients: "routers", Server: "worker"})
	fs.BoolVar(&s.Check, "check", false, "read settings, list of workers, limits, certificates and the place of the access log, say what is wrong, and exit")

	fs.StringVar(&s.cell, "cell", "", "`id` of the cell; what was routed to another one is refused")
	fs.Var(&s.routers, "routers", "`networks` that routers are in, with commas; only they are believed when they say whom a request is for")
	fs.Var(&s.routerNames, "router-names", "`names` of routers in their certificates, DNS names or URIs, with commas; needs listen-tls and client-ca")
	fs.BoolVar(&s.direct, "direct", false, "serve requests that no router sent; together they have one hand; else they get 421")

	from := &s.workers
	fs.StringVar(&from.file, "workers-file", "", "`file` of the list of workers, JSON; followed while the gateway runs")
	fs.StringVar(&from.dns, "workers-dns", "", "`name` of the workers: host:port, each of whose addresses is one, or a name with SRV records; needs hand-size")
	fs.StringVar(&from.url, "workers-url", "", "`URL` of the list of workers, JSON; asked again and again")
	fs.Var(&from.control, "workers-control", "`URL` of the control plane, if it keeps the cell's list of workers; may be given more than once, and one after the other is asked")
	fs.DurationVar(&from.every, "workers-every", 0, "how often workers are looked for; 0: 2s for a file and the control plane, 10s otherwise")
	fs.StringVar(&from.keep, "workers-keep", "/var/lib/cellway-gateway/workers.json", "`file` of the last good list of workers-dns, workers-url or workers-control, to start from with nobody to ask; empty: none")
	fs.StringVar(&from.scheme, "workers-scheme", "http", "`scheme` of workers found by workers-dns: http or https")
	fs.DurationVar(&from.forget, "workers-forget", 2*time.Minute, "how long a worker that workers-dns names no more stays in hands; longer than a restart takes; 0: it goes at once")
	fs.IntVar(&from.size, "hand-size", 0, "`workers` in a hand, with workers-dns; a list has its own")
	fs.StringVar(&from.saltFile, "hand-salt-file", "", "`file` of the salt of hands, with workers-dns; the same for all gateways of the cell; keep it from tenants")
	fs.StringVar(&from.token, "workers-token", "", "`file` of the token for workers-control or workers-url; read again each time")
	fs.StringVar(&from.ca, "workers-ca", "", "`file` of the authorities of the certificate at workers-control or workers-url, PEM; empty: the system's")
	fs.StringVar(&from.cert, "workers-cert", "", "`file` of this gateway's certificate for workers-control or workers-url, PEM")
	fs.StringVar(&from.key, "workers-key", "", "`file` of the key of workers-cert, PEM")

	fs.StringVar(&s.clientCA, "client-ca", "", "`file` of the authorities of routers' certificates, PEM; read again when it changes; empty: none is asked for")
	fs.StringVar(&s.clientCerts, "client-certs", "require", "who must show a certificate over TLS if client-ca is set: require (everybody), or verify (whoever has one)")
	fs.StringVar(&s.Admin, "admin", "127.0.0.1:9091", "`address` for /metrics, /livez, /readyz and /hands; keep it away from clients")

	fs.DurationVar(&s.DrainWait, "drain-wait", 5*second, "after a signal to stop: how long to serve on while readiness fails, so that routers take notice")

	fs.Float64Var(&s.tenantRate, "tenant-rate", 0, "`requests` a second that one tenant may send for ever; more are refused with 429; 0: no limit")
	fs.Float64Var(&s.tenantBurst, "tenant-burst", 0, "`requests` that one tenant may send at once after a pause; 0: tenant-rate, at least 1")
	fs.IntVar(&s.tenantInFlight, "tenant-in-flight", 256, "requests of one tenant at a time; more are refused with 429; 0: no limit")
	fs.IntVar(&s.tenantTunnels, "tenant-tunnels", 1024, "upgraded connections of one tenant at a time; 0: no limit")
	fs.StringVar(&s.tenantLimits, "tenant-limits", "", "`file` of tenants to whom other limits apply, JSON; read again when it changes")

	fs.IntVar(&s.attempts, "attempts", 0, "workers of the hand that one request may try; 0: 3, at most the hand; 1: no retries")
	fs.DurationVar(&s.timeout, "timeout", 30*second, "how long a request waits for an answer to begin, over all attempts")
	fs.DurationVar(&s.tryTimeout, "try-timeout", 50*time.Millisecond, "what an attempt is given at least, however quick the cell usually is")
	fs.DurationVar(&s.retryBackoff, "retry-backoff", 50*time.Millisecond, "longest wait before the first retry; it doubles with each further one")
	fs.DurationVar(&s.retryMaxBackoff, "retry-max-backoff", 2*second, "longest wait before any retry")
	fs.DurationVar(&s.retryAfterMax, "retry-after-max", 5*second, "how much longer than that a worker's Retry-After may make a request wait")
	fs.Float64Var(&s.retryDeposit, "retry-deposit", 0.1, "`retries` that each success pays for; 0: none")
	fs.Float64Var(&s.retryTenantBurst, "retry-tenant-burst", 10, "`retries` at once that one tenant's successes of the past can pay for")
	fs.Float64Var(&s.retryCellBurst, "retry-cell-burst", 100, "`retries` at once that the cell's successes of the past can pay for")
	fs.Float64Var(&s.retryFloor, "retry-floor", 1, "`retries` a second that each tenant and the cell have without any success; 0: none")

	fs.StringVar(&s.probe, "probe", "", "`path` that workers are asked for to see how they are, such as /healthz; empty: they are not asked")
	fs.DurationVar(&s.probeInterval, "probe-interval", 5*second, "time between two probes of a worker")
	fs.DurationVar(&s.probeTimeout, "probe-timeout", second, "how long a worker may take for a probe")
	fs.IntVar(&s.probeFall, "probe-fall", 3, "failed probes in a row after which a worker is asked last")
	fs.IntVar(&s.probeRise, "probe-rise", 2, "good probes in a row after which it is asked as before")
	fs.StringVar(&s.canary, "canary", "", "`tenant` that nobody is: its requests go to each worker in turn; empty: there is none")
	fs.StringVar(&s.canaryPath, "canary-path", "/cellway/canary", "`path` that the gateway answers the canary itself, after it has asked the worker")
	fs.StringVar(&s.canaryAsk, "canary-ask", "", "`path` that the worker is asked for then; empty: that of probe, or /")

	fs.DurationVar(&s.lookback, "lookback", 10*time.Minute, "how long after a change of the list members of a tenant's former hand may stand in for new ones that have never answered; 0: never")
	fs.IntVar(&s.remember, "remember", 65_536, "tenants that are remembered at most, with their budgets")

	fs.IntVar(&s.MaxConnections, "max-connections", 0, "connections from routers at a time; one more takes the place of an idle one, and is refused if none is; 0: what the descriptor limit allows")
	fs.DurationVar(&s.HeadTimeout, "head-timeout", 10*second, "how long a request's head may take")
	fs.StringVar(&s.Name, "name", "cellway-gateway", "what the gateway calls itself in Proxy-Status and Via")
	fs.BoolVar(&s.ExplainHeaders, "explain-headers", false, "tell in answers, by X-Cell-Hand, X-Cell-Worker and X-Cell-Attempt, who answered; routers let them through only with their own explain-headers")

	fs.IntVar(&s.workerInFlight, "worker-in-flight", defaultWorkerInFlight, "requests to one worker at a time; above tenant-in-flight, or one tenant fills its hand for others")
	fs.IntVar(&s.workerPending, "worker-pending", defaultWorkerPending, "requests that wait for a place in one worker at a time; 0: none waits")
	fs.DurationVar(&s.workerQueueWait, "worker-queue-wait", 250*time.Millisecond, "how long a request waits for a place")
	fs.IntVar(&s.workerTunnels, "worker-tunnels", 4096, "tunnels to one worker at a time")
	fs.IntVar(&s.workerIdle, "worker-idle-connections", 64, "unused connections kept for one worker")
	fs.DurationVar(&s.workerConnect, "worker-connect-timeout", 250*time.Millisecond, "how long connecting to a worker may take")
}

// program is how a gateway is called.
var program = serving.Program{
	Name: "cellway-gateway", Env: "CELLWAY_GATEWAY", Topics: topics, Required: []string{"cell"},
	Help: "A gateway: the front door of one cell. It deals each tenant a hand of the cell's workers, and tries\nno other ones.\n\n" +
		"Usage:\n  cellway-gateway [settings]\n\n" +
		"Examples:\n  cellway-gateway --config /etc/cellway/gateway.conf --check\n" +
		"  cellway-gateway --cell cell-001 --routers 10.0.0.0/8 --workers-file workers.json\n\n" +
		"Each setting is also a line \"name value\" of the file of --config, and a variable (CELLWAY_GATEWAY_CELL)\nof the environment. The command line stands before the environment, and that before the file.\n\n",
}

// topics order the settings for those who read them, those first that a gateway
// can't be without.
var topics = []boot.Topic{
	{Title: "The cell", Settings: []string{"cell", "routers", "router-names", "direct"}},
	{Title: "Workers (workers-file, workers-dns, workers-url or workers-control must be given)", Settings: []string{"workers-file", "workers-dns", "workers-url", "workers-control", "workers-every", "workers-keep",
		"hand-size", "hand-salt-file", "workers-scheme", "workers-forget", "workers-token", "workers-ca", "workers-cert", "workers-key"}},
	{Title: "Addresses", Settings: []string{"listen", "listen-tls", "tls-cert", "tls-key", "tls-min", "client-ca", "client-certs", "admin"}},
	{Title: "This run", Settings: []string{"config", "check", "version"}},
	{Title: "Tenants", Settings: []string{"tenant-rate", "tenant-burst", "tenant-in-flight", "tenant-tunnels", "tenant-limits", "remember"}},
	{Title: "Retries", Settings: []string{"attempts", "timeout", "try-timeout", "retry-backoff", "retry-max-backoff", "retry-after-max", "retry-deposit",
		"retry-tenant-burst", "retry-cell-burst", "retry-floor", "lookback"}},
	{Title: "Health", Settings: []string{"probe", "probe-interval", "probe-timeout", "probe-fall", "probe-rise", "canary", "canary-path", "canary-ask"}},
	{Title: "Requests", Settings: []string{"name", "explain-headers", "no-h2c", "http1", "http2", "loops", "max-connections", "max-in-flight", "max-head", "max-fields", "max-body",
		"head-timeout", "idle-timeout", "handshake-timeout", "client-body-timeout", "stream-idle-timeout"}},
	{Title: "Connections to workers", Settings: []string{"worker-in-flight", "worker-pending", "worker-queue-wait", "worker-tunnels", "worker-idle-connections",
		"worker-connect-timeout", "breaker-connects", "breaker-timeouts", "breaker-backoff", "breaker-max-backoff",
		"worker-ca", "worker-cert", "worker-key", "worker-peer", "worker-peer-suffix"}},
	{Title: "The end", Settings: []string{"drain-wait", "drain-timeout", "drain-spread"}},
	{Title: "Logs", Settings: []string{"access-log", "access-log-sample", "log-format", "log-level"}},
}

// validate finds what is wrong with the settings alone, all of it.
func (s *settings) validate() error {
	var faults serving.Faults
	if s.cell == "" {
		faults.Bad("cell", "no id is given; it is that of the cell in the map")
	} else if err := cellway.CellID(s.cell).Validate(); err != nil {
		faults.Note("cell", err)
	}
	if len(s.routers)+len(s.routerNames.All) == 0 {
		faults.Bad("routers", "neither networks nor router-names are given; without them nobody is believed, and every request refused")
	}
	if len(s.routerNames.All) > 0 && (s.clientCA == "" || len(s.ListenTLS.All) == 0) {
		faults.Bad("router-names", "they are in certificates; that needs listen-tls and client-ca")
	}
	if s.clientCA != "" && len(s.ListenTLS.All) == 0 {
		faults.Bad("client-ca", "certificates are shown over TLS only; that needs listen-tls")
	}
	if s.clientCerts != "require" && s.clientCerts != "verify" {
		faults.Bad("client-certs", "%q is neither require nor verify", s.clientCerts)
	}
	s.workers.validate(&faults)
	s.Validate(&faults)
	s.validateNumbers(&faults)
	return faults.Usage()
}

// validateNumbers holds numbers and durations against their bounds.
func (s *settings) validateNumbers(faults *serving.Faults) {
	faults.Below(0, map[string]int{"worker-pending": s.workerPending, "tenant-in-flight": s.tenantInFlight, "tenant-tunnels": s.tenantTunnels, "attempts": s.attempts})
	faults.Below(1, map[string]int{"worker-in-flight": s.workerInFlight, "worker-tunnels": s.workerTunnels, "worker-idle-connections": s.workerIdle,
		"probe-fall": s.probeFall, "probe-rise": s.probeRise, "remember": s.remember})
	for key, n := range map[string]float64{"tenant-rate": s.tenantRate, "tenant-burst": s.tenantBurst, "retry-deposit": s.retryDeposit, "retry-floor": s.retryFloor} {
		if !(n >= 0 && n <= 1e12) {
			faults.Bad(key, "%v is not a number from 0 on", n)
		}
	}
	for key, n := range map[string]float64{"retry-tenant-burst": s.retryTenantBurst, "retry-cell-burst": s.retryCellBurst} {
		if !(n >= 1 && n <= 1e12) {
			faults.Bad(key, "%v is not a number from 1 on", n)
		}
	}
	faults.Negative(map[string]time.Duration{"lookback": s.lookback})
	faults.NotPositive(map[string]time.Duration{"timeout": s.timeout, "try-timeout": s.tryTimeout, "retry-backoff": s.retryBackoff,
		"retry-max-backoff": s.retryMaxBackoff, "retry-after-max": s.retryAfterMax, "probe-interval": s.probeInterval, "probe-timeout": s.probeTimeout,
		"worker-connect-timeout": s.workerConnect, "worker-queue-wait": s.workerQueueWait})
	if s.retryMaxBackoff < s.retryBackoff {
		faults.Bad("retry-max-backoff", "%v is below retry-backoff, %v", s.retryMaxBackoff, s.retryBackoff)
	}
}
