package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
)

const (
	// watchEvery is how often what can be wrong by time alone is looked at.
	watchEvery = 10 * time.Second

	// overdueEvery is how often all overrides are read for those whose review_by
	// has passed. After a change of one they are read at once.
	overdueEvery = time.Minute

	// recountEvery is how often what cells hold is added up anew.
	recountEvery = 24 * time.Hour

	// maxOverdue is how many overdue overrides are told one by one.
	maxOverdue = 1000
)

// An overdue knows the overrides that somebody should have looked at.
type overdue struct {
	wake chan struct{} // has room for one

	mu   sync.Mutex
	n    int
	list []Alarm // the first of them
}

func newOverdue() *overdue { return &overdue{wake: make(chan struct{}, 1)} }

// look asks for a look at all overrides.
func (o *overdue) look() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *overdue) alarms() []Alarm {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.list
}

func (o *overdue) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.n
}

// runWatch looks for what goes wrong by time alone until ctx ends.
func (s *Service) runWatch(ctx context.Context) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	var read time.Time
	for {
		s.watchOverlay()
		s.watchEndpoints()
		s.tryStore(ctx)
		if now := time.Now(); now.Sub(read) >= overdueEvery {
			if s.readOverdue(ctx, now) == nil {
				read = now
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-s.overdue.wake:
			read = time.Time{}
		}
	}
}

// readOverdue finds the overrides whose review_by has passed at now.
func (s *Service) readOverdue(ctx context.Context, now time.Time) error {
	n, list := 0, []Alarm(nil)
	err := s.view(ctx, func(tx store.Tx) error {
		n, list = 0, nil
		return each(tx, kindOverride, "", setOverrideRevision, func(o Override) error {
			if o.ReviewBy.After(now) {
				return nil
			}
			if n++; n <= maxOverdue {
				list = append(list, Alarm{AlarmOverdue, "override/" + string(o.Key), o.ReviewBy,
					fmt.Sprintf("the %s of %s was to be looked at again by %s: %s", o.Kind, o.Key, o.By, o.Reason)})
			}
			return nil
		})
	})
	if err != nil {
		return err // which is an alarm already
	}
	s.overdue.mu.Lock()
	defer s.overdue.mu.Unlock()
	s.overdue.n, s.overdue.list = n, list
	return nil
}

// runRecount adds up once a day what cells hold until ctx ends.
func (s *Service) runRecount(ctx context.Context) {
	for sleep(ctx, recountEvery) {
		wrong, err := s.Recount(ctx)
		if err != nil {
			if !errors.Is(err, cellway.ErrStoreDown) && ctx.Err() == nil {
				s.log.ErrorContext(ctx, "tenants not counted", "error", err)
			}
			continue
		}
		there := map[string]bool{}
		for _, w := range wrong {
			subject := "cell/" + string(w.Cell)
			there[subject] = true
			s.health.fail(AlarmUsage, subject, w)
		}
		s.health.keep(AlarmUsage, there)
	}
}
