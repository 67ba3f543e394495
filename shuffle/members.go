package shuffle

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// A Members list says who is a worker, as opposed to who is well. A worker that
// falls silent stays a member until ForgetAfter has passed, so a tenant whose
// requests crash workers is not handed one worker after another. One that says
// goodbye is gone at once.
//
// The zero value has no members and forgets silent ones at the next call of
// [Members.Workers]. A Members list is not safe for use by several goroutines.
type Members struct {
	// ForgetAfter is how long a silent worker stays a member; longer than any
	// restart takes.
	ForgetAfter time.Duration

	all map[string]member
}

// A member is a worker, and since when it has been silent.
type member struct {
	Worker
	silent bool
	since  time.Time
}

// Join makes w a member, or tells that it is back, perhaps with another zone or
// weight. Its error wraps [ErrInvalid] if w could not be in a [Snapshot].
func (m *Members) Join(w Worker) error {
	if err := check(Config{Size: 1, Workers: []Worker{w}}); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	if m.all == nil {
		m.all = map[string]member{}
	}
	m.all[w.ID] = member{Worker: w}
	return nil
}

// Leave takes a worker that said goodbye off the list.
func (m *Members) Leave(id string) { delete(m.all, id) }

// Silent tells that a worker went away without a goodbye at now: a lost
// connection, a lease that ran out. It stays a member; if it was silent
// already, its time runs on.
func (m *Members) Silent(id string, now time.Time) {
	if w, ok := m.all[id]; ok && !w.silent {
		w.silent, w.since = true, now
		m.all[id] = w
	}
}

// Workers forgets those who were silent for ForgetAfter at now, and returns the
// members by id, for [Config.Workers].
func (m *Members) Workers(now time.Time) []Worker {
	maps.DeleteFunc(m.all, func(_ string, w member) bool {
		return w.silent && now.Sub(w.since) >= m.ForgetAfter
	})
	workers := make([]Worker, 0, len(m.all))
	for _, id := range slices.Sorted(maps.Keys(m.all)) {
		workers = append(workers, m.all[id].Worker)
	}
	return workers
}
