package control

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cellway/cellway"
)

// heardSinks are the sinks of which it is known what they have.
type heardSinks struct {
	mu  sync.Mutex
	all map[Sink]bool
}

func (h *heardSinks) add(sink Sink) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[Sink]bool{}
	}
	h.all[sink] = true
}

func (h *heardSinks) has(sink Sink) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all[sink]
}

// hearing says how long to wait until all that may have a newer map than the
// store had the time to say so, and which of those that are known have not said
// anything since this process started. A backup does not know the routers that
// came after it, so it is a lease that is waited for, unless this process was
// told of all that there are.
func (s *Service) hearing(now time.Time) (left time.Duration, unheard []string) {
	g := s.routers
	g.mu.Lock()
	left = max(0, Lease-now.Sub(g.since))
	starting := g.starting(now)
	for id, r := range g.routers {
		if r.LastSeen.Before(g.since) {
			unheard = append(unheard, "router "+id)
		}
	}
	for _, id := range g.all {
		if g.routers[id] == nil {
			unheard = append(unheard, "router "+id)
		}
	}
	g.mu.Unlock()
	slices.Sort(unheard)
	sinks := 0
	for _, sink := range s.sinks {
		if !s.heard.has(sink) {
			unheard = append(unheard, sink.String())
			sinks++
		}
	}
	if !starting && sinks == 0 {
		left = 0
	}
	return left, unheard
}

// mostUnheard is how many of those that were not heard of a refusal names.
const mostUnheard = 10

// tooSoon refuses a confirmation of a map that may not be the newest.
func (st RestoreState) tooSoon() error {
	unheard := ""
	if n := len(st.Unheard); n > 0 {
		unheard = " (not heard of yet: " + strings.Join(st.Unheard[:min(n, mostUnheard)], ", ")
		if n > mostUnheard {
			unheard += fmt.Sprintf(" and %d more", n-mostUnheard)
		}
		unheard += ")"
	}
	return fmt.Errorf("map %v is the newest so far, but routers have %v more to report%s, and a newer map that one has would be undone; wait that long, or accept the loss: cellway restore confirm --lose-newer-maps: %w",
		st.Highest.Version, ceilSecond(st.Left), unheard, cellway.ErrNotReady)
}

// ceilSecond is d in whole seconds, the next higher one.
func ceilSecond(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}
