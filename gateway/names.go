package gateway

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/front"
	"github.com/cellway/cellway/shuffle"
)

// A Resolver looks names up. A *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupSRV(ctx context.Context, service, proto, name string) (cname string, records []*net.SRV, err error)
}

// NamesConfig says which name the workers have. Name and Size must be given.
type NamesConfig struct {
	// Name is the workers' name. With a Port each of its addresses is a worker,
	// whose id is the address and the port; without one its SRV records of the
	// lowest priority are, whose ids are their targets and ports. Those of other
	// priorities are stand-bys, and in nobody's hand as long as there are some of
	// the lowest.
	//
	// The weights of records are those of the workers, divided by what divides
	// them all, and scaled down if the largest is above [shuffle.MaxWeight]. So
	// records with equal weights, whichever, are workers alike. A record of weight 0
	// beside others drains its worker; if all are 0, workers are alike.
	Name string
	Port uint16

	// Scheme is that of the workers' endpoints: http or https. If empty, http.
	Scheme string

	// Size, Sizes and Salt are those of the hands: see [shuffle.Config].
	Size  int
	Sizes map[string]int
	Salt  string

	// Every is how often the name is looked up, jittered by a tenth. If zero, 10
	// seconds.
	Every time.Duration

	// Timeout is how long that may take. If zero, 5 seconds.
	Timeout time.Duration

	// ForgetAfter is how long a worker stays in the list that the name service
	// does not tell of any more; longer than any restart takes, or tenants whose
	// requests crash workers walk through the cell. If zero, 2 minutes; if
	// negative, it goes at once.
	ForgetAfter time.Duration

	// Keep is the file that the last good list is kept in, for a start with
	// nobody to ask. If empty, it is kept in memory only. A list that is kept there
	// of another name is not used.
	Keep string

	// Resolver looks names up. If nil, net.DefaultResolver.
	Resolver Resolver

	// Log is told of new lists and of failures. If nil, nothing is logged.
	Log *slog.Logger
}

// Names is a [Source] that asks a name service. An empty answer, or an error,
// leaves the last good list in use; in which order addresses come makes no
// difference. Only [NewNames] makes useful ones.
type Names struct {
	poll
	cfg     NamesConfig
	members shuffle.Members   // of Run alone
	at      map[string]string // endpoints by id; of Run alone
}

// NewNames returns a source with the list that was kept on disk, if there is one.
// It asks nobody before Run. The error wraps [cellway.ErrInvalid].
func NewNames(cfg NamesConfig) (*Names, error) {
	cfg.Scheme = cmp.Or(cfg.Scheme, "http")
	switch {
	case cfg.Name == "":
		return nil, fmt.Errorf("workers by name: give a name: %w", cellway.ErrInvalid)
	case cfg.Scheme != "http" && cfg.Scheme != "https":
		return nil, fmt.Errorf("workers by name %s: scheme %q is neither http nor https: %w", cfg.Name, cfg.Scheme, cellway.ErrInvalid)
	case cfg.Size < 1:
		return nil, fmt.Errorf("workers by name %s: hands of %d: give at least 1: %w", cfg.Name, cfg.Size, cellway.ErrInvalid)
	case cfg.Every < 0 || cfg.Timeout < 0:
		return nil, fmt.Errorf("workers by name %s: every %v, timeout %v: neither may be negative: %w", cfg.Name, cfg.Every, cfg.Timeout, cellway.ErrInvalid)
	}
	cfg.Timeout = front.Span(cfg.Timeout, 5*time.Second)
	if cfg.Resolver == nil {
		cfg.Resolver = net.DefaultResolver
	}
	n := &Names{cfg: cfg, at: make(map[string]string)}
	n.members.ForgetAfter = front.Span(cfg.ForgetAfter, 2*time.Minute)
	n.begin(cfg.Keep, cfg.asked(), cfg.Every, cfg.Log)
	n.ask = n.lookUp
	if w := n.Current(); w != nil {
		n.recall(w)
	}
	return n, nil
}

// asked says what is looked up.
func (cfg *NamesConfig) asked() string {
	if cfg.Port == 0 {
		return "the SRV records of " + cfg.Name
	}
	return net.JoinHostPort(cfg.Name, strconv.Itoa(int(cfg.Port)))
}

// recall makes the workers of a kept list members.
func (n *Names) recall(w *Workers) {
	for _, one := range w.hands.Config().Workers {
		if n.members.Join(one) == nil { // it was checked
			n.at[one.ID] = w.endpoints[one.ID].String()
		}
	}
}

// lookUp asks once.
func (n *Names) lookUp(ctx context.Context) (*Workers, error) {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Timeout)
	defer cancel()
	found, err := n.hosts(ctx)
	if err != nil {
		return nil, fmt.Errorf("look up workers: %w", err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("look up workers: %s has none: %w", n.cfg.Name, cellway.ErrNotFound)
	}
	now := time.Now()
	// A worker that is not named keeps its weight: by what the name service had said
	// of it then, not by what it says of others now.
	for id, weight := range ticketsOf(found) {
		if err := n.members.Join(shuffle.Worker{ID: id, Weight: weight}); err != nil {
			return nil, fmt.Errorf("look up workers: %s: %w", n.cfg.Name, err)
		}
		n.at[id] = n.cfg.Scheme + "://" + id
	}
	for id := range n.at {
		if _, ok := found[id]; !ok {
			n.members.Silent(id, now)
		}
	}
	workers := n.members.Workers(now)
	for id := range n.at {
		if !slices.ContainsFunc(workers, func(w shuffle.Worker) bool { return w.ID == id }) {
			delete(n.at, id)
		}
	}
	w, err := NewWorkers(shuffle.Config{Salt: n.cfg.Salt, Size: n.cfg.Size, Sizes: n.cfg.Sizes, Workers: workers}, n.at)
	if err != nil {
		return nil, fmt.Errorf("look up workers: %s: %w", n.cfg.Name, err)
	}
	if old := n.Current(); old != nil && old.Version() == w.Version() {
		return nil, nil // the ids are the endpoints
	}
	return w, nil
}

// ticketsOf turns the weights of SRV records into those of workers. What they come to
// depends on how they compare with each other alone: a name service that gives each
// of its records a share of 100 has other weights as soon as there is one record more,
// and that must not move every hand.
func ticketsOf(weights map[string]int) map[string]int {
	divisor, most := 0, 0
	for _, w := range weights {
		most = max(most, w)
		for a, b := divisor, w; ; a, b = b, a%b {
			if b == 0 {
				divisor = a
				break
			}
		}
	}
	tickets := make(map[string]int, len(weights))
	for id, w := range weights {
		switch {
		case most == 0:
			tickets[id] = 1
		case w == 0:
			tickets[id] = 0
		case most/divisor > shuffle.MaxWeight:
			tickets[id] = max(1, (w*shuffle.MaxWeight+most/2)/most)
		default:
			tickets[id] = w / divisor
		}
	}
	return tickets
}

// hosts returns the workers' hosts and ports, with their weights.
func (n *Names) hosts(ctx context.Context) (found map[string]int, err error) {
	found = make(map[string]int)
	if n.cfg.Port != 0 {
		all, err := n.cfg.Resolver.LookupNetIP(ctx, "ip", n.cfg.Name)
		if err != nil {
			return nil, err
		}
		for _, a := range all {
			found[netip.AddrPortFrom(a.Unmap().WithZone(""), n.cfg.Port).String()] = 1
		}
	} else {
		_, all, err := n.cfg.Resolver.LookupSRV(ctx, "", "", n.cfg.Name)
		if err != nil {
			return nil, err
		}
		first := uint16(0xffff)
		for _, r := range all {
			first = min(first, r.Priority)
		}
		for _, r := range all {
			if host := strings.ToLower(strings.TrimSuffix(r.Target, ".")); r.Priority == first && host != "" && r.Port != 0 {
				at := net.JoinHostPort(host, strconv.Itoa(int(r.Port)))
				found[at] = max(found[at], int(r.Weight))
			}
		}
	}
	return found, nil
}
