package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/controld"
	"github.com/cellway/cellway/internal/lines"
	"github.com/cellway/cellway/internal/routerd"
	"github.com/cellway/cellway/internal/telemetry"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
)

// upFlags say what cellway up runs.
type upFlags struct {
	dir, fleet             string
	control, listen, admin string
	extractors             []string
	asked                  bool // for these extractors
	cells                  map[string]string
	logFormat              string
	logLevel               slog.Level
}

func (a *app) upCommand() *cobra.Command {
	var u upFlags
	c := &cobra.Command{
		Use: "up", Short: "a control plane and a router in one process, for development", Args: exactly(),
		Long: `Run a control plane and a router in one process, in front of services of your own that
run on this machine. Without --dir everything ends with the process.

The fleet is made if there is none. Cells can be named here, or registered later with
cellway cell add and cellway map assign.`,
		Example: "  cellway up\n" +
			"  cellway up --cell cell-001=http://127.0.0.1:9001 --cell cell-002=http://127.0.0.1:9002\n" +
			"  cellway up --dir ./dev --extractor 'host:{tenant}.localhost'",
		RunE: func(cmd *cobra.Command, _ []string) error {
			u.asked = cmd.Flags().Changed("extractor")
			return a.up(cmd.Context(), u)
		},
	}
	f := c.Flags()
	f.StringVar(&u.dir, "dir", "", "folder for store, signing key and the router's maps; without, all ends with the process")
	f.StringVar(&u.fleet, "fleet", "dev", "name of the fleet, if it is made")
	f.StringVar(&u.control, "control", "127.0.0.1:7700", "address of the control plane")
	f.StringVar(&u.listen, "listen", "127.0.0.1:8080", "address of the router")
	f.StringVar(&u.admin, "admin", "127.0.0.1:9090", "address of the router's /readyz, /metrics, /map and /explain")
	f.StringArrayVar(&u.extractors, "extractor", []string{"header:X-Tenant-Id"}, "where a request's key stands, if the fleet is made; see cellway fleet create")
	f.Var(pairs{&u.cells, "cell=url"}, "cell", "cell to register, as in cell-001=http://127.0.0.1:9001; may be given more than once")
	f.StringVar(&u.logFormat, "log-format", "auto", "json, text, or auto: text on a terminal and otherwise json")
	f.TextVar(&u.logLevel, "log-level", slog.LevelWarn, "debug, info, warn or error")
	return c
}

func (a *app) up(ctx context.Context, u upFlags) (err error) {
	defer func() {
		if op, ok := errors.AsType[*net.OpError](err); ok && errors.Is(err, syscall.EADDRINUSE) {
			err = mend(fmt.Errorf("somebody listens at %v already", op.Addr), "is another cellway up running? this one may listen elsewhere: --control, --listen and --admin, each with 127.0.0.1:0 for any free port")
		}
	}()
	// As the daemons do: nobody who reads what is said holds up what is served.
	defer boot.SurvivePipes()()
	w := lines.NewWriter(unfilled(a.err), telemetry.LossOn(u.logFormat))
	log, err := telemetry.NewLog(w, u.logFormat, u.logLevel)
	if err != nil {
		return usage("--log-format: %w", err)
	}
	a.err = w
	for _, id := range sortedKeys(u.cells) {
		cell := cellway.Cell{ID: cellway.CellID(id), State: cellway.CellActive, Endpoints: []string{u.cells[id]}}
		if err := cell.Validate(); err != nil {
			return boot.UsageError{Err: err}
		}
	}
	for _, x := range []struct{ flag, addr string }{{"--control", u.control}, {"--listen", u.listen}, {"--admin", u.admin}} {
		if err := listenable(x.addr); err != nil {
			return usage("%s: %w", x.flag, err)
		}
	}
	for _, addr := range []*string{&u.listen, &u.admin} {
		if *addr, err = settled(*addr); err != nil {
			return err
		}
	}
	dir, store := u.dir, controld.Memory
	if dir == "" {
		var remove func() error
		if dir, remove, err = boot.TempDir("cellway-up-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, remove()) }()
	} else {
		store = filepath.Join(dir, "fleet.db")
	}
	state := filepath.Join(dir, "router")
	if err := os.MkdirAll(state, 0o700); err != nil {
		return err
	}
	cfg := controld.Config{
		Listen: u.control, Store: store, Init: true, ShutdownTimeout: 2 * time.Second,
		Routers: []string{onlyRouter},
		Log:     log, LogLines: w,
	}
	if store != controld.Memory {
		cfg.Keys = []string{filepath.Join(dir, "signing.pem")}
	}
	control, err := controld.New(ctx, cfg)
	if err != nil {
		return err
	}
	keyring := filepath.Join(dir, "keyring")
	if err := os.WriteFile(keyring, control.Keyring().Format(), 0o600); err != nil {
		return errors.Join(err, control.Close())
	}

	group, ctx := errgroup.WithContext(ctx)
	// The control plane outlives the router, which takes its leave of it.
	controlCtx, stopControl := context.WithCancel(context.WithoutCancel(ctx))
	defer stopControl()
	group.Go(func() error {
		err := control.Run(controlCtx)
		if err == nil && ctx.Err() == nil {
			err = errors.New("the control plane has ended")
		}
		return err
	})
	group.Go(func() error {
		defer stopControl()
		fleet, err := u.prepare(ctx, control.URL())
		if err != nil {
			return err
		}
		if want, err := parseExtractors(u.extractors); err == nil && u.asked && !slices.Equal(fleet.Extractors, want) {
			fmt.Fprintf(a.err, "cellway: the fleet in %s has other extractors already, and keeps them; to change them: %s --url %s fleet set --extractor …\n", dir, a.self, control.URL())
		}
		group.Go(func() error {
			for _, id := range silent(u.cells, func(host string) error { return dials(ctx, host) }) {
				if ctx.Err() != nil {
					break // it ends, and nobody was asked to the end
				}
				fmt.Fprintf(a.err, "cellway: nobody listens at %s yet: start the service of cell %s, and its tenants are served\n", u.cells[id], id)
			}
			return nil
		})
		args := []string{
			"--fleet", fleet.Name, "--source", control.URL(), "--keyring", keyring, "--state-dir", state, "--router-id", onlyRouter,
			"--listen", u.listen, "--admin", u.admin, "--drain-wait", "0s", "--drain-timeout", "2s", "--drain-spread", "0s",
			"--log-format", u.logFormat, "--log-level", u.logLevel.String(),
		}
		group.Go(func() error { return a.tellUp(ctx, u, control.URL(), store, fleet) })
		return routerd.Run(ctx, args, io.Discard, a.err)
	})
	return group.Wait()
}

// onlyRouter is the id of the router that runs in this process, and of no other.
const onlyRouter = "up"

// silent returns the cells at whose addresses nobody listens: the router serves
// none of their tenants until somebody does. All are dialed at once.
func silent(cells map[string]string, dial func(host string) error) []string {
	ids := sortedKeys(cells)
	deaf := make([]bool, len(ids))
	var all sync.WaitGroup
	for i, id := range ids {
		if u, err := url.Parse(cells[id]); err == nil { // else it was refused
			all.Go(func() { deaf[i] = dial(u.Host) != nil })
		}
	}
	all.Wait()
	var out []string
	for i, id := range ids {
		if deaf[i] {
			out = append(out, id)
		}
	}
	return out
}

// dials finds out whether anybody listens there.
func dials(ctx context.Context, host string) error {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", host)
	if err != nil {
		return err
	}
	return conn.Close()
}

// listenable is an error if addr can't be listened on, whatever the machine.
func listenable(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return fmt.Errorf("%q is no host and port, as in 127.0.0.1:8080: %w", addr, cellway.ErrInvalid)
	}
	return nil
}

// reachable is how programs on this machine reach who listens on addr: where
// that is all addresses, by this machine's own.
func reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if n, err := net.LookupPort("tcp", port); err == nil {
		port = strconv.Itoa(n) // URLs have no names for it
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// settled is addr with a port of its own if it has none yet.
func settled(addr string) (string, error) {
	if _, port, err := net.SplitHostPort(addr); err != nil || port != "0" {
		return addr, err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// prepare makes the fleet, the cells and the first map, as far as they are not
// there.
func (u upFlags) prepare(ctx context.Context, control string) (api.Fleet, error) {
	cl, err := client.New(client.Config{URL: control, UserAgent: "cellway-up"})
	if err != nil {
		return api.Fleet{}, err
	}
	defer cl.Close()
	fleet, err := cl.Fleet(ctx)
	if errors.Is(err, cellway.ErrNotFound) {
		in := api.FleetSettings{Name: u.fleet, Mapping: "buckets"}
		if in.Extractors, err = parseExtractors(u.extractors); err != nil {
			return fleet, err
		}
		var made api.FleetChange
		made, err = cl.PutFleet(ctx, in, client.Write{})
		fleet = made.Fleet
	}
	if err != nil {
		return fleet, err
	}
	for _, id := range sortedKeys(u.cells) {
		_, err := cl.PutCell(ctx, cellway.CellID(id), api.CellSettings{Endpoints: []string{u.cells[id]}, State: cellway.CellActive}, client.Write{})
		if errors.Is(err, cellway.ErrExists) {
			err = confirmed(func(w client.Write) error {
				_, err := cl.UpdateCell(ctx, cellway.CellID(id), func(s *api.CellSettings) error { s.Endpoints = []string{u.cells[id]}; return nil }, w)
				return err
			})
		}
		if err != nil {
			return fleet, err // it names the cell
		}
	}
	status, err := cl.MapStatus(ctx)
	if err != nil || status.Version != 0 || len(u.cells) == 0 || fleet.Mapping != "buckets" {
		return fleet, err
	}
	_, err = cl.AssignBuckets(ctx, api.BucketAssignment{Reason: "the first cells"}, client.Write{})
	return fleet, err
}

// confirmed makes a write, and confirms it if the gate asks: who names a cell's
// new address on the command line has looked at it. It is asked from the second
// cell on.
func confirmed(write func(client.Write) error) error {
	err := write(client.Write{})
	if refused, ok := errors.AsType[*client.Error](err); ok && refused.Code == api.CodeGate {
		err = write(client.Write{Confirm: refused.Digest})
	}
	return err
}

// tellUp waits until the router listens, and says what is where.
func (a *app) tellUp(ctx context.Context, u upFlags, control, store string, fleet api.Fleet) error {
	listen, admin := reachable(u.listen), reachable(u.admin)
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/livez", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
			break
		}
		select {
		case <-ctx.Done():
			return nil // the others say why
		case <-time.After(20 * time.Millisecond):
		}
	}
	t := &facts{}
	t.add("control plane", "%s", control)
	t.add("router", "http://%s", listen)
	t.add("router's admin", "http://%s", admin)
	t.add("fleet", "%s", fleet.Name)
	if store == controld.Memory {
		t.add("store", "in memory: it ends with this process")
	} else {
		t.add("store", "%s", store)
	}
	out := lines.NewWriter(unfilled(a.out), nil)
	t.write(out)
	fmt.Fprintln(out)
	self := a.self
	if control != defaultURL {
		self = "CELLWAY_URL=" + control + " " + self
	}
	if len(u.cells) == 0 {
		fmt.Fprintf(out, "register a service that runs on this machine:\n  %s cell add cell-001 --endpoint http://127.0.0.1:9001 --state active\n  %s map assign\n", self, self)
	}
	fmt.Fprintf(out, "then ask it through the router:\n  %s\n", firstCurl("http://"+listen, fleet))
	if out.Flush(time.Second); out.Dropped() > 0 {
		fmt.Fprintln(a.err, "cellway: what is where could not be written to standard output; the flags of cellway up -h tell")
	}
	return nil
}

// firstCurl is a request that the fleet's first extractor finds a key in.
func firstCurl(url string, fleet api.Fleet) string {
	const tenant = "acme"
	if len(fleet.Extractors) == 0 {
		return "curl " + url + "/"
	}
	x := fleet.Extractors[0]
	fill := strings.NewReplacer("{tenant}", tenant, "{part}", "eu", "*", "x")
	switch x.Kind {
	case cellway.FromHeader:
		return fmt.Sprintf("curl -H '%s: %s' %s/", x.Name, tenant, url)
	case cellway.FromHost:
		return fmt.Sprintf("curl -H 'Host: %s' %s/", fill.Replace(x.Pattern), url)
	case cellway.FromQuery:
		return fmt.Sprintf("curl '%s/?%s=%s'", url, x.Name, tenant)
	case cellway.FromCookie:
		return fmt.Sprintf("curl --cookie '%s=%s' %s/", x.Name, tenant, url)
	case cellway.FromPath, cellway.FromFixed:
		return "curl " + url + fill.Replace(x.Pattern)
	}
	return fmt.Sprintf("curl -H \"Authorization: Bearer $TOKEN\" %s/", url)
}
