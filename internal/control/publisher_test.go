package control_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/fault"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/internal/store/faultstore"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

// A pausing store hangs once, in the next write of a blob after arm.
type pausing struct {
	control.Store
	arm    atomic.Bool
	resume chan struct{}
}

func (p *pausing) PutBlob(ctx context.Context, digest [32]byte, blob []byte) error {
	if p.arm.CompareAndSwap(true, false) {
		<-p.resume
	}
	return p.Store.PutBlob(ctx, digest, blob)
}

// A slow store takes its time for each update.
type slow struct{ control.Store }

func (s slow) Update(ctx context.Context, write func(store.Tx) error) error {
	return s.Store.Update(ctx, func(tx store.Tx) error {
		time.Sleep(100 * time.Millisecond)
		return write(tx)
	})
}

// However many writes wait, a drain overtakes them.
func TestDrainOvertakesTheWritesOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, slow{memstore.New()})
		fleet(t, s, routemap.Settings{Mapping: routemap.Full}, 3)
		time.Sleep(time.Second)
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() { register(t, s, cellway.TenantID(fmt.Sprintf("t%d", i))) })
		}
		time.Sleep(time.Second)
		begin := time.Now()
		_, c, err := s.Drain(t.Context(), by, "cell-001", 0)
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(begin); d > 400*time.Millisecond {
			t.Errorf("it waited %v", d)
		}
		published(t, s, c)
		if d := time.Since(begin); d > time.Second {
			t.Errorf("it was published after %v", d)
		}
		wg.Wait()
	})
}

// A version that is being made while changes come is not the last one.
func TestChangesThatComeWhileAVersionIsMadeAreNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &pausing{Store: memstore.New(), resume: make(chan struct{})}
		s := open(t, st)
		fleet(t, s, routemap.Settings{Mapping: routemap.Full}, 3)
		time.Sleep(time.Second)
		st.arm.Store(true)
		register(t, s, "first")
		synctest.Wait()
		var last control.Change
		for i := range 20 {
			var err error
			if _, last, err = s.PutTenant(t.Context(), by, control.Tenant{ID: cellway.TenantID(fmt.Sprintf("t%d", i))}, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Fold(t.Context()); err != nil {
			t.Fatal(err)
		}
		close(st.resume)
		if m := published(t, s, last); m.Keys() != 21 {
			t.Errorf("%d keys are published, want 21", m.Keys())
		}
		time.Sleep(time.Second)
		agree(t, s)
	})
}

// While nothing can be published, drains are accepted and wait with the rest;
// what waits costs no map each.
func TestWhatWaitsForASignerIsPublishedInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sick := &sickSigner{Signer: signer()}
		cfg := config(t, memstore.New())
		cfg.Signers = []routemap.Signer{sick}
		s, err := control.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); s.Run(ctx) }()
		defer func() { cancel(); <-done }()
		fleet(t, s, routemap.Settings{Mapping: routemap.Full}, 3)
		time.Sleep(time.Second)
		before := s.Newest().Map.Version()
		sick.fail.Store(true)
		for i := range 200 {
			register(t, s, cellway.TenantID(fmt.Sprintf("t%d", i)))
		}
		time.Sleep(time.Minute)
		if _, _, err := s.Drain(t.Context(), by, "cell-001", 0); err != nil {
			t.Errorf("drain with a sick signer: %v", err)
		}
		if st := s.Stats(); st.Waiting != 201 || st.PublishErrors < 30 {
			t.Errorf("%d wait, %d errors", st.Waiting, st.PublishErrors)
		}
		if a := alarm(s, control.AlarmPublishing); a == nil {
			t.Error("no alarm")
		}
		sick.fail.Store(false)
		time.Sleep(2 * time.Second)
		// One, or two if the drain came in the middle of the last try.
		if v := s.Newest().Map.Version(); v <= before || v > before+2 {
			t.Errorf("%d versions for what waited", v-before)
		}
		agree(t, s)
	})
}

type sickSigner struct {
	routemap.Signer
	fail atomic.Bool
}

func (s *sickSigner) Sign(message []byte) ([]byte, error) {
	if s.fail.Load() {
		return nil, errors.New("the hardware module does not answer")
	}
	return s.Signer.Sign(message)
}

// Each write that is needed to publish one drain fails, in both ways: the drain
// is published all the same, and no number is given to two versions. It is so in
// an ordinary store, in one that waits for a person, and right after that.
func TestEveryFailedWriteOfPublishingConverges(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, st control.Store, s *control.Service){
		"ordinary": func(*testing.T, control.Store, *control.Service) {},
		"restored": func(t *testing.T, st control.Store, _ *control.Service) {
			if err := control.MarkRestored(t.Context(), st, "backup-1", "tester"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, mode := range []fault.Mode{fault.Lost, fault.Unheard} {
			for nth := 1; nth <= 6; nth++ {
				t.Run(fmt.Sprintf("%s/%v/%d", name, mode, nth), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						inner := memstore.New()
						first, stop := start(t, inner)
						fleet(t, first, routemap.Settings{}, 4)
						time.Sleep(time.Second)
						stop()
						prepare(t, inner, first)
						st := faultstore.New(inner)
						s := open(t, st)
						time.Sleep(control.Lease) // routers are heard first after a restore
						st.Fail(nth, mode)
						_, _, err := s.Drain(t.Context(), by, "cell-001", 0)
						if errors.Is(err, fault.ErrInjected) {
							_, _, err = s.Drain(t.Context(), by, "cell-001", 0)
						}
						if err != nil {
							t.Fatal(err)
						}
						time.Sleep(5 * time.Second)
						if got := s.Newest().Map.Cell("cell-001").Admit; got != 0 {
							t.Errorf("the drain is not published: admit is %d", got)
						}
						versionsFollow(t, s)
						if name == "restored" {
							st.Fail(nth, mode)
							state, err := s.RestoreState(t.Context())
							if err != nil {
								t.Fatal(err)
							}
							err = s.ConfirmRestore(t.Context(), by, state.Highest.Version, state.Highest.Digest, true)
							if errors.Is(err, fault.ErrInjected) {
								err = s.ConfirmRestore(t.Context(), by, state.Highest.Version, state.Highest.Digest, true)
								if errors.Is(err, cellway.ErrInvalid) { // nothing waits any more
									err = nil
								}
							}
							if err != nil {
								t.Fatal(err)
							}
							time.Sleep(5 * time.Second)
						}
						agree(t, s)
						agree(t, open(t, inner))
					})
				})
			}
		}
	}
}

// A full overlay makes others wait for the next base, never a drain.
func TestFullOverlayIsFoldedAndHoldsUpNoDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, stop := start(t, memstore.New())
		defer stop()
		fleet(t, s, routemap.Settings{Mapping: routemap.Full}, 3)
		stop() // nothing folds in the background
		before := s.Accepted().Base().Digest()
		for i := 0; s.Accepted().OverlaySize() < routemap.OpenOverlay-1000; i++ {
			e := override(cellway.Key(fmt.Sprintf("key-%06d", i)), cellway.Pin, "cell-001")
			e.Reason = fmt.Sprintf("%0400d", i)
			put(t, s, e)
		}
		if s.Accepted().Base().Digest() != before {
			t.Fatal("folded early")
		}
		if _, _, err := s.Drain(t.Context(), by, "cell-001", 0); err != nil {
			t.Errorf("drain with a full overlay: %v", err)
		}
		keys := s.Accepted().Keys()
		for i := range 5 {
			e := override(cellway.Key(fmt.Sprintf("more-%d", i)), cellway.Pin, "cell-001")
			e.Reason = fmt.Sprintf("%0400d", i)
			put(t, s, e)
		}
		if m := s.Accepted(); m.Base().Digest() == before || m.Keys() != keys+5 || m.OverlaySize() > 10_000 {
			t.Errorf("%d keys, overlay of %d bytes; want a fresh base", m.Keys(), m.OverlaySize())
		}
	})
}

// A change too large for any overlay goes straight into a base.
func TestChangeLargerThanAnyOverlayIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memstore.New())
		fleet(t, s, routemap.Settings{}, 3)
		const n = 1600
		for i := range n {
			register(t, s, cellway.TenantID(fmt.Sprintf("%0*d", cellway.MaxKeyPart, i)))
		}
		f, _ := s.Fleet(t.Context())
		f.Strict = true
		confirmed(t, func(call control.Call) error {
			_, _, err := s.PutFleet(t.Context(), call, f.Settings, f.Revision)
			return err
		})
		time.Sleep(time.Second)
		if m := s.Newest().Map; m.Keys() != n {
			t.Errorf("%d keys", m.Keys())
		}
		agree(t, s)
	})
}

func TestWaitForNothingWaitsForTheNewestVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, memstore.New())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		if v, r := s.Wait(ctx, 0); v != 0 || r.Reached || r.Why == "" || time.Since(begin) > 0 {
			t.Errorf("with no map: %v %+v after %v", v, r, time.Since(begin))
		}
		fleet(t, s, routemap.Settings{}, 2)
		time.Sleep(control.Lease)
		v := s.Newest().Map.Version()
		if err := s.Report(t.Context(), "a", control.Report{Version: v}); err != nil {
			t.Fatal(err)
		}
		if got, r := s.Wait(ctx, 0); got != v || !r.Reached {
			t.Errorf("at the newest: %v %+v", got, r)
		}
		// A change that is never published is told as such.
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got, r := s.Wait(short, 999); got != 0 || r.Reached || r.Why == "" {
			t.Errorf("for a change that does not exist: %v %+v", got, r)
		}
	})
}

// The answer of a write is lost, and the write took effect: it is published
// although nobody writes again.
func TestWriteWithALostAnswerIsPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := faultstore.New(memstore.New())
		s := open(t, st)
		fleet(t, s, routemap.Settings{}, 3)
		time.Sleep(time.Second)
		st.Fail(1, fault.Unheard)
		if _, _, err := s.Drain(t.Context(), by, "cell-001", 0); !errors.Is(err, cellway.ErrStoreDown) {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if s.Newest().Map.Cell("cell-001").Admit != 0 {
			t.Error("it is not published")
		}
		_, c, err := s.Drain(t.Context(), by, "cell-001", 0)
		if err != nil || c.Seq != 0 || c.Upto != s.Newest().Seq {
			t.Errorf("asked again: %+v, %v", c, err)
		}
		agree(t, s)
	})
}

var _ store.Store = (*pausing)(nil)
