package control

import (
	"encoding/json"

	"github.com/cellway/cellway/internal/workers"
)

// mostTold is how many bytes of a list the journal has at most, before a write and
// after it. The journal is kept for ever, and read by pages of a thousand lines.
const mostTold = 128 << 10

// A toldList is what the journal has of a list, never the salt.
type toldList struct {
	workers.List
	Salted  bool   `json:"salted"`
	Version string `json:"version"` // of the hands: another salt shows in it

	LeftOut *leftOut `json:"left_out,omitempty"` // of a long list
}

// A leftOut counts what the journal leaves out of a long list.
type leftOut struct {
	Workers int `json:"workers"`
	Sizes   int `json:"sizes,omitempty"`
	Numbers int `json:"numbers,omitempty"`
}

// tellWorkers returns what the journal has of a list before and after a write: all of
// it, or the worker that the write is about, so that a drain in a cell of a thousand
// workers is a short line. Of long lists it has what differs, if that is short enough.
// Nil is no list.
func tellWorkers(before, after Workers, worker string) (was, is any) {
	if worker != "" {
		return before.toldOf(worker), after.toldOf(worker)
	}
	b, a := before.told(), after.told()
	if b.long() || a.long() {
		apart(b, a)
	}
	for _, l := range []*toldList{b, a} {
		if l.long() {
			l.leave(func(workers.Worker) bool { return true }, func(string, int) bool { return true }, func(string, uint64) bool { return true })
		}
	}
	if b != nil { // a nil *toldList is no nil
		was = b
	}
	if a != nil {
		is = a
	}
	return was, is
}

// told is all of a list, or nil if there is none.
func (l Workers) told() *toldList {
	if l.Revision == 0 {
		return nil
	}
	t := &toldList{List: l.List, Salted: l.Salt != "", Version: l.handsVersion()}
	t.Salt = ""
	return t
}

// toldOf is one worker of a list, or nil if there is no list.
func (l Workers) toldOf(worker string) any {
	if l.Revision == 0 {
		return nil
	}
	var one *workers.Worker
	if i := l.find(worker); i >= 0 {
		one = &l.Workers[i]
	}
	return struct {
		Worker  *workers.Worker `json:"worker,omitempty"`
		Version string          `json:"version"`
	}{one, l.handsVersion()}
}

// handsVersion is the version of the hands, "" if there are none.
func (l Workers) handsVersion() string {
	hands, err := l.Check()
	if err != nil {
		return ""
	}
	return hands.Version()
}

// long reports whether l is more than the journal takes.
func (l *toldList) long() bool {
	if l == nil {
		return false
	}
	b, err := json.Marshal(l)
	return err != nil || len(b) > mostTold
}

// apart leaves out of both lists what is the same in both.
func apart(a, b *toldList) {
	if a == nil || b == nil {
		return
	}
	one, other := a.parts(), b.parts()
	for _, p := range []struct {
		l  *toldList
		in parts
	}{{a, other}, {b, one}} {
		p.l.leave(func(w workers.Worker) bool { return alike(p.in.workers[w.ID], &w) },
			func(tenant string, n int) bool { is, ok := p.in.sizes[tenant]; return ok && is == n },
			func(tenant string, n uint64) bool { is, ok := p.in.numbers[tenant]; return ok && is == n })
	}
}

// The parts of a list, as they were before anything was left out.
type parts struct {
	workers map[string]*workers.Worker
	sizes   map[string]int
	numbers map[string]uint64
}

func (l *toldList) parts() parts {
	p := parts{map[string]*workers.Worker{}, l.Sizes, l.Numbers}
	for _, w := range l.Workers {
		p.workers[w.ID] = &w
	}
	return p
}

// leave leaves out what the functions say, and counts it. What l was made from stays.
func (l *toldList) leave(worker func(workers.Worker) bool, size func(string, int) bool, number func(string, uint64) bool) {
	if l.LeftOut == nil {
		l.LeftOut = &leftOut{}
	}
	all := l.List
	l.Workers, l.Sizes, l.Numbers = []workers.Worker{}, nil, nil
	for _, w := range all.Workers {
		if worker(w) {
			l.LeftOut.Workers++
		} else {
			l.Workers = append(l.Workers, w)
		}
	}
	var left int
	l.Sizes, left = without(all.Sizes, size)
	l.LeftOut.Sizes += left
	l.Numbers, left = without(all.Numbers, number)
	l.LeftOut.Numbers += left
}

// without returns what of m is not to be left out, and how much is.
func without[V any](m map[string]V, leave func(string, V) bool) (kept map[string]V, left int) {
	kept = make(map[string]V)
	for name, v := range m {
		if leave(name, v) {
			left++
		} else {
			kept[name] = v
		}
	}
	return kept, left
}
