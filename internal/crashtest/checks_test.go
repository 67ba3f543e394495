package crashtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// checkJournal holds the journal against what the writers were told: each write
// that was acknowledged is in it once, as it was told; none is that was refused
// or lost; and each act on a record began where the one before it ended.
func checkJournal(t *testing.T, e *evidence, l *ledger, from uint64) {
	t.Helper()
	lines := map[uint64][]journalLine{}
	last := map[string]json.RawMessage{}
	for _, j := range e.journal {
		// Lines about a list of workers tell of one worker, or of all; their writer
		// holds the list itself against what it was told.
		if j.Subject != "" && strings.Contains("tenant override cell", strings.SplitN(j.Subject, "/", 2)[0]) && !strings.Contains(j.Subject, "/workers") {
			if was, ok := last[j.Subject]; ok && !sameJSON(was, j.Before) {
				t.Errorf("journal %d (%s %s) began with %s; the act before it ended with %s", j.number, j.Act, j.Subject, j.Before, was)
			}
			last[j.Subject] = j.After
		}
		if j.number <= from {
			continue
		}
		n := opOf(j.Reason, j.After)
		if n == 0 || n > uint64(len(l.ops)) {
			t.Errorf("journal %d (%s %s) is no writer's", j.number, j.Act, j.Subject)
			continue
		}
		lines[n] = append(lines[n], j)
	}
	for _, o := range l.ops {
		got := lines[o.n]
		want := 0
		if o.took() {
			want = 1
		}
		if len(got) != want {
			t.Errorf("%v is %d times in the journal, want %d: %+v", o, len(got), want, got)
			continue
		}
		if want == 0 {
			continue
		}
		j := got[0]
		change := ""
		if j.Change > 0 {
			change = fmt.Sprint(j.Change)
		}
		if j.Act != o.act || j.Subject != o.subject || change != o.change {
			t.Errorf("%v with change %q is in the journal as %s %s with change %q", o, o.change, j.Act, j.Subject, change)
		}
		if j.Change > 0 && (j.Change > uint64(len(e.changes)) || e.changes[j.Change-1].Act != j.Act+" "+j.Subject) {
			t.Errorf("%v made change %d, which the log of changes does not have as such", o, j.Change)
		}
	}
	checkRecords(t, e, l, last)
}

// checkRecords holds the records against the journal, and their revisions
// against those that were acknowledged.
func checkRecords(t *testing.T, e *evidence, l *ledger, last map[string]json.RawMessage) {
	t.Helper()
	for subject, after := range last {
		if r, ok := e.records[subject]; ok != (len(after) > 0) || !sameJSON(r.Body, after) {
			t.Errorf("%s is %s; by the journal it is %s", subject, r.Body, after)
		}
	}
	for subject := range e.records {
		if _, ok := last[subject]; !ok {
			t.Errorf("%s is in no line of the journal", subject)
		}
	}
	highest := map[string]cellway.Revision{}
	for _, o := range l.ops {
		if o.outcome == acked && o.revision > 0 {
			highest[o.subject] = max(highest[o.subject], o.revision)
		}
	}
	for subject, revision := range highest {
		if r, ok := e.records[subject]; ok && r.Revision < revision {
			t.Errorf("%s is at revision %d; %d was acknowledged", subject, r.Revision, revision)
		}
	}
}

// checkSums holds the usage of the cells against their tenants, and the counters
// against the writes that were to raise them.
func checkSums(t *testing.T, e *evidence, l *ledger, counters []cellway.TenantID) {
	t.Helper()
	want := map[cellway.CellID]usageRecord{}
	counts := map[string]int{}
	for subject, r := range e.records {
		if !strings.HasPrefix(subject, "tenant/") {
			continue
		}
		var tenant tenantRecord
		must(t, json.Unmarshal(r.Body, &tenant))
		counts[subject] = int(tenant.Weights["count"])
		if tenant.Deleted {
			continue
		}
		u, ok := want[tenant.Cell]
		if !ok {
			u.Reserved = map[string]float64{}
		}
		u.Tenants++
		if _, given := tenant.Weights["tenants"]; !given {
			u.Reserved["tenants"]++
		}
		for k, v := range tenant.Weights {
			u.Reserved[k] += v
		}
		want[tenant.Cell] = u
	}
	nonZero := func(v map[string]float64) map[string]float64 {
		v = maps.Clone(v)
		maps.DeleteFunc(v, func(_ string, f float64) bool { return f == 0 })
		return v
	}
	for cell, u := range e.usage {
		if u.Tenants != want[cell].Tenants || !maps.Equal(nonZero(u.Reserved), nonZero(want[cell].Reserved)) {
			t.Errorf("the usage of %s is %+v, its tenants sum up to %+v", cell, u, want[cell])
		}
		delete(want, cell)
	}
	if len(want) > 0 {
		t.Errorf("cells without a usage: %+v", want)
	}
	for _, id := range counters {
		subject := "tenant/" + string(id)
		raised := 0
		for _, o := range l.ops {
			if o.subject == subject && o.took() {
				raised++
			}
		}
		if counts[subject] != raised {
			t.Errorf("the counter of %s is %d after %d writes that took effect", id, counts[subject], raised)
		}
	}
}

// checkMap holds a map against the records that it must be of.
func checkMap(t *testing.T, e *evidence, m *routemap.Map) {
	t.Helper()
	must(t, m.Check())
	entries := 0
	for subject, r := range e.records {
		kind, name, _ := strings.Cut(subject, "/")
		key := cellway.Key(name)
		entry, has := m.Entry(key)
		switch kind {
		case "override":
			entries++
			var want cellway.Entry
			must(t, json.Unmarshal(r.Body, &want))
			want.Epoch = entry.Epoch
			if !has || entry != want {
				t.Errorf("the entry of %s is %+v, its override says %+v", key, entry, want)
			}
		case "tenant":
			var tenant tenantRecord
			must(t, json.Unmarshal(r.Body, &tenant))
			if tenant.Deleted {
				if got := m.Lookup(key); got.Code != cellway.KeyGone {
					t.Errorf("%s was deleted; the map answers %q", key, got.Code)
				}
				continue
			}
			if _, overridden := e.records["override/"+name]; overridden {
				continue
			}
			entries++
			if !has || entry.Kind != cellway.Placed || entry.Cell != tenant.Cell {
				t.Errorf("the entry of %s is %+v, its home is %s", key, entry, tenant.Cell)
			}
		case "cell":
			var want struct {
				Admit uint8             `json:"admit"`
				Tags  map[string]string `json:"tags"`
			}
			must(t, json.Unmarshal(r.Body, &want))
			if c := m.Cell(cellway.CellID(name)); c == nil || c.Admit != want.Admit || !maps.Equal(c.Tags, want.Tags) {
				t.Errorf("%s is %+v in the map, its record says %+v", name, c, want)
			}
		}
		if has && entry.Epoch >= e.head.NextEpoch {
			t.Errorf("%s has epoch %v; the next to be drawn is %v", key, entry.Epoch, e.head.NextEpoch)
		}
	}
	if m.Keys() != entries {
		t.Errorf("the map has %d entries, %d are by tenants and overrides", m.Keys(), entries)
	}
}

// checkVersions holds each published version against what the log of changes
// says up to its change, and against the version before it. It returns the maps
// by version, the last of them with every change.
func checkVersions(t *testing.T, e *evidence, ring routemap.Keyring) map[cellway.Version]*routemap.Map {
	t.Helper()
	published := map[cellway.Version]*routemap.Map{}
	var m, parent *routemap.Map
	seq := uint64(0)
	for _, v := range e.versions {
		man := v.manifest
		if v.Seq < seq || v.Seq > uint64(len(e.changes)) {
			t.Fatalf("map %v is of change %d, after one of change %d; there are %d", man.Version, v.Seq, seq, len(e.changes))
		}
		for ; seq < v.Seq; seq++ {
			var err error
			if m, err = replay(m, e.changes[seq]); err != nil {
				t.Fatalf("replay change %d: %v", seq+1, err)
			}
		}
		got, err := e.open(v, ring)
		if err != nil {
			t.Fatalf("map %v: %v", man.Version, err)
		}
		is, err := contentDigest(got)
		must(t, err)
		want, err := contentDigest(m)
		must(t, err)
		if is != want {
			diff, n := routemap.Diff(m, got, 5)
			t.Errorf("map %v is not what the changes up to %d make: %d differences, such as %+v", man.Version, v.Seq, n, diff)
		}
		if err := routemap.Accept(parent, got); err != nil {
			t.Errorf("no router may swap to map %v: %v", man.Version, err)
		}
		if parent != nil && (man.Parent != parent.Version() || man.ParentDigest != parent.Manifest().Digest() || man.Version != parent.Version()+1) {
			t.Errorf("map %v follows %v, the map before it is %v", man.Version, man.Parent, parent.Version())
		}
		published[man.Version], parent = got, got
	}
	if parent == nil || parent.Version() != e.newest {
		t.Fatalf("the newest map is %v by its pointer, and the last is %v", e.newest, parent.Version())
	}
	if seq != uint64(len(e.changes)) || e.head.Seq != seq {
		t.Errorf("%d changes, %d by the head, %d of them published", len(e.changes), e.head.Seq, seq)
	}
	return published
}

// checkServed holds what routers served against what was published: the same
// versions, byte for byte, and each answer as that version has it.
func checkServed(t *testing.T, published map[cellway.Version]*routemap.Map, w *watcher, l *load) (outcomes map[string]int) {
	t.Helper()
	for v, digest := range w.digests {
		if m := published[v]; m == nil || m.Manifest().Digest() != digest {
			t.Errorf("a router served a map %v that is not the one published", v)
		}
	}
	outcomes = map[string]int{}
	wrong := 0
	for _, a := range l.answers {
		m := published[a.version]
		if m == nil {
			t.Fatalf("router-%d answered by map %v, which was never published", a.router+1, a.version)
		}
		r := m.Lookup(a.key)
		code, _ := m.Admit(&r)
		var want answered
		name := string(code)
		if code == "" {
			want = answered{status: http.StatusOK, said: said{r.Cell.ID, r.Key, r.Epoch}}
			name = "200 by the right cell"
		} else {
			want = answered{status: code.Status(), code: code}
		}
		allowed := []cellway.Code{"", cellway.KeyQuarantined, cellway.CellDrained, cellway.KeyGone}
		if a.status != want.status || a.code != want.code || a.said != want.said || !slices.Contains(allowed, code) {
			if wrong++; wrong <= 10 {
				t.Errorf("router-%d, map %v: %s got %d %q %+v, want %d %q %+v", a.router+1, a.version, a.key, a.status, a.code, a.said, want.status, want.code, want.said)
			}
			continue
		}
		outcomes[name]++
	}
	if wrong > 0 {
		t.Errorf("%d of %d answers are not what the map says", wrong, len(l.answers))
	}
	return outcomes
}
