package control

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/cellway/cellway"
)

// A loss is what a restore went on without: versions that nobody knew of then.
// It is watched for a week, as whoever has one of them may be silent for long.
type loss struct {
	At      time.Time `json:"at"` // of the confirmation; zero while none has come
	Unknown unknown   `json:"unknown,omitzero"`
	Undone  *Undone   `json:"undone,omitempty"` // the highest of them that somebody had, until a person has seen it
}

// maxLosses bounds those that are kept, as each write of the head has them.
const maxLosses = 16

// losses are those of one confirmation after the other, the last one last.
type losses []loss

// UnmarshalJSON reads a list, and the one loss that records had before there were
// several.
func (l *losses) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) {
		*l = make(losses, 1)
		return json.Unmarshal(b, &(*l)[0])
	}
	return json.Unmarshal(b, (*[]loss)(l))
}

// watched reports whether l still matters: somebody may turn up with what was lost,
// or has, and no person has seen it.
func (l loss) watched(now time.Time) bool {
	return l.Undone != nil || !l.Unknown.empty() && now.Sub(l.At) < knowFor
}

// lose adds a loss. Those that nobody watches go; if there are too many all the
// same, the two oldest become one, which spans what lies between them too: rather
// an alarm of a map that was known than none of one that was not.
func (h *headRecord) lose(l loss) {
	all := slices.DeleteFunc(slices.Clone(h.Confirmed), func(old loss) bool { return !old.watched(l.At) })
	if l.watched(l.At) {
		all = append(all, l)
	}
	for len(all) > maxLosses {
		all = slices.Concat(losses{all[0].with(all[1])}, all[2:])
	}
	h.Confirmed = all
}

// with is the loss that spans l and a later one.
func (l loss) with(later loss) loss {
	out := loss{At: later.At, Undone: l.Undone, Unknown: later.Unknown}
	switch {
	case later.Unknown.empty():
		out.Unknown = l.Unknown
	case !l.Unknown.empty():
		out.Unknown = unknown{Above: min(l.Unknown.Above, later.Unknown.Above), Below: max(l.Unknown.Below, later.Unknown.Below)}
	}
	if u := later.Undone; out.Undone == nil || u != nil && u.Version > out.Undone.Version {
		out.Undone = u
	}
	return out
}

// note sets the map that was undone, in that loss of h.
func (h *headRecord) note(in loss, u *Undone) {
	if in.At.IsZero() {
		h.Undone = u
		return
	}
	h.Confirmed = slices.Clone(h.Confirmed)
	for i, l := range h.Confirmed {
		if l.Unknown == in.Unknown && l.At.Equal(in.At) {
			h.Confirmed[i].Undone = u
		}
	}
}

// see ends what is told of u. It is known from now on, whoever else has it, and so
// is what was lost with it and is below.
func (h *headRecord) see(u Undone) {
	same := func(other *Undone) bool {
		return other != nil && other.Version == u.Version && other.Digest == u.Digest
	}
	if same(h.Undone) {
		h.Undone = nil
	}
	h.Confirmed = slices.Clone(h.Confirmed)
	for i, l := range h.Confirmed {
		if same(l.Undone) {
			h.Confirmed[i].Undone = nil
		}
		if l.Unknown.has(u.Version) {
			h.Confirmed[i].Unknown.Above = u.Version
		}
	}
}

// An aftermath is what restores leave to be watched, the newest loss last.
type aftermath []loss

func (h headRecord) aftermath() (a aftermath) {
	now := time.Now()
	for _, l := range h.Confirmed {
		if l.watched(now) {
			a = append(a, l)
		}
	}
	switch {
	case h.Restored != nil:
		a = append(a, loss{Unknown: h.Restored.unknown(h), Undone: h.Undone})
	case h.Undone != nil: // of a record from before losses had their own
		a = append(a, loss{Undone: h.Undone})
	}
	return a
}

// of returns the loss that an alarm is due for if somebody has v, or nil.
func (a aftermath) of(v cellway.Version) *loss {
	for _, l := range slices.Backward(a) {
		if l.Unknown.has(v) && (l.Undone == nil || l.Undone.Version < v) && !a.told(v) {
			return &l
		}
	}
	return nil
}

// told reports whether v is a map of which an alarm tells.
func (a aftermath) told(v cellway.Version) bool {
	return slices.ContainsFunc(a, func(l loss) bool { return l.Undone != nil && l.Undone.Version == v })
}

// undone returns the highest map that was undone and no person has seen, or nil.
func (a aftermath) undone() (highest *Undone) {
	for _, l := range a {
		if l.Undone != nil && (highest == nil || l.Undone.Version > highest.Version) {
			highest = l.Undone
		}
	}
	return highest
}
