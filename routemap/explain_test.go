package routemap_test

import (
	"encoding/json"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

func TestExplainTellsEveryStep(t *testing.T) {
	m := everyRule(t)
	drained := *m.Cell("cell-001")
	drained.Admit, drained.Title = 7, "The first"
	m = apply(t, m, routemap.ChangeSet{
		Cells:   []cellway.Cell{drained},
		Entries: []cellway.Entry{override("split/probe", cellway.Test, "cell-001")},
		Holds:   []cellway.Hold{{Key: "new", Move: "move-7", Until: review, HoldMS: 900}},
	}, 500)
	m, _ = published(t, m, nil, cellway.NewVersion(3, 9))
	for key, want := range map[cellway.Key]string{
		// An entry, in a cell that is drained below the tenant's position.
		"split": `{"map_version":"3.9","asked":"split","key":"split","rule":"key","entry":{"key":"split","kind":"placed","cell":"cell-001","epoch":"0.1"},"bucket":15,"cell":"cell-001","title":"The first","state":"active","epoch":"0.1","admission":{"admitted":false,"code":"cell_drained","admit":7,"position":93}}`,
		// An alias with a part, then the entry of the whole key.
		"old/eu": `{"map_version":"3.9","asked":"old/eu","alias":"old","key":"split/eu","rule":"key","entry":{"key":"split/eu","kind":"placed","cell":"cell-002","epoch":"0.1"},"bucket":15,"cell":"cell-002","state":"active","epoch":"0.1","admission":{"admitted":true,"admit":100,"position":93}}`,
		// The entry of the tenant.
		"changed/x": `{"map_version":"3.9","asked":"changed/x","key":"changed/x","rule":"tenant","entry":{"key":"changed","kind":"placed","cell":"cell-003","epoch":"0.100"},"bucket":44,"cell":"cell-003","state":"active","epoch":"0.100","admission":{"admitted":true,"admit":100,"position":56}}`,
		// Two parts: no tenant to tell of.
		"old-eu/us": `{"map_version":"3.9","asked":"old-eu/us","alias":"old-eu","key":"old-eu/us","rule":"none","epoch":"0.0","admission":{"admitted":false,"code":"key_conflict","admit":0,"position":0}}`,
		// A test entry goes to a drained cell.
		"split/probe": `{"map_version":"3.9","asked":"split/probe","key":"split/probe","rule":"key","entry":{"key":"split/probe","kind":"test","cell":"cell-001","epoch":"0.500","by":"ops","reason":"a reason","review_by":"2027-03-01T00:00:00Z"},"bucket":15,"cell":"cell-001","title":"The first","state":"active","epoch":"0.500","admission":{"admitted":true,"admit":7,"position":93,"exempt":true}}`,
		// Quarantined without a cell, by its tenant's entry.
		"sick/eu": `{"map_version":"3.9","asked":"sick/eu","key":"sick/eu","rule":"tenant","entry":{"key":"sick","kind":"quarantine","epoch":"0.1","by":"ops","reason":"a reason","review_by":"2027-03-01T00:00:00Z"},"bucket":54,"epoch":"0.1","admission":{"admitted":false,"code":"key_quarantined","admit":0,"position":14}}`,
		// A tombstone has the epoch of the deletion.
		"gone-name": `{"map_version":"3.9","asked":"gone-name","key":"gone-name","rule":"key","bucket":48,"epoch":"0.104","admission":{"admitted":false,"code":"key_gone","admit":0,"position":39}}`,
		// A bucket, whose epoch rose when the entry went.
		"removed": `{"map_version":"3.9","asked":"removed","key":"removed","rule":"bucket","bucket":62,"cell":"cell-003","state":"active","epoch":"0.105","admission":{"admitted":true,"admit":100,"position":38}}`,
		// Held by its tenant.
		"new/us": `{"map_version":"3.9","asked":"new/us","key":"new/us","rule":"tenant","entry":{"key":"new","kind":"placed","cell":"cell-002","epoch":"0.101"},"bucket":21,"cell":"cell-002","state":"active","epoch":"0.101","admission":{"admitted":false,"code":"key_held","admit":100,"position":88,"hold":{"key":"new","move":"move-7","until":"2027-03-01T00:00:00Z","hold_ms":900}}}`,
	} {
		got, err := json.Marshal(m.Explain(key))
		if err != nil || string(got) != want {
			t.Errorf("Explain(%s) = %v\n%s, want\n%s", key, err, got, want)
		}
	}
}

func TestExplanationIsTheCallersOwn(t *testing.T) {
	c := content(2, 8)
	c.Entries = []cellway.Entry{{Key: "acme", Cell: "cell-001"}}
	c.Holds = []cellway.Hold{{Key: "acme", Move: "m", Until: review}}
	m := build(t, c)
	e := m.Explain("acme")
	e.Admission.Hold.Move, e.Entry.Cell = "x", "x"
	if e := m.Explain("acme"); e.Admission.Hold.Move != "m" || e.Entry.Cell != "cell-001" {
		t.Errorf("the map became what somebody made of its explanation: %+v", e)
	}
}

// The position is the least admit that lets the tenant through.
func TestExplainedPositionIsWhereTheTenantComesIn(t *testing.T) {
	m := build(t, content(1, 1))
	for _, tenant := range []cellway.TenantID{"a", "b", "c", "acme", "globex", "initech", "x-1", "x-2", "x-3"} {
		p := m.Explain(cellway.Key(tenant)).Admission.Position
		if p < 1 || p > 100 || !routemap.Admits(tenant, p) || routemap.Admits(tenant, p-1) {
			t.Errorf("%s: position %d, but it is admitted at %d: %t and at %d: %t", tenant, p, p-1, routemap.Admits(tenant, p-1), p, routemap.Admits(tenant, p))
		}
	}
}

func TestExplainInAFullFleet(t *testing.T) {
	c := fullContent(2)
	c.CatchAll, c.CatchAllEpoch = "cell-002", 5
	m := build(t, c)
	e := m.Explain("nobody/eu")
	if e.Bucket != nil || e.Rule != routemap.RuleCatchAll || e.Cell != "cell-002" || e.Epoch != 5 || !e.Admission.Admitted {
		t.Errorf("got %+v, want the catch-all cell at epoch 5 and no bucket", e)
	}
}
