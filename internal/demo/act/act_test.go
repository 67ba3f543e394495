package act

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/demo/report"
)

func TestEveryActIsContainedAndUndoneAndTheControlIsNot(t *testing.T) {
	for _, a := range All() {
		t.Run(a.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeFleet()
				withRunner(t, f, func(r *Runner) {
					got, err := r.Play(t.Context(), Play{Act: a, Target: "cell-002", Window: 4 * time.Second})
					if err != nil {
						t.Fatal(err)
					}
					if got.Contained == a.Control {
						t.Errorf("contained: %v; %+v", got.Contained, got.Cells)
					}
					if got.MinRequests < 2 || got.Tenants != 400 || got.Name != a.Name {
						t.Errorf("%d requests of the quietest of %d tenants in %s", got.MinRequests, got.Tenants, got.Name)
					}
					checkShares(t, a, got)
					if err := f.whole(); err != nil {
						t.Error(err)
					}
				})
			})
		})
	}
}

// checkShares holds an outcome against what such an act must do.
func checkShares(t *testing.T, a Act, got report.Act) {
	t.Helper()
	switch {
	case a.Control:
		if got.TouchedShare != 1 || got.PredictedShare != 0.25 {
			t.Errorf("touched %v, predicted %v", got.TouchedShare, got.PredictedShare)
		}
	case a.Tells:
		h := got.Hands
		if h == nil || h.Workers != fakeWorkers || h.Tenants != 99 || h.Outside != 0 || got.Target != "cell-002" {
			t.Fatalf("hands: %+v", h)
		}
		size, lost, degraded := fakeWorkers, 1.0, 1.0
		if a.Of != "" {
			size, lost, degraded = 2, 1.0/6, 5.0/6
		}
		near := func(got, want float64) bool { return math.Abs(got-want) < 0.05 }
		if h.Size != size || !near(h.PredictedLostShare, lost) || !near(h.PredictedDegradedShare, degraded) || !near(h.LostShare, lost) || !near(h.DegradedShare, degraded) {
			t.Errorf("hands of %d: %+v", size, h)
		}
		if got.TouchedShare > 0.25 || !near(got.TouchedShare, got.PredictedShare) || !near(got.PredictedShare, lost/4) {
			t.Errorf("touched %v, predicted %v", got.TouchedShare, got.PredictedShare)
		}
	case a.Harm:
		if got.PredictedShare != 0.25 || got.TouchedShare > 0.25 || got.TouchedShare < 0.1 || got.Target != "cell-002" {
			t.Errorf("touched %v, predicted %v of %s", got.TouchedShare, got.PredictedShare, got.Target)
		}
	default:
		if got.PredictedShare != 0 || got.TouchedShare != 0 || got.Target != "" {
			t.Errorf("touched %v, predicted %v of %q", got.TouchedShare, got.PredictedShare, got.Target)
		}
	}
	if len(got.Cells) != len(cells) {
		t.Errorf("cells %+v", got.Cells)
	}
}

func TestAFleetThatLeaksIsNotContained(t *testing.T) {
	for _, a := range All() {
		if !a.Harm || a.Control {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeFleet()
				f.leaks = true
				withRunner(t, f, func(r *Runner) {
					got, err := r.Play(t.Context(), Play{Act: a, Target: "cell-002", Window: 4 * time.Second})
					if err != nil {
						t.Fatal(err)
					}
					if got.Contained || got.TouchedShare <= got.PredictedShare && !a.Tells {
						t.Errorf("contained %v, touched %v", got.Contained, got.TouchedShare)
					}
				})
			})
		})
	}
}

func TestAFailedStepIsUndone(t *testing.T) {
	for name, deed := range map[string]string{
		"kill-cell":         "kill cell-002",
		"poison-tenant":     "quarantine tenant-0001",
		"drain-undrain":     "admit cell-002 25",
		"routers-restarted": "restart routers",
		"corrupt-map":       "corrupt map",
		"shared-fate":       "kill shared",
		"bad-deploy":        "settle",
		"noisy-tenant":      "fared cell-002",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeFleet()
				broken := errors.New("broken")
				f.fail[deed] = broken
				acts, err := Named(name)
				if err != nil {
					t.Fatal(err)
				}
				withRunner(t, f, func(r *Runner) {
					if _, err := r.Play(t.Context(), Play{Act: acts[0], Target: "cell-002", Window: 4 * time.Second}); !errors.Is(err, broken) {
						t.Errorf("got %v", err)
					}
				})
				if !f.done(deed) {
					t.Errorf("%q was never asked for; %q", deed, f.deeds)
				}
				if deed == "kill shared" {
					f.sharedDown = true // the only deed that could do it is the broken one
				}
				if err := f.whole(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestAnActCanBeEndedEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeFleet()
		withRunner(t, f, func(r *Runner) {
			end := make(chan struct{})
			time.AfterFunc(3*time.Second, func() { close(end) })
			began := time.Now()
			got, err := r.Play(t.Context(), Play{Act: drainUndrain(), Target: "cell-003", Window: time.Hour, End: end})
			if err != nil {
				t.Fatal(err)
			}
			// The drain is due after three minutes, comes with the end, and the way back takes four pauses.
			if took, least := time.Since(began), 3*time.Second+4*maxPause; took < least || took > least+time.Second || got.MinRequests < 2 {
				t.Errorf("took %v, %d requests of the quietest", took, got.MinRequests)
			}
			if !f.done("admit cell-003 0") || !f.done("admit cell-003 100") {
				t.Errorf("deeds %q", f.deeds)
			}
		})
	})
}

func TestAnActIsHeldUntilItIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeFleet()
		withRunner(t, f, func(r *Runner) {
			end := make(chan struct{})
			time.AfterFunc(30*time.Second, func() {
				if !f.done("admit cell-003 0") || f.done("admit cell-003 1") {
					t.Errorf("after 30 s: %q", f.deeds)
				}
				close(end)
			})
			began := time.Now()
			if _, err := r.Play(t.Context(), Play{Act: drainUndrain(), Target: "cell-003", Window: 4 * time.Second, Hold: time.Hour, End: end}); err != nil {
				t.Fatal(err)
			}
			// Each step back in can be seen.
			if took, least := time.Since(began), 30*time.Second+4*320*time.Millisecond; took < least || took > least+time.Second {
				t.Errorf("took %v", took)
			}
		})
	})
}

func TestAPlayEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		withRunner(t, newFakeFleet(), func(r *Runner) {
			quit := errors.New("quit")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(quit) })
			if _, err := r.Play(ctx, Play{Act: killCell(), Target: "cell-003", Window: time.Hour}); !errors.Is(err, quit) {
				t.Errorf("got %v", err)
			}
		})
	})
}

func TestAnAimedActNeedsACellWithTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		withRunner(t, newFakeFleet(), func(r *Runner) {
			for _, target := range []cellway.CellID{"", "cell-009"} {
				if _, err := r.Play(t.Context(), Play{Act: killCell(), Target: target, Window: time.Second}); !errors.Is(err, cellway.ErrNotFound) {
					t.Errorf("target %q: %v", target, err)
				}
			}
		})
	})
}

func TestAScriptNamesItsActs(t *testing.T) {
	all, err := Named("all")
	if err != nil || len(all) != 12 {
		t.Fatalf("all: %d acts, %v", len(all), err)
	}
	controls := 0
	for _, a := range all {
		if a.Control {
			controls++
		}
		if a.Limit <= 0 || len(a.Steps) == 0 || a.Title == "" || a.Harm && !a.Aimed {
			t.Errorf("%+v", a)
		}
	}
	if controls != 1 {
		t.Errorf("%d controls", controls)
	}
	two, err := Named("hang-cell, kill-cell")
	if err != nil || len(two) != 2 || two[0].Name != "hang-cell" || two[1].Name != "kill-cell" {
		t.Errorf("two: %v, %v", two, err)
	}
	both, err := Named("noisy-tenant")
	if err != nil || len(both) != 2 || both[0].Name != "noisy-tenant" || both[1].Name != "noisy-tenant-hands" {
		t.Errorf("an act with its variant: %v, %v", both, err)
	}
	one, err := Named("noisy-tenant-hands")
	if err != nil || len(one) != 1 {
		t.Errorf("a variant: %v, %v", one, err)
	}
	for _, bad := range []string{"", "kill", "kill-cell,", "all,kill-cell"} {
		if _, err := Named(bad); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
