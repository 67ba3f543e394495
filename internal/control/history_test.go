package control_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

// A forgetful store can go back to an earlier state while it is open, as one
// does whose last commits did not reach the machine that took over.
type forgetful struct {
	now atomic.Pointer[memstore.Store]
}

func newForgetful() *forgetful {
	f := &forgetful{}
	f.now.Store(memstore.New())
	return f
}

func (f *forgetful) copied(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := f.now.Load().Backup(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func (f *forgetful) goBack(t testing.TB, to []byte) {
	t.Helper()
	old, err := memstore.Restore(bytes.NewReader(to))
	if err != nil {
		t.Fatal(err)
	}
	f.now.Store(old)
}

func (f *forgetful) View(ctx context.Context, read func(store.Tx) error) error {
	return f.now.Load().View(ctx, read)
}
func (f *forgetful) Update(ctx context.Context, write func(store.Tx) error) error {
	return f.now.Load().Update(ctx, write)
}
func (f *forgetful) PutBlob(ctx context.Context, digest [32]byte, blob []byte) error {
	return f.now.Load().PutBlob(ctx, digest, blob)
}
func (f *forgetful) Blob(ctx context.Context, digest [32]byte) ([]byte, error) {
	return f.now.Load().Blob(ctx, digest)
}
func (f *forgetful) DropBlobs(ctx context.Context, before time.Time, keep func([32]byte) bool) (int, error) {
	return f.now.Load().DropBlobs(ctx, before, keep)
}
func (f *forgetful) Backup(ctx context.Context, w io.Writer) error {
	return f.now.Load().Backup(ctx, w)
}
func (f *forgetful) Close() error { return nil }

// What is lost under a running process: each time it is noticed by the next
// write or look, nothing but drains goes on, and they do.
func TestStoreThatLosesCommitsHoldsBackAllButDrains(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, s *control.Service){
		"a change of the map": func(t *testing.T, s *control.Service) {
			if _, _, err := s.PutOverride(t.Context(), by, override("acme", cellway.Quarantine, ""), 0); err != nil {
				t.Fatal(err)
			}
		},
		"a tenant that its bucket places": func(t *testing.T, s *control.Service) {
			if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "beta"}, 0); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, wait := range []time.Duration{0, 3 * time.Second} {
			t.Run(fmt.Sprintf("%s after %v", name, wait), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					st := newForgetful()
					s := open(t, st)
					fleet(t, s, routemap.Settings{}, 4)
					time.Sleep(time.Second)
					then := st.copied(t)
					lose(t, s)
					time.Sleep(time.Second)
					newest := s.Newest()
					st.goBack(t, then)
					time.Sleep(wait)

					_, c, err := s.Drain(t.Context(), by, "cell-002", 0)
					if err != nil {
						t.Fatalf("drain after a loss: %v", err)
					}
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					defer cancel()
					p, err := s.Await(ctx, newest.Map.Version())
					if err != nil || p.Map.Cell("cell-002").Admit != 0 || !p.Contains(c.Seq) {
						t.Fatalf("the drain is not published: %v", err)
					}
					if p.Map.Version().Incarnation() <= newest.Map.Version().Incarnation() {
						t.Errorf("map %v follows %v, whose incarnation was used", p.Map.Version(), newest.Map.Version())
					}
					if was, is := newest.Map.Lookup("acme"), p.Map.Lookup("acme"); was.Code != is.Code || was.Epoch != is.Epoch {
						t.Errorf("acme answered %q at %v, now %q at %v: more than a drain went out", was.Code, was.Epoch, is.Code, is.Epoch)
					}
					if err := routemap.Accept(newest.Map, p.Map); err != nil {
						t.Error(err)
					}
					if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "gamma"}, 0); !errors.Is(err, cellway.ErrNotReady) {
						t.Errorf("a sign-up: %v, want it held back", err)
					}
					if a := alarm(s, control.AlarmHalted); a == nil {
						t.Error("no alarm tells that publishing is halted")
					}
					confirm(t, s)
					if _, _, err := s.PutTenant(t.Context(), by, control.Tenant{ID: "gamma"}, 0); err != nil {
						t.Errorf("a sign-up after the confirmation: %v", err)
					}
					time.Sleep(time.Second)
					agree(t, s)
					agree(t, open(t, st))
				})
			})
		}
	}
}

// A store whose newest map is lost, but no change: the map that routers have is
// put back under the next one.
func TestLostVersionIsPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newForgetful()
		s := open(t, st)
		fleet(t, s, routemap.Settings{}, 3)
		time.Sleep(time.Second)
		then := st.copied(t)
		for i := range 5 {
			if _, _, err := s.Drain(t.Context(), by, "cell-001", uint8(90-i)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		newest := s.Newest().Map.Version()
		st.goBack(t, then)
		time.Sleep(3 * time.Second)
		if got := s.Newest().Map.Version(); got != newest {
			t.Errorf("after the loss %v is served, want still %v", got, newest)
		}
		if state, err := s.RestoreState(t.Context()); err != nil || state.Restored == nil || state.Highest.Version != newest {
			t.Errorf("state %+v, %v", state, err)
		}
		if _, _, err := s.Drain(t.Context(), by, "cell-002", 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if _, _, err := s.OpenVersion(t.Context(), newest); err != nil {
			t.Errorf("the lost version: %v, want it back in the store", err)
		}
		m := s.Newest().Map
		if m.Cell("cell-001").Admit != 86 || m.Cell("cell-002").Admit != 0 {
			t.Errorf("admits are %d and %d, want 86 and 0", m.Cell("cell-001").Admit, m.Cell("cell-002").Admit)
		}
		again := open(t, st)
		if got := again.Newest().Map.Version(); got != m.Version() {
			t.Errorf("a restart starts at %v, want %v", got, m.Version())
		}
		confirm(t, again)
		time.Sleep(time.Second)
		agree(t, again)
	})
}

// Another process has written to the older state, so that the numbers fit and
// the changes don't.
func TestOtherHistoryOfTheSameLengthIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newForgetful()
		first := open(t, st)
		fleet(t, first, routemap.Settings{}, 3)
		time.Sleep(time.Second)
		then := st.copied(t)
		if _, _, err := first.PutOverride(t.Context(), by, override("acme", cellway.Quarantine, ""), 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond) // first looks at the store at whole seconds: not before the other one has written
		newest := first.Newest().Map.Version()
		st.goBack(t, then)
		other, err := control.Open(t.Context(), config(t, st)) // publishes nothing
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := other.PutOverride(t.Context(), by, override("beta", cellway.Quarantine, ""), 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if r := first.Accepted().Lookup("acme"); r.Code != "" {
			t.Errorf("acme answers %q by the accepted map, whose change is lost", r.Code)
		}
		if r := first.Accepted().Lookup("beta"); r.Code != cellway.KeyQuarantined {
			t.Errorf("beta answers %q by the accepted map, want the store's", r.Code)
		}
		if got := first.Newest().Map.Version(); got != newest {
			t.Errorf("%v was published over a history that is not the store's", got)
		}
		if state, err := first.RestoreState(t.Context()); err != nil || state.Restored == nil {
			t.Errorf("state %+v, %v, want a halt", state, err)
		}
	})
}

// confirm confirms the newest map of all.
func confirm(t testing.TB, s *control.Service) {
	t.Helper()
	state, err := s.RestoreState(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ConfirmRestore(t.Context(), by, state.Highest.Version, state.Highest.Digest, true); err != nil {
		t.Fatal(err)
	}
}

// alarm returns the first alarm with that code, or nil.
func alarm(s *control.Service, code control.AlarmCode) *control.Alarm {
	for _, a := range s.Alarms() {
		if a.Code == code {
			return &a
		}
	}
	return nil
}
