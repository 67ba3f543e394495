package control_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

// A memSink keeps versions in memory, and fails when told.
type memSink struct {
	mu     sync.Mutex
	failed int
	fail   error
	all    []routemap.Version
}

func (m *memSink) Write(_ context.Context, v routemap.Version) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil {
		m.failed++
		return m.fail
	}
	m.all = append(m.all, v)
	return nil
}

func (m *memSink) Newest(context.Context) (*routemap.Manifest, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.all) == 0 {
		return nil, nil
	}
	return m.all[len(m.all)-1].Manifest, nil
}

func (m *memSink) String() string { return "memory" }

func (m *memSink) set(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fail = err
}

func (m *memSink) newest() (cellway.Version, int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.all) == 0 {
		return 0, 0
	}
	return m.all[len(m.all)-1].Manifest.Version, len(m.all)
}

func TestFailedSinkIsTriedUntilItWorksAndHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		sink := &memSink{fail: errors.New("no space left")}
		s, stop := start(t, st, sink)
		fleet(t, s, routemap.Settings{}, 2)
		_, c, err := s.Drain(t.Context(), by, "cell-001", 0)
		if err != nil {
			t.Fatal(err)
		}
		if published(t, s, c).Cell("cell-001").Admit != 0 {
			t.Error("the drain is not published")
		}
		time.Sleep(10 * time.Minute)
		if a := alarm(s, control.AlarmSink); a == nil || a.Subject != "memory" || time.Since(a.Since) < 9*time.Minute {
			t.Errorf("alarm %+v", a)
		}
		if sink.failed < 15 || sink.failed > 60 {
			t.Errorf("tried %d times in ten minutes", sink.failed)
		}
		sink.set(nil)
		time.Sleep(time.Minute)
		if v, n := sink.newest(); v != s.Newest().Map.Version() || n != 1 {
			t.Errorf("%d versions are written, the last is %v, want only %v", n, v, s.Newest().Map.Version())
		}
		if a := alarm(s, control.AlarmSink); a != nil {
			t.Errorf("alarm %+v though it works", a)
		}
		// What is announced last is written before the end.
		if _, _, err := s.Undrain(t.Context(), by, "cell-001", 100); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		stop()
		if v, _ := sink.newest(); v != s.Newest().Map.Version() {
			t.Errorf("at the end %v is written, %v was published", v, s.Newest().Map.Version())
		}
		// A place that was emptied meanwhile has the newest again after a start.
		empty := &memSink{}
		again := open(t, st, empty)
		time.Sleep(time.Second)
		if v, _ := empty.newest(); v != again.Newest().Map.Version() {
			t.Errorf("after a restart %v is written, want %v", v, again.Newest().Map.Version())
		}
	})
}

// A hung sink is not waited for.
func TestHungSinkHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung := hungSink{make(chan struct{})}
		s, stop := start(t, memstore.New(), hung)
		fleet(t, s, routemap.Settings{}, 2)
		_, c, err := s.Drain(t.Context(), by, "cell-001", 0)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		published(t, s, c)
		if d := time.Since(begin); d > 0 {
			t.Errorf("a drain waited %v for a sink", d)
		}
		close(hung.c)
		stop()
	})
}

type hungSink struct{ c chan struct{} }

func (h hungSink) Write(context.Context, routemap.Version) error      { <-h.c; return nil }
func (h hungSink) Newest(context.Context) (*routemap.Manifest, error) { return nil, nil }
func (h hungSink) String() string                                     { return "hung" }

// A directory has a higher map than the store: somebody lost a store.
func TestSinkWithAHigherMapHaltsPublishing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &memSink{}
		old, stop := start(t, memstore.New(), sink)
		fleet(t, old, routemap.Settings{}, 2)
		time.Sleep(time.Second)
		stop()
		written, _ := sink.newest()
		s := open(t, memstore.New(), sink)
		if _, _, err := s.PutFleet(t.Context(), by, routemap.Settings{Fleet: "shop", Buckets: 16}, 0); !errors.Is(err, cellway.ErrNotReady) {
			t.Errorf("an empty store went on as if nothing had been: %v", err)
		}
		state, err := s.RestoreState(t.Context())
		if err != nil || state.Highest.Version != written {
			t.Errorf("state %+v, %v", state, err)
		}
		confirm(t, s)
		fleet(t, s, routemap.Settings{}, 2)
		time.Sleep(time.Second)
		if v, _ := sink.newest(); v <= written {
			t.Errorf("after the confirmation %v is written, there was %v", v, written)
		}
	})
}

func TestSinkOfAnotherFleetIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &memSink{}
		st := memstore.New()
		s, stop := start(t, st, sink)
		fleet(t, s, routemap.Settings{}, 2)
		time.Sleep(time.Second)
		stop()
		other := memstore.New()
		o, stop := start(t, other)
		if _, _, err := o.PutFleet(t.Context(), by, routemap.Settings{Fleet: "bank", Mapping: routemap.Full}, 0); err != nil {
			t.Fatal(err)
		}
		stop()
		cfg := config(t, other)
		cfg.Sinks = []control.Sink{sink}
		if _, err := control.Open(t.Context(), cfg); !errors.Is(err, routemap.ErrFleet) {
			t.Errorf("the maps of another fleet were about to be written over: %v", err)
		}
	})
}

// versions makes consecutive versions of a map.
func versions(t testing.TB, n int) []routemap.Version {
	t.Helper()
	m, err := routemap.Build(routemap.Content{Settings: routemap.Settings{Fleet: "shop", Mapping: routemap.Full}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	var out []routemap.Version
	var parent *routemap.Map
	for i := range n {
		if m, err = m.Apply(routemap.ChangeSet{Cells: []cellway.Cell{{ID: cellway.CellID(fmt.Sprintf("cell-%03d", i))}}}); err != nil {
			t.Fatal(err)
		}
		p, v, err := routemap.Publish(m, routemap.Publication{Version: cellway.NewVersion(1, uint32(i+1)), Parent: parent, CreatedAt: time.Now(), Signers: []routemap.Signer{signer()}})
		if err != nil {
			t.Fatal(err)
		}
		parent = p
		out = append(out, v)
	}
	return out
}

// readable opens what a directory says is newest, as a router does.
func readable(t testing.TB, dir string) cellway.Version {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "manifest"))
	if err != nil {
		t.Fatal(err)
	}
	man, err := routemap.DecodeManifest(raw)
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.ReadFile(filepath.Join(dir, "parts", man.Base.Digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	over, err := os.ReadFile(filepath.Join(dir, "parts", man.Overlay.Digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	b, err := routemap.DecodeBase(base)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := routemap.Open(man, b, over); err != nil {
		t.Fatal(err)
	}
	return man.Version
}

// A stepCtx ends after so many looks at it: a process that is killed between
// two files.
type stepCtx struct {
	context.Context
	left int
}

func (c *stepCtx) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestDirectoryIsReadableAfterEveryStep(t *testing.T) {
	all := versions(t, 2)
	for steps := 0; ; steps++ {
		dir := t.TempDir()
		sink, err := control.NewDirSink(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := sink.Write(t.Context(), all[0]); err != nil {
			t.Fatal(err)
		}
		err = sink.Write(&stepCtx{t.Context(), steps}, all[1])
		sink.Close()
		if got := readable(t, dir); err != nil && got != all[0].Manifest.Version || err == nil && got != all[1].Manifest.Version {
			t.Errorf("stopped after %d steps with %v, the directory has %v", steps, err, got)
		}
		// A file that was being written when the power went, and half a part.
		part := filepath.Join(dir, "parts", all[1].Manifest.Overlay.Digest.String())
		for name, b := range map[string][]byte{part: all[1].Overlay[:1], filepath.Join(dir, "manifest.new-XYZ"): {1}} {
			if err := os.WriteFile(name, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		again, err2 := control.NewDirSink(dir)
		if err2 != nil {
			t.Fatal(err2)
		}
		if err := again.Write(t.Context(), all[1]); err != nil {
			t.Fatal(err)
		}
		if got := readable(t, dir); got != all[1].Manifest.Version {
			t.Errorf("mended, the directory has %v", got)
		}
		again.Close()
		if err == nil {
			if steps < 4 {
				t.Errorf("only %d steps", steps)
			}
			return
		}
	}
}

func TestDirectoryGoesForwardOnly(t *testing.T) {
	all := versions(t, 3)
	dir := t.TempDir()
	sink, err := control.NewDirSink(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	if man, err := sink.Newest(t.Context()); man != nil || err != nil {
		t.Errorf("an empty directory has %v, %v", man, err)
	}
	for range 2 {
		if err := sink.Write(t.Context(), all[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := sink.Write(t.Context(), all[0]); !errors.Is(err, cellway.ErrConflict) {
		t.Errorf("an older version: %v", err)
	}

	_, other, err := routemap.Publish(mapOf(t, all[2]), routemap.Publication{Version: all[1].Manifest.Version, CreatedAt: time.Now(), Signers: []routemap.Signer{signer()}})
	if err != nil {
		t.Fatal(err)
	}
	if err := sink.Write(t.Context(), other); !errors.Is(err, cellway.ErrConflict) {
		t.Errorf("another version of the same number: %v", err)
	}
	if got := readable(t, dir); got != all[1].Manifest.Version {
		t.Errorf("the directory has %v", got)
	}
}

func mapOf(t testing.TB, v routemap.Version) *routemap.Map {
	t.Helper()
	b, err := routemap.DecodeBase(v.Base)
	if err != nil {
		t.Fatal(err)
	}
	m, err := routemap.Open(v.Manifest, b, v.Overlay)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestDirectoryKeepsTheNewestVersions(t *testing.T) {
	all := versions(t, 80)
	dir := t.TempDir()
	sink, err := control.NewDirSink(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if err := sink.Write(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
	sink.Close()
	files := func(sub string) int {
		list, err := os.ReadDir(filepath.Join(dir, sub))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if n := files("versions"); n != 80 {
		t.Errorf("%d versions an instant later, want all: somebody may be reading", n)
	}
	if err := os.WriteFile(filepath.Join(dir, "parts", "0f.new-XYZ"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * time.Hour)
	for _, sub := range []string{"versions", "parts"} {
		list, err := os.ReadDir(filepath.Join(dir, sub))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			if err := os.Chtimes(filepath.Join(dir, sub, f.Name()), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	again, err := control.NewDirSink(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := again.Write(t.Context(), all[79]); err != nil {
		t.Fatal(err)
	}
	// 64 overlays and the one base that they share.
	if v, p := files("versions"), files("parts"); v != 64 || p != 65 {
		t.Errorf("%d versions and %d parts are kept, want 64 and 65", v, p)
	}
	if got := readable(t, dir); got != all[79].Manifest.Version {
		t.Errorf("the directory has %v", got)
	}
}

// A deafSink answers no call before it is released, whatever becomes of the
// call's context, as a folder on a disk of the network that hangs.
type deafSink struct {
	memSink
	release chan struct{}
	inside  atomic.Int64
	most    atomic.Int64
}

func (d *deafSink) enter() {
	n := d.inside.Add(1)
	d.most.Store(max(d.most.Load(), n))
	<-d.release
	d.inside.Add(-1)
}

func (d *deafSink) Write(ctx context.Context, v routemap.Version) error {
	d.enter()
	return d.memSink.Write(ctx, v)
}

func (d *deafSink) Newest(ctx context.Context) (*routemap.Manifest, error) {
	d.enter()
	return d.memSink.Newest(ctx)
}

func TestSinkThatHearsNothingIsLeftAloneAndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &deafSink{release: make(chan struct{})}
		begin := time.Now()
		s, stop := start(t, memstore.New(), sink)
		if d := time.Since(begin); d > 5*time.Second {
			t.Errorf("the start took %v", d)
		}
		if a := alarm(s, control.AlarmSink); a == nil {
			t.Error("no alarm of a place that did not answer at the start")
		}
		fleet(t, s, routemap.Settings{}, 2)
		_, c, err := s.Drain(t.Context(), by, "cell-001", 0)
		if err != nil {
			t.Fatal(err)
		}
		if published(t, s, c).Cell("cell-001").Admit != 0 {
			t.Error("the drain is not published")
		}
		time.Sleep(10 * time.Minute)
		if a := alarm(s, control.AlarmSink); a == nil || !a.Since.Equal(begin.Add(5*time.Second)) || s.Stats().SinkErrors == 0 {
			t.Errorf("alarm %+v, %d errors", a, s.Stats().SinkErrors)
		}
		close(sink.release)
		time.Sleep(time.Minute)
		if v, _ := sink.newest(); v != s.Newest().Map.Version() {
			t.Errorf("%v is written, %v published", v, s.Newest().Map.Version())
		}
		if a := alarm(s, control.AlarmSink); a != nil || sink.most.Load() != 1 {
			t.Errorf("alarm %+v; %d calls at once", a, sink.most.Load())
		}
		stop()
	})
}

func TestSinkThatHearsNothingDoesNotHoldUpTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &deafSink{release: make(chan struct{})}
		s, stop := start(t, memstore.New(), sink)
		fleet(t, s, routemap.Settings{}, 2)
		time.Sleep(time.Second)
		begin := time.Now()
		stop()
		if d := time.Since(begin); d > 10*time.Second {
			t.Errorf("the end took %v", d)
		}
		close(sink.release)
	})
}
