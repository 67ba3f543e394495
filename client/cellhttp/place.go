package cellhttp

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
)

// A Place is where a key lives, as far as is known.
type Place struct {
	Key       cellway.Key    `json:"key"`
	Cell      cellway.CellID `json:"cell"`
	Epoch     cellway.Epoch  `json:"epoch"` // 0 if it wasn't told
	Endpoints []string       `json:"endpoints"`
}

func (p Place) validate() error {
	if err := p.Key.Validate(); err != nil {
		return err
	}
	if err := p.Cell.Validate(); err != nil {
		return err
	}
	if len(p.Endpoints) == 0 {
		return fmt.Errorf("cell %s of key %s has no endpoints: %w", p.Cell, p.Key, cellway.ErrInvalid)
	}
	for _, e := range p.Endpoints {
		if _, err := cellway.ParseEndpoint(e); err != nil {
			return fmt.Errorf("cell %s: %w", p.Cell, err)
		}
	}
	return nil
}

// A known is a key, with its place once there is one.
type known struct {
	key      cellway.Key
	place    atomic.Pointer[settled]
	due      atomic.Int64  // when to look again
	checking atomic.Bool   // somebody does
	turn     atomic.Uint32 // of the endpoints
	asking   chan struct{} // holds one token, for a question that requests wait for
	vain     atomic.Int64  // until when there is no reason to ask: nothing new came out

	mu sync.Mutex // held to replace place
}

// settled is a place with its endpoints parsed.
type settled struct {
	Place
	urls []*url.URL
}

// keys keeps those that came lately, in two layers: when the new one is full,
// it becomes the old one.
type keys struct {
	mu       sync.RWMutex
	most     int
	now, old map[cellway.Key]*known
}

func (s *keys) get(key cellway.Key) *known {
	s.mu.RLock()
	k := s.now[key]
	s.mu.RUnlock()
	if k != nil {
		return k
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k = s.now[key]; k != nil {
		return k
	}
	if k = s.old[key]; k == nil {
		k = &known{key: key, asking: make(chan struct{}, 1)}
	}
	if s.now == nil || len(s.now) >= s.most {
		s.old, s.now = s.now, map[cellway.Key]*known{}
	}
	s.now[key] = k
	return k
}

// Places returns what is known, by key, for Config.Known of the program's next
// life.
func (t *Transport) Places() []Place {
	t.keys.mu.RLock()
	defer t.keys.mu.RUnlock()
	var all []Place
	for _, layer := range []map[cellway.Key]*known{t.keys.now, t.keys.old} {
		for _, k := range layer {
			if p := k.place.Load(); p != nil {
				all = append(all, p.Place)
			}
		}
	}
	slices.SortFunc(all, func(a, b Place) int { return cmp.Compare(a.Key, b.Key) })
	return slices.CompactFunc(all, func(a, b Place) bool { return a.Key == b.Key })
}

// learn takes p for k's place, unless a higher epoch is known. It reports
// whether that changed anything.
func (t *Transport) learn(k *known, p Place) bool {
	k.due.Store(t.now() + int64(around(t.cfg.Recheck)))
	if p.validate() != nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	old := k.place.Load()
	if old != nil {
		// A geode's epoch is 0: its members change without one.
		if p.Epoch != 0 && p.Epoch < old.Epoch {
			return false
		}
		if p.Cell == old.Cell && p.Epoch == old.Epoch && slices.Equal(p.Endpoints, old.Endpoints) {
			return false
		}
	}
	s := &settled{Place: p}
	for _, e := range p.Endpoints {
		u, err := cellway.ParseEndpoint(e)
		if err != nil {
			return false
		}
		s.urls = append(s.urls, u)
	}
	k.place.Store(s)
	if old != nil && old.Cell != p.Cell {
		t.log.Info("key is in another cell", "key", k.key, "cell", p.Cell, "was", old.Cell, "epoch", p.Epoch)
	}
	return true
}

// around returns d, a fifth more or less.
func around(d time.Duration) time.Duration { return d - d/5 + rand.N(2*d/5+1) }
