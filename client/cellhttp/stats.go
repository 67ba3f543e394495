package cellhttp

import (
	"errors"
	"sync"
	"sync/atomic"
)

// Stats are a transport's figures since it was made. Each number only rises.
type Stats struct {
	Direct uint64 // requests sent to the cell of their key
	Routed uint64 // requests sent through the router; those that were sent to a cell before are in both
	Asked  uint64 // questions to the control plane
	Failed uint64 // those of them that were not answered; a key that is not known is an answer

	// Trouble is why cells can't be learned at the moment, if that is so: what is
	// not known yet goes through the router, or fails. Nil if the last question was
	// answered, or if none was put.
	Trouble error
}

// figures are what Stats shows.
type figures struct {
	direct, routed, asked, failed atomic.Uint64
	trouble                       trouble
}

// Stats returns the transport's figures.
func (t *Transport) Stats() Stats {
	return Stats{
		Direct: t.figures.direct.Load(), Routed: t.figures.routed.Load(), Asked: t.figures.asked.Load(), Failed: t.figures.failed.Load(),
		Trouble: t.figures.trouble.now(),
	}
}

// trouble is why cells can't be learned.
type trouble struct {
	on atomic.Bool // not as in a new one

	mu   sync.Mutex
	err  error
	told map[string]bool // causes that the log was told of since cells could be learned
}

func (t *trouble) now() error {
	if !t.on.Load() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// failed takes in that cells can't be learned, and reports whether the log is to be
// told: once for each cause.
func (t *trouble) failed(err error) (tell bool) {
	cause := causeOf(err)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on.Store(true)
	t.err = err
	if tell = !t.told[cause] && len(t.told) < mostCauses; tell {
		if t.told == nil {
			t.told = map[string]bool{}
		}
		t.told[cause] = true
	}
	return tell
}

// over takes in that a cell was learned, and reports whether that is news.
func (t *trouble) over() (tell bool) {
	if !t.on.Load() {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	tell = t.err != nil
	t.err, t.told = nil, nil
	t.on.Store(false)
	return tell
}

// mostCauses is how many causes the log is told of before cells can be learned.
const mostCauses = 16

// causeOf returns what kind of failure err is: what is at the bottom of it. Its text
// names the key and may differ each time.
func causeOf(err error) string {
	for {
		var next error
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			next = e.Unwrap()
		case interface{ Unwrap() []error }:
			if all := e.Unwrap(); len(all) > 0 {
				next = all[0]
			}
		}
		if next == nil {
			return err.Error()
		}
		err = next
	}
}

var (
	errNamesNoCell = errors.New("the router's answers don't name a cell by X-Cell-Id: run it with --explain-headers, or give Config.Locate")
	errNoEndpoints = errors.New("Config.Endpoints knows none of the cell that the router names")
)

// cantLearn takes in why a cell could not be learned, and tells the log.
func (t *Transport) cantLearn(err error) {
	if t.figures.trouble.failed(err) {
		way := "they fail, as there is no router"
		if t.router != nil {
			way = "they go through the router"
		}
		t.log.Warn("cells of keys can't be learned: requests for keys that are not known yet don't go there directly", "instead", way, "error", err)
	}
}

// learned takes in that a cell was learned.
func (t *Transport) learned() {
	if t.figures.trouble.over() {
		t.log.Info("cells of keys can be learned again")
	}
}
