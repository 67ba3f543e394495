package shuffle

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MaxWeight is the largest weight of a worker.
const MaxWeight = 256

// A Worker is what hands are made of: a process, a machine, anything that serves
// tenants.
type Worker struct {
	// ID names the worker; never empty, once in a snapshot. A worker that comes
	// back under its old id gets its old tenants back.
	ID string `json:"id"`
	// Zone is what may fail together with other workers. Workers without one
	// share the zone called "".
	Zone string `json:"zone,omitempty"`
	// Weight is how many tickets the worker has, up to [MaxWeight]. Zero drains
	// it: it stays in the list but in nobody's hand. See [Even] for workers alike.
	Weight int `json:"weight"`
}

// Even returns a worker of weight 1 in no particular zone for each of the ids.
func Even(ids ...string) []Worker {
	workers := make([]Worker, len(ids))
	for i, id := range ids {
		workers[i] = Worker{ID: id, Weight: 1}
	}
	return workers
}

// A Config is all that hands depend on, besides the names of tenants.
type Config struct {
	// Salt makes the hands of this cell different from those of others, and
	// unknown to those who don't know it. It may be empty. It is compared by its
	// bytes; sixteen random ones keep it secret though versions are public.
	Salt string `json:"salt,omitempty"`
	// Size is the number of workers in a hand, at least 1.
	Size int `json:"size"`
	// Sizes gives tenants that carry more load than others a hand of another size.
	Sizes map[string]int `json:"sizes,omitempty"`
	// Strict refuses workers with which a hand could lean on a zone more than
	// on another because that one ran out. Otherwise the other zones fill in.
	Strict bool `json:"strict,omitempty"`
	// Workers may be in any order.
	Workers []Worker `json:"workers"`
}

// A Snapshot deals hands from one list of workers by hrw-1. It never changes.
// Only [NewSnapshot] makes useful ones.
type Snapshot struct {
	cfg     Config // the caller's, copied; Workers by id
	version string // of cfg
	prefix  []byte // what a tenant's key is made of, up to the tenant
	zones   []zone // with at least one worker of weight above 0, by name
	dealt   int    // how many workers have a weight above 0
	most    int    // the largest hand that Strict permits
}

// A zone is the workers of one zone that take part, as the dealing loop likes
// them.
type zone struct {
	hash    uint64
	workers []Worker
	keys    []uint64 // one for each worker, or one for each ticket if first is set
	first   []uint32 // where worker i's tickets begin; one more at the end; nil if all weights are 1
}

// NewSnapshot returns a snapshot of cfg, which it copies.
//
// Its error wraps [ErrInvalid] if a name is empty or twice in the list, a weight
// or a size out of range; [ErrTooFew] if a hand of the largest size asked
// for can't be dealt from the workers whose weight is not 0.
func NewSnapshot(cfg Config) (*Snapshot, error) {
	cfg.Sizes = maps.Clone(cfg.Sizes)
	cfg.Workers = slices.Clone(cfg.Workers)
	slices.SortFunc(cfg.Workers, func(a, b Worker) int { return strings.Compare(a.ID, b.ID) })
	if err := check(cfg); err != nil {
		return nil, err
	}
	s := &Snapshot{cfg: cfg, version: version(cfg)}
	s.prefix = appendPart([]byte("hrw1/tenant\x00"), cfg.Salt)
	s.addZones()
	largest, whose := cfg.Size, "of the usual size"
	for _, tenant := range slices.Sorted(maps.Keys(cfg.Sizes)) {
		if size := cfg.Sizes[tenant]; size > largest {
			largest, whose = size, fmt.Sprintf("of tenant %q", tenant)
		}
	}
	if err := s.fits(largest); err != nil {
		return nil, fmt.Errorf("hand %s: %w", whose, err)
	}
	return s, nil
}

// check reports what no list of workers could mend.
func check(cfg Config) error {
	if cfg.Size < 1 {
		return fmt.Errorf("size of hands %d: %w: want at least 1", cfg.Size, ErrInvalid)
	}
	for _, tenant := range slices.Sorted(maps.Keys(cfg.Sizes)) {
		if size := cfg.Sizes[tenant]; size < 1 {
			return fmt.Errorf("size of the hand of tenant %q, %d: %w: want at least 1", tenant, size, ErrInvalid)
		}
	}
	for i, w := range cfg.Workers {
		switch {
		case w.ID == "":
			return fmt.Errorf("worker without an id in zone %q: %w: name it", w.Zone, ErrInvalid)
		case i > 0 && w.ID == cfg.Workers[i-1].ID:
			return fmt.Errorf("worker %q: %w: listed twice", w.ID, ErrInvalid)
		case w.Weight < 0 || w.Weight > MaxWeight:
			return fmt.Errorf("worker %q: %w: weight %d, want 0 to %d", w.ID, ErrInvalid, w.Weight, MaxWeight)
		}
	}
	return nil
}

// addZones fills s.zones and what follows from it.
func (s *Snapshot) addZones() {
	at := map[string]int{}
	for _, w := range s.cfg.Workers {
		if w.Weight > 0 {
			at[w.Zone] = 0
		}
	}
	for i, name := range slices.Sorted(maps.Keys(at)) {
		at[name] = i
		s.zones = append(s.zones, zone{hash: key("hrw1/zone", s.cfg.Salt, name)})
	}
	for _, w := range s.cfg.Workers {
		if w.Weight == 0 {
			continue
		}
		z := &s.zones[at[w.Zone]]
		z.workers = append(z.workers, w)
		s.dealt++
	}
	smallest := s.dealt
	for i := range s.zones {
		s.zones[i].addKeys(s.cfg.Salt)
		smallest = min(smallest, len(s.zones[i].workers))
	}
	s.most = s.dealt
	if s.cfg.Strict {
		s.most = smallest * len(s.zones)
	}
}

// addKeys hashes the tickets of z's workers.
func (z *zone) addKeys(salt string) {
	for _, w := range z.workers {
		z.first = append(z.first, uint32(len(z.keys)))
		for r := range w.Weight {
			ticket := binary.BigEndian.AppendUint32(nil, uint32(r))
			z.keys = append(z.keys, key("hrw1/worker", salt, w.ID, string(ticket)))
		}
	}
	z.first = append(z.first, uint32(len(z.keys)))
	if len(z.keys) == len(z.workers) {
		z.first = nil
	}
}

// fits says why a hand of k can't be dealt.
func (s *Snapshot) fits(k int) error {
	switch {
	case k < 1:
		return fmt.Errorf("%d workers: %w: want at least 1", k, ErrInvalid)
	case k > s.dealt:
		return fmt.Errorf("%w: it has %d, and the list has %d of weight above 0; make hands smaller, or add workers", ErrTooFew, k, s.dealt)
	case k > s.most:
		return fmt.Errorf("%d workers spread evenly over %d zones: %w in the smallest zone, which has %d; make hands smaller, or add workers there", k, len(s.zones), ErrTooFew, s.most/len(s.zones))
	}
	return nil
}

// version is a hash of all of cfg, whose workers are in order.
func version(cfg Config) string {
	var text bytes.Buffer
	part := func(s string) {
		text.Write(binary.BigEndian.AppendUint32(nil, uint32(len(s))))
		text.WriteString(s)
	}
	number := func(n int) { text.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) }
	text.WriteString("hrw1/version\x00")
	part(cfg.Salt)
	number(cfg.Size)
	strict := 0
	if cfg.Strict {
		strict = 1
	}
	number(strict)
	number(len(cfg.Sizes))
	for _, tenant := range slices.Sorted(maps.Keys(cfg.Sizes)) {
		part(tenant)
		number(cfg.Sizes[tenant])
	}
	number(len(cfg.Workers))
	for _, w := range cfg.Workers {
		part(w.ID)
		part(w.Zone)
		number(w.Weight)
	}
	sum := sha256.Sum256(text.Bytes())
	return hex.EncodeToString(sum[:])
}

// Version names the content of s: snapshots with the same version deal the same
// hands. It is a SHA-256 in hexadecimal.
func (s *Snapshot) Version() string { return s.version }

// Config returns a copy of what s was made from, with the workers by id.
func (s *Snapshot) Config() Config {
	cfg := s.cfg
	cfg.Sizes = maps.Clone(cfg.Sizes)
	cfg.Workers = slices.Clone(cfg.Workers)
	return cfg
}

// Size returns how many workers are in the hand of tenant.
func (s *Snapshot) Size(tenant string) int {
	if size, ok := s.cfg.Sizes[tenant]; ok {
		return size
	}
	return s.cfg.Size
}
