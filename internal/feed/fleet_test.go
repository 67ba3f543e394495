package feed

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// A publisher makes versions of a small fleet's map.
type publisher struct {
	t       testing.TB
	key     ed25519.PrivateKey
	last    *routemap.Map
	before  *routemap.Map // the one before last
	version cellway.Version
	epoch   cellway.Epoch
}

func newPublisher(t testing.TB) *publisher {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &publisher{t: t, key: key, version: cellway.NewVersion(1, 0), epoch: cellway.NewEpoch(1, 100)}
}

func (p *publisher) ring() routemap.Keyring {
	return routemap.Keyring{{Key: p.key.Public().(ed25519.PublicKey)}}
}

func content(fleet string) routemap.Content {
	c := routemap.Content{Settings: routemap.Settings{Fleet: fleet, Buckets: 8,
		Extractors: []cellway.Extractor{{Kind: cellway.FromHeader, Name: "X-Tenant-Id"}}}}
	for i := range 2 {
		c.Cells = append(c.Cells, cellway.Cell{
			ID: cellway.CellID(fmt.Sprintf("cell-%03d", i+1)), Endpoints: []string{fmt.Sprintf("http://127.0.0.1:%d", 9001+i)},
			State: cellway.CellActive, Admit: 100,
		})
	}
	for b := range uint32(8) {
		c.Owners = append(c.Owners, cellway.BucketOwner{Bucket: b, Cell: c.Cells[b%2].ID})
	}
	return c
}

// base publishes a version with a fresh base. Each has a key more than the one
// before, so no two bases are alike.
func (p *publisher) base() routemap.Version {
	p.t.Helper()
	m := p.last
	if m == nil {
		m = p.must(routemap.Build(content("shop"), p.epoch))
		p.epoch++
	} else {
		m = p.must(p.entry().Fold())
	}
	return p.publish(m)
}

// overlay publishes a version that differs from the last in its overlay.
func (p *publisher) overlay() routemap.Version {
	p.t.Helper()
	return p.publish(p.entry())
}

// entry returns the last map with one entry more.
func (p *publisher) entry() *routemap.Map {
	p.t.Helper()
	tenant := cellway.Key(fmt.Sprintf("tenant-%d", p.version.Sequence()))
	cs, next := p.last.Number(routemap.ChangeSet{Entries: []cellway.Entry{{Key: tenant, Cell: "cell-001"}}}, p.epoch)
	p.epoch = next
	return p.must(p.last.Apply(cs))
}

func (p *publisher) publish(m *routemap.Map) routemap.Version {
	p.t.Helper()
	p.version++
	m, v, err := routemap.Publish(m, routemap.Publication{
		Version: p.version, Parent: p.last, CreatedAt: time.Unix(1_800_000_000, 0).UTC(), Signers: []routemap.Signer{routemap.LocalSigner(p.key)},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.before, p.last = p.last, m
	return v
}

func (p *publisher) must(m *routemap.Map, err error) *routemap.Map {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	return m
}

// opened returns a version as a feed has it when it was accepted.
func (p *publisher) opened(v routemap.Version) *accepted {
	p.t.Helper()
	m, err := v.Open(p.ring(), false)
	if err != nil {
		p.t.Fatal(err)
	}
	return &accepted{m: m, overlay: v.Overlay, source: "test"}
}

// fixedKeys are keys that a test may change.
type fixedKeys struct {
	mu   sync.Mutex
	ring routemap.Keyring
}

func (k *fixedKeys) Keyring() routemap.Keyring {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ring
}

func (k *fixedKeys) set(ring routemap.Keyring) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ring = ring
}

// A sink remembers the maps that it was given.
type sink struct {
	mu   sync.Mutex
	maps []*routemap.Map
	fail func(m *routemap.Map) error // if not nil, called first

	replaced []cellway.Version // maps that came by Replace
}

var errSink = errors.New("not this one")

func (s *sink) Swap(m *routemap.Map) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		if err := s.fail(m); err != nil {
			return err
		}
	}
	s.maps = append(s.maps, m)
	return nil
}

func (s *sink) Replace(m *routemap.Map) error {
	s.mu.Lock()
	s.replaced = append(s.replaced, m.Version())
	s.mu.Unlock()
	return s.Swap(m)
}

func (s *sink) setFail(fail func(m *routemap.Map) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
}

// versions returns the sequences of what the sink was given.
func (s *sink) versions() (all []uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.maps {
		all = append(all, m.Version().Sequence())
	}
	return all
}

func testLog(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}
