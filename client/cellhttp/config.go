package cellhttp

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
)

// The headers by which routers and guards tell of cells.
const (
	CellHeader  = "X-Cell-Id"       // the cell that answered
	EpochHeader = "X-Cell-Epoch"    // the epoch of the key's owner; in a 421, that of the guard
	MovedHeader = "X-Cell-Moved-To" // in a 421: the cell that the key is in now
)

// TenantHeader is a request's key, if Config.Key does not tell.
const TenantHeader = "X-Tenant-Id"

// A Config says where a transport learns. Locate or Router must be given, and
// Endpoints if Locate is not.
type Config struct {
	// Locate asks the control plane where a key is; client.Client has such a
	// method. If nil, only the router tells.
	Locate func(ctx context.Context, key cellway.Key) (api.Location, error)

	// Router is the address of a router, as in https://api.example.com:443. It
	// carries requests whose cell is not known or not reached. If empty, none
	// does.
	Router string

	// Endpoints returns where a cell listens, as in http://10.0.0.1:8080; none
	// if it isn't known. If nil, Locate tells.
	Endpoints func(cell cellway.CellID) []string

	// Key returns the key of a request. If nil, it is the header X-Tenant-Id.
	Key func(*http.Request) cellway.Key

	// Base makes the connections. If nil, http.DefaultTransport. Whether a
	// request that failed was sent is told by the hooks GetConn and GotConn of
	// net/http/httptrace, which every http.Transport calls. With a Base that
	// does not, each failure counts as one of a request that was sent, and
	// none goes to another endpoint.
	Base http.RoundTripper

	// Recheck is how often a key in use is looked up again. If zero, 5 minutes.
	// Each time it is a fifth more or less at random, so that clients that
	// started together don't ask together.
	Recheck time.Duration

	// LocateTimeout bounds one question to the control plane. If zero, 2
	// seconds. After one that failed, none is put for as long.
	LocateTimeout time.Duration

	// ReplayBytes is the length of the longest body that is sent again. If zero,
	// 65,536; if negative, none is.
	ReplayBytes int64

	// Keys is how many keys are remembered at least. If zero, 10,000; twice as
	// many may be.
	Keys int

	// Known is what was learned in another life of the program. Places that
	// aren't valid are refused by New.
	Known []Place

	// Log is told of moves, and of questions that failed: why cells can't be learned,
	// once for each cause, as a refused token is; of keys that could not be looked up
	// again, once a minute. If nil, nothing is, and [Transport.Stats] has the rest.
	Log *slog.Logger
}

// A Transport is an http.RoundTripper that knows the cells of keys. It is safe
// for concurrent use. Only [New] makes useful ones.
type Transport struct {
	cfg    Config
	router *url.URL // nil for none
	log    *slog.Logger
	start  time.Time
	keys   keys
	figures

	deaf  atomic.Int64 // until when the control plane is not asked
	looks atomic.Int32 // how many keys are looked up again now
	hush  atomic.Int64 // until when a look that failed is not logged
}

// New checks cfg and returns a transport. It connects to nothing. The error wraps
// [cellway.ErrInvalid].
func New(cfg Config) (*Transport, error) {
	t := &Transport{cfg: cfg, log: cfg.Log, start: time.Now()}
	if cfg.Locate == nil && cfg.Router == "" {
		return nil, fmt.Errorf("transport can't learn where keys are: give Locate, Router or both: %w", cellway.ErrInvalid)
	}
	if cfg.Locate == nil && cfg.Endpoints == nil {
		return nil, fmt.Errorf("a router tells the names of cells only: give Endpoints, or Locate: %w", cellway.ErrInvalid)
	}
	if cfg.Router != "" {
		u, err := cellway.ParseEndpoint(cfg.Router)
		if err != nil {
			return nil, fmt.Errorf("router: %w", err)
		}
		t.router = u
	}
	if cfg.Recheck < 0 || cfg.LocateTimeout < 0 || cfg.Keys < 0 {
		return nil, fmt.Errorf("a negative Recheck, LocateTimeout or Keys: give 0 for the default: %w", cellway.ErrInvalid)
	}
	if cfg.Recheck == 0 {
		t.cfg.Recheck = 5 * time.Minute
	}
	if cfg.LocateTimeout == 0 {
		t.cfg.LocateTimeout = 2 * time.Second
	}
	if cfg.ReplayBytes == 0 {
		t.cfg.ReplayBytes = 64 << 10
	}
	if cfg.Keys == 0 {
		t.cfg.Keys = 10_000
	}
	if cfg.Base == nil {
		t.cfg.Base = http.DefaultTransport
	}
	if cfg.Key == nil {
		t.cfg.Key = func(r *http.Request) cellway.Key { return cellway.Key(r.Header.Get(TenantHeader)) }
	}
	if t.log == nil {
		t.log = slog.New(slog.DiscardHandler)
	}
	t.keys.most = t.cfg.Keys
	for _, p := range cfg.Known {
		if err := p.validate(); err != nil {
			return nil, fmt.Errorf("known place: %w", err)
		}
		k := t.keys.get(p.Key)
		t.learn(k, p)
		k.due.Store(0) // who knows how old it is
	}
	return t, nil
}

// CloseIdleConnections closes what connections are idle, if Base can.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.cfg.Base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// now is the transport's clock.
func (t *Transport) now() int64 { return int64(time.Since(t.start)) }
