package routemap

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cellway/cellway"
)

// A Difference is one record that differs between two maps, told for people.
type Difference struct {
	What string // settings, cell, hold, bucket, entry, alias or tombstone
	Name string // of the record
	From string // what it was; empty if it was not there
	To   string // what it is; empty if it is gone

	// EpochOnly marks a record that answers as before, in another epoch: after a
	// restore that is every one.
	EpochOnly bool
}

// Diff tells what differs from before to after, and returns at most limit of
// the differences with how many there are. Settings, cells, holds and buckets
// come before keys, and all that answers otherwise before what only has another
// epoch. If before is nil, everything in after is new; with a limit of 0 or
// less, the differences are only counted.
func Diff(before, after *Map, limit int) (list []Difference, total int) {
	limit = max(limit, 0)
	var epochs []Difference
	put := func(d Difference) {
		if d.From == d.To {
			return
		}
		to := &list
		if d.EpochOnly {
			to = &epochs
		}
		if total++; len(*to) < limit {
			*to = append(*to, d)
		}
	}
	add := func(what, name, from, to string) { put(Difference{What: what, Name: name, From: from, To: to}) }
	if before == nil {
		before = &Map{base: &Base{}, over: noChanges()}
	}
	diffSettings(before.base.settings, after.base.settings, add)
	var ids []cellway.CellID
	for _, m := range []*Map{before, after} {
		for _, c := range m.cells {
			ids = append(ids, c.ID)
		}
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		add("cell", string(id), tellCell(before.Cell(id)), tellCell(after.Cell(id)))
	}
	held := map[string]bool{}
	for _, m := range []*Map{before, after} {
		for _, h := range m.over.holds {
			held[string(h.Key)] = true
		}
	}
	for _, key := range sortedKeys(held) {
		add("hold", key, tellHold(before.over.hold(key)), tellHold(after.over.hold(key)))
	}
	for i := range max(before.base.settings.Buckets, after.base.settings.Buckets) {
		from, was := before.tellBucket(i)
		to, is := after.tellBucket(i)
		put(Difference{"bucket", strconv.FormatUint(uint64(i), 10), from, to, was == is && from != "" && to != ""})
	}
	after.pair(before, func(key string, now, was record, inNow, inWas bool) {
		switch {
		case !inWas:
			add(now.kind.what(), key, "", after.tell(key, now))
		case !inNow:
			add(was.kind.what(), key, before.tell(key, was), "")
		case now.kind.what() != was.kind.what():
			add(was.kind.what(), key, before.tell(key, was), "")
			add(now.kind.what(), key, "", after.tell(key, now))
		default:
			d := Difference{What: now.kind.what(), Name: key, From: before.tell(key, was), To: after.tell(key, now)}
			if d.From != d.To {
				was.epoch = now.epoch
				d.EpochOnly = before.tell(key, was) == d.To
			}
			put(d)
		}
	})
	return append(list, epochs[:min(len(epochs), limit-len(list))]...), total
}

func tellEpoch(e cellway.Epoch) string { return "epoch " + e.String() }

// diffSettings names each setting that differs.
func diffSettings(was, is Settings, add func(what, name, from, to string)) {
	a, b := reflect.ValueOf(was), reflect.ValueOf(is)
	for i := range a.NumField() {
		name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
		if was.Fleet == "" { // there was no map
			add("settings", name, "", tellSetting(b.Field(i)))
			continue
		}
		add("settings", name, tellSetting(a.Field(i)), tellSetting(b.Field(i)))
	}
}

// tellSetting writes a setting as its JSON does, a text without its quotes; one
// that is empty is "".
func tellSetting(v reflect.Value) string {
	if (v.Kind() == reflect.Slice || v.Kind() == reflect.String) && v.Len() == 0 {
		return ""
	}
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // people read it
	if err := enc.Encode(v.Interface()); err != nil {
		return fmt.Sprintf("(%v)", err) // a value that the map can't hold
	}
	text := strings.TrimSuffix(out.String(), "\n")
	var plain string
	if json.Unmarshal([]byte(text), &plain) == nil {
		return plain
	}
	return text
}

func (k recKind) what() string {
	switch k {
	case recAlias:
		return "alias"
	case recTombstone:
		return "tombstone"
	}
	return "entry"
}

// tell says in short what a record makes of its key.
func (m *Map) tell(key string, r record) string {
	switch r.kind {
	case recAlias:
		return "of " + string(r.target)
	case recTombstone:
		return "gone since " + tellEpoch(r.epoch)
	}
	e := m.entry(key, r)
	s := e.Kind.String()
	if e.Cell != "" {
		s += " in " + string(e.Cell)
	}
	s += ", " + tellEpoch(e.Epoch)
	if e.Kind.IsOverride() {
		s += fmt.Sprintf(", by %s until %s: %s", e.By, e.ReviewBy.Format(time.DateOnly), e.Reason)
	}
	return s
}

// tellBucket says in short where a bucket is, and in which cell; both are empty
// if there is none.
func (m *Map) tellBucket(i uint32) (told string, cell cellway.CellID) {
	if i >= m.base.settings.Buckets {
		return "", ""
	}
	b := m.bucket(i)
	cell = m.cellID(b.cell)
	return fmt.Sprintf("%s, %s", cell, tellEpoch(b.epoch)), cell
}

func tellCell(c *cellway.Cell) string {
	if c == nil {
		return ""
	}
	parts := []string{c.State.String(), fmt.Sprintf("admit %d %%", c.Admit), "guard " + c.Guard.String(), strings.Join(c.Endpoints, " ")}
	for name, s := range map[string]string{"title ": c.Title, "region ": c.Region, "zone ": c.Zone} {
		if s != "" {
			parts = append(parts, name+s)
		}
	}
	for k, v := range c.Tags {
		parts = append(parts, k+"="+v)
	}
	slices.SortFunc(parts[4:], cmp.Compare[string])
	return strings.Join(parts, ", ")
}

func tellHold(h *cellway.Hold) string {
	if h == nil {
		return ""
	}
	return fmt.Sprintf("move %s, at most %d ms until %s", h.Move, h.HoldMS, h.Until.Format(time.RFC3339))
}
