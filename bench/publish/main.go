// Command publish measures how soon a change of the map is in use at many
// routers.
//
// It runs a control plane with its SQLite store and its HTTP API on loopback,
// and as many feeds as it is told to, each with its own connections and its own
// state folder, as a router has. The clock starts when the change is asked for
// and stops when the last feed has swapped to it.
//
// The p99 of each kind of change is held against its budget, and the exit code
// is 1 if one is missed. The budgets are for 100 routers and 10,000 keys: with
// -routers or -keys, the figures say something else.
package main

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/feed"
	"github.com/cellway/cellway/internal/httpapi"
	"github.com/cellway/cellway/internal/store/sqlitestore"
	"github.com/cellway/cellway/routemap"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "publish:", err)
		stop()
		os.Exit(1)
	}
}

// A result is one row of the table.
type result struct {
	Name    string  `json:"name"`
	Routers int     `json:"routers"`
	Keys    int     `json:"keys"`
	Runs    int     `json:"runs"`
	P50MS   float64 `json:"p50_ms"` // until the last router
	P99MS   float64 `json:"p99_ms"`
	MaxMS   float64 `json:"max_ms"`

	BudgetMS float64 `json:"budget_ms,omitempty"` // of the p99; 0: none
	Meets    bool    `json:"meets"`
}

// The budgets of the p99, from the change until the last router has it.
const (
	overlayBudget = 200 * time.Millisecond
	baseBudget    = time.Second
)

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("publish", flag.ContinueOnError)
	fs.SetOutput(stderr)
	routers := fs.Int("routers", 100, "routers that follow the control plane")
	changes := fs.Int("changes", 200, "overlay changes to time")
	keys := fs.Int("keys", 10_000, "keys in the map of the fleet")
	bases := fs.Int("bases", 10, "new bases to time")
	gap := fs.Duration("gap", 250*time.Millisecond, "pause between changes, in which the routers write to disk what they took")
	large := fs.Int("large", 1_000_000, "keys of the large base, for 4 routers; 0 leaves it out")
	output := fs.String("o", "table", "table or json")
	if err := fs.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "cellway-publish-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	results, err := small(ctx, dir, *routers, *changes, *bases, *keys, *gap, stderr)
	if err != nil {
		return err
	}
	if *large > 0 {
		r, err := big(ctx, dir, *large, stderr)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	if err := show(stdout, results, *output); err != nil {
		return err
	}
	return judge(results)
}

// show prints the results.
func show(w io.Writer, results []result, output string) error {
	if output == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(results)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-28s %8s %9s %5s %9s %9s %9s %9s  %s\n", "until the last router", "routers", "keys", "runs", "p50 ms", "p99 ms", "max ms", "budget", "meets")
	for _, r := range results {
		budget, meets := "-", "-"
		if r.BudgetMS > 0 {
			budget, meets = fmt.Sprintf("%.0f", r.BudgetMS), "yes"
			if !r.Meets {
				meets = "NO"
			}
		}
		fmt.Fprintf(&b, "%-28s %8d %9d %5d %9.1f %9.1f %9.1f %9s  %s\n", r.Name, r.Routers, r.Keys, r.Runs, r.P50MS, r.P99MS, r.MaxMS, budget, meets)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// judge returns an error that names the budgets that are missed.
func judge(results []result) error {
	var errs []error
	for _, r := range results {
		if !r.Meets {
			errs = append(errs, fmt.Errorf("%s: p99 is %.1f ms, the budget is %.0f ms", r.Name, r.P99MS, r.BudgetMS))
		}
	}
	return errors.Join(errs...)
}

// summary makes a result of runs; a budget of 0 is none.
func summary(name string, routers, keys int, budget time.Duration, took []time.Duration) result {
	slices.Sort(took)
	at := func(q float64) float64 {
		i := int(math.Ceil(q*float64(len(took)))) - 1
		return float64(took[max(i, 0)].Microseconds()) / 1000
	}
	r := result{Name: name, Routers: routers, Keys: keys, Runs: len(took), P50MS: at(0.5), P99MS: at(0.99), MaxMS: at(1)}
	r.BudgetMS = float64(budget.Milliseconds())
	r.Meets = budget == 0 || r.P99MS <= r.BudgetMS
	return r
}

// small times drains and new bases of a real control plane.
func small(ctx context.Context, dir string, routers, changes, bases, keys int, gap time.Duration, stderr io.Writer) ([]result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, err := sqlitestore.Open(ctx, filepath.Join(dir, "control.db"), sqlitestore.Options{Create: true})
	if err != nil {
		return nil, err
	}
	defer st.Close()
	pub, priv, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	svc, err := control.Open(ctx, control.Config{Store: st, Signers: []routemap.Signer{routemap.LocalSigner(priv)}})
	if err != nil {
		return nil, err
	}
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { svc.Run(ctx) })

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	api := httpapi.New(httpapi.Config{Service: svc, Open: true})
	server := &http.Server{Handler: api}
	running.Go(func() { server.Serve(l) })
	defer server.Close()
	defer api.Stop()

	call := control.Call{Who: "bench"}
	if err := populate(ctx, svc, call, keys, stderr); err != nil {
		return nil, err
	}
	fleet, err := follow(ctx, &running, filepath.Join(dir, "routers"), routers, routemap.Keyring{{Key: pub}}, func() (feed.Source, error) {
		return feed.NewHTTP(feed.HTTPConfig{URL: "http://" + l.Addr().String()})
	})
	if err != nil {
		return nil, err
	}
	if err := fleet.await(ctx, svc.Newest().Map.Version()); err != nil {
		return nil, err
	}

	var drains []time.Duration
	for i := range changes {
		start := time.Now()
		cell := cellway.CellID(fmt.Sprintf("cell-%03d", i%2+1))
		var c control.Change
		if i%4 < 2 {
			_, c, err = svc.Drain(ctx, call, cell, 50)
		} else {
			_, c, err = svc.Undrain(ctx, call, cell, 100)
		}
		if err != nil {
			return nil, err
		}
		if err := fleet.awaitChange(ctx, svc, c.Seq); err != nil {
			return nil, err
		}
		drains = append(drains, time.Since(start))
		time.Sleep(gap)
	}
	var promoted []time.Duration
	for i := range bases {
		if err := svc.Fold(ctx); err != nil {
			return nil, err
		}
		start := time.Now()
		c, err := toggle(ctx, svc, call, i)
		if err != nil {
			return nil, err
		}
		if err := fleet.awaitChange(ctx, svc, c.Seq); err != nil {
			return nil, err
		}
		promoted = append(promoted, time.Since(start))
		time.Sleep(gap)
	}
	return []result{summary("overlay change", routers, keys, overlayBudget, drains), summary("new base", routers, keys, baseBudget, promoted)}, nil
}

// toggle makes a change that publishes whatever base is accepted.
func toggle(ctx context.Context, svc *control.Service, call control.Call, i int) (c control.Change, err error) {
	if i%2 == 0 {
		_, c, err = svc.Drain(ctx, call, "cell-001", 50)
	} else {
		_, c, err = svc.Undrain(ctx, call, "cell-001", 100)
	}
	return c, err
}

// populate registers four cells and keys tenants.
func populate(ctx context.Context, svc *control.Service, call control.Call, keys int, stderr io.Writer) error {
	if _, _, err := svc.PutFleet(ctx, call, routemap.Settings{Fleet: "bench", Mapping: routemap.Full}, 0); err != nil {
		return err
	}
	for i := range 4 {
		c := control.Cell{Cell: cellway.Cell{
			ID: cellway.CellID(fmt.Sprintf("cell-%03d", i+1)), State: cellway.CellActive, Endpoints: []string{fmt.Sprintf("http://127.0.0.1:%d", 9001+i)},
		}}
		if _, _, err := svc.PutCell(ctx, call, c, 0); err != nil {
			return err
		}
	}
	var last control.Change
	for i := range keys {
		var err error
		if _, last, err = svc.PutTenant(ctx, call, control.Tenant{ID: cellway.TenantID(fmt.Sprintf("tenant-%07d", i))}, 0); err != nil {
			return err
		}
		if i%2000 == 1999 {
			fmt.Fprintf(stderr, "registered %d of %d tenants\n", i+1, keys)
		}
	}
	for v := cellway.Version(0); ; {
		p, err := svc.Await(ctx, v)
		if err != nil {
			return err
		}
		if v = p.Map.Version(); p.Seq >= last.Seq {
			return nil
		}
	}
}

// big times a base of many keys, handed to four routers as files: what the
// format, the disk and the swap take.
func big(ctx context.Context, dir string, keys int, stderr io.Writer) (result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pub, priv, err := ed25519.GenerateKey(nil)
	if err != nil {
		return result{}, err
	}
	fmt.Fprintf(stderr, "building a map of %d keys\n", keys)
	c := routemap.Content{Settings: routemap.Settings{Fleet: "bench", Mapping: routemap.Full}}
	c.Cells = []cellway.Cell{{ID: "cell-001", State: cellway.CellActive, Admit: 100, Endpoints: []string{"http://127.0.0.1:9001"}}}
	for i := range keys {
		c.Entries = append(c.Entries, cellway.Entry{Key: cellway.Key(fmt.Sprintf("tenant-%07d", i)), Cell: "cell-001"})
	}
	m, err := routemap.Build(c, 1)
	if err != nil {
		return result{}, err
	}
	folder := filepath.Join(dir, "large")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return result{}, err
	}
	sink, err := control.NewDirSink(folder)
	if err != nil {
		return result{}, err
	}
	defer sink.Close()
	const routers = 4
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	fleet, err := follow(ctx, &running, filepath.Join(dir, "large-routers"), routers, routemap.Keyring{{Key: pub}}, func() (feed.Source, error) {
		return feed.NewFile(folder), nil
	})
	if err != nil {
		return result{}, err
	}
	var took []time.Duration
	var parent *routemap.Map
	for i := range 3 {
		cs, _ := m.Number(routemap.ChangeSet{Entries: []cellway.Entry{{Key: cellway.Key(fmt.Sprintf("more-%d", i)), Cell: "cell-001"}}}, cellway.Epoch(i+2))
		if m, err = m.ApplyToBase(cs); err != nil {
			return result{}, err
		}
		published, v, err := routemap.Publish(m, routemap.Publication{
			Version: cellway.Version(i + 1), Parent: parent, CreatedAt: time.Now(), Signers: []routemap.Signer{routemap.LocalSigner(priv)},
		})
		if err != nil {
			return result{}, err
		}
		start := time.Now()
		if err := sink.Write(ctx, v); err != nil {
			return result{}, err
		}
		if err := fleet.await(ctx, published.Version()); err != nil {
			return result{}, err
		}
		took = append(took, time.Since(start))
		parent = published
	}
	return summary("new large base, from a folder", routers, keys, 0, took), nil
}

// followers are the feeds of many routers.
type followers []*follower

// A follower is a feed with a sink that remembers what it was given.
type follower struct {
	mu      sync.Mutex
	version cellway.Version
	changed chan struct{}
}

// Swap implements [feed.Sink].
func (f *follower) Swap(m *routemap.Map) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version = m.Version()
	close(f.changed)
	f.changed = make(chan struct{})
	return nil
}

func (f *follower) await(ctx context.Context, v cellway.Version) error {
	for {
		f.mu.Lock()
		version, changed := f.version, f.changed
		f.mu.Unlock()
		if version >= v {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (fs followers) await(ctx context.Context, v cellway.Version) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("a router did not follow within a minute"))
	defer cancel()
	for _, f := range fs {
		if err := f.await(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

// awaitChange waits until the change is published, and then for the version.
func (fs followers) awaitChange(ctx context.Context, svc *control.Service, seq uint64) error {
	for v := cellway.Version(0); ; {
		p, err := svc.Await(ctx, v)
		if err != nil {
			return err
		}
		if v = p.Map.Version(); p.Seq >= seq {
			return fs.await(ctx, v)
		}
	}
}

type keys routemap.Keyring

func (k keys) Keyring() routemap.Keyring { return routemap.Keyring(k) }

func follow(ctx context.Context, running *sync.WaitGroup, dir string, n int, ring routemap.Keyring, source func() (feed.Source, error)) (followers, error) {
	var out followers
	for i := range n {
		state := filepath.Join(dir, fmt.Sprintf("router-%03d", i))
		if err := os.MkdirAll(state, 0o755); err != nil {
			return nil, err
		}
		store, err := feed.OpenStore(state, slog.New(slog.DiscardHandler))
		if err != nil {
			return nil, err
		}
		src, err := source()
		if err != nil {
			return nil, err
		}
		f := &follower{changed: make(chan struct{})}
		fd, err := feed.New(feed.Config{Fleet: "bench", Sources: []feed.Source{src}, Keys: keys(ring), Sink: f, Store: store})
		if err != nil {
			return nil, err
		}
		out = append(out, f)
		running.Go(func() { fd.Run(ctx); store.Close() })
	}
	return out, nil
}
