package serving

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/front"
	"github.com/cellway/cellway/internal/lines"
	"github.com/cellway/cellway/internal/telemetry"
)

// A Daemon is what a router or a gateway has around it. It is opened step by step, and
// then it runs. What was opened is a stage.
type Daemon struct {
	Log     *slog.Logger
	Build   telemetry.Build
	Started time.Time
	Files   Files // that the settings name
	Gate    *Gate
	Access  *AccessLog // nil without one

	settings     *Settings
	lines        *lines.Writer // of the log
	public       []Listener
	admin        net.Listener
	checker      *engine.Checker
	refusedHeads RefusedHeads

	Stages
}

// NewDaemon returns a daemon of which nothing is open. Its log is written by w.
func NewDaemon(s *Settings, build telemetry.Build, w *lines.Writer, log *slog.Logger) *Daemon {
	return &Daemon{Log: log, Build: build, Started: time.Now(), settings: s, lines: w}
}

// A Handler is a router or a gateway.
type Handler interface {
	http.Handler
	NewServer(engine.ServerConfig) *engine.Server
	Refuse(w http.ResponseWriter, r *http.Request, code cellway.Code, detail string)
	Stop(ctx context.Context, servers ...front.Server) error
}

// Doubt says in the log what is wrong, or may be, and is no reason not to start.
func (d *Daemon) Doubt(doubts []error) {
	for _, doubt := range doubts {
		d.Log.Warn("doubtful setting", "error", doubt)
	}
}

// Listen binds all addresses.
func (d *Daemon) Listen() (err error) {
	if d.admin, err = d.BindAdmin(d.settings.Admin); err == nil {
		d.public, err = d.Bind(d.settings.Listen.All, d.settings.ListenTLS.All)
	}
	return err
}

// Addresses are those of the listeners as they were bound, with their scheme.
func (d *Daemon) Addresses() (all []string) {
	for _, l := range d.public {
		scheme := "http://"
		if l.TLS {
			scheme = "https://"
		}
		all = append(all, scheme+l.Addr().String())
	}
	return all
}

// Limits raises the limit of descriptors, and derives from it what the settings leave
// open.
func (d *Daemon) Limits() Limits {
	descriptors, err := RaiseDescriptors()
	if err != nil {
		d.Log.Warn("descriptor limit not raised", "error", err)
	}
	return d.settings.Limits(descriptors)
}

// CheckHeads makes what checks heads in front of h. Unshaken may be nil; it is told
// of handshakes that fail.
func (d *Daemon) CheckHeads(h Handler, unshaken func(peer net.Addr, err error)) {
	s := d.settings
	d.checker = engine.NewChecker(engine.CheckerConfig{
		Unshaken: unshaken,
		MaxHead:  int(s.MaxHead), MaxFields: s.MaxFields, HeadTimeout: s.HeadTimeout, IdleTimeout: s.IdleTimeout,
		HandshakeTimeout: s.HandshakeTimeout, NoH2C: s.NoH2C, Refused: d.refusedHeads.Add,
		Answer: func(w http.ResponseWriter, req *http.Request, r engine.Reason) {
			h.Refuse(w, req, r.Code(), r.Detail())
		},
	})
}

// ToServers is how servers are spoken to over TLS.
func (d *Daemon) ToServers() engine.TLS {
	peer, _ := d.settings.peer()
	t := engine.TLS{RootsNow: d.Files.servers.Pool, Peer: peer, PeerSuffix: d.settings.ServerSuffix}
	if own := d.Files.toServers; own != nil {
		t.ClientCertificate = own.Client
	}
	return t
}

// Registry joins the program's figures with those of the process. The metrics of
// clients, logs and certificates are shown here, own shows the others; all names begin
// with the program's, which has underscores.
func (d *Daemon) Registry(name string, all []telemetry.Metric, own func(*telemetry.Figures)) http.Handler {
	reg := telemetry.NewRegistry(name, d.Build)
	reg.MustRegister(telemetry.NewCollector(all, func(f *telemetry.Figures) {
		own(f)
		d.figures(f, name+"_")
	}))
	return telemetry.Handler(reg, d.Log)
}

func (d *Daemon) figures(f *telemetry.Figures, prefix string) {
	f.Bool(prefix+"access_log_failing", d.Access.Failing())
	f.Count(prefix+"log_dropped_total", d.lines.Dropped())
	d.refusedHeads.Each(func(reason string, n uint64) { f.Count(prefix+"refused_heads_total", n, reason) })
	g := d.Gate.Stats()
	f.Set(prefix+"connections", float64(g.Open))
	f.Set(prefix+"connections_limit", float64(g.Most))
	f.Count(prefix+"connections_evicted_total", g.EvictedIdle, "idle")
	f.Count(prefix+"connections_evicted_total", g.EvictedSilent, "silent")
	f.Count(prefix+"connections_refused_total", g.RefusedFull, "full")
	f.Count(prefix+"connections_refused_total", g.RefusedShare, "share")
	d.Files.figures(f, prefix)
}
