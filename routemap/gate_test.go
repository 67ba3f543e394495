package routemap_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

func TestGateAsksAboveItsLimits(t *testing.T) {
	base := routemap.Counts{Entries: 1000, Buckets: 16384, Cells: 20}
	with := func(change func(*routemap.Counts)) routemap.Counts { c := base; change(&c); return c }
	for name, tt := range map[string]struct {
		c    routemap.Counts
		want []string
	}{
		"nothing":                      {base, nil},
		"a tenth of the entries":       {with(func(c *routemap.Counts) { c.EntriesMoved = 100 }), nil},
		"more":                         {with(func(c *routemap.Counts) { c.EntriesMoved = 101 }), []string{"entries_moved 101 of 100"}},
		"a tenth of the buckets":       {with(func(c *routemap.Counts) { c.BucketsMoved = 1638 }), nil},
		"more buckets":                 {with(func(c *routemap.Counts) { c.BucketsMoved = 1639 }), []string{"buckets_moved 1639 of 1638"}},
		"ten keys of few":              {with(func(c *routemap.Counts) { c.Entries, c.EntriesMoved = 20, 10 }), nil},
		"eleven keys of few":           {with(func(c *routemap.Counts) { c.Entries, c.EntriesMoved = 20, 11 }), []string{"entries_moved 11 of 10"}},
		"one cell's share":             {with(func(c *routemap.Counts) { c.Cells, c.EntriesMoved = 4, 250 }), nil},
		"more than a cell's share":     {with(func(c *routemap.Counts) { c.Cells, c.EntriesMoved = 4, 251 }), []string{"entries_moved 251 of 250"}},
		"a cell's share of buckets":    {with(func(c *routemap.Counts) { c.Cells, c.BucketsMoved = 4, 4097 }), []string{"buckets_moved 4097 of 4096"}},
		"no cell":                      {routemap.Counts{}, nil},
		"new keys":                     {with(func(c *routemap.Counts) { c.EntriesAdded = 1_000_000 }), nil},
		"a fifth of the keys":          {with(func(c *routemap.Counts) { c.EntriesRemoved, c.EntriesLost = 200, 200 }), nil},
		"more than a fifth":            {with(func(c *routemap.Counts) { c.EntriesRemoved, c.EntriesLost = 201, 201 }), []string{"keys_shrunk 201 of 200", "keys_lost 201 of 200"}},
		"a third of three":             {with(func(c *routemap.Counts) { c.Entries, c.EntriesRemoved, c.EntriesLost = 3, 1, 1 }), nil},
		"ten lost of twelve":           {with(func(c *routemap.Counts) { c.Entries, c.EntriesRemoved, c.EntriesLost = 12, 10, 10 }), nil},
		"eleven lost of twelve":        {with(func(c *routemap.Counts) { c.Entries, c.EntriesRemoved, c.EntriesLost = 12, 11, 11 }), []string{"keys_shrunk 11 of 10", "keys_lost 11 of 10"}},
		"all of three":                 {with(func(c *routemap.Counts) { c.Entries, c.EntriesRemoved, c.EntriesLost = 3, 3, 3 }), []string{"keys_shrunk 3 of 2"}},
		"all of ten":                   {with(func(c *routemap.Counts) { c.Entries, c.EntriesRemoved, c.EntriesLost = 10, 10, 10 }), []string{"keys_shrunk 10 of 9"}},
		"all of three, by others":      {with(func(c *routemap.Counts) { c.Entries, c.EntriesRemoved, c.EntriesLost, c.EntriesAdded = 3, 3, 3, 1 }), nil},
		"the only one":                 {with(func(c *routemap.Counts) { c.Entries, c.EntriesRemoved, c.EntriesLost = 1, 1, 1 }), nil},
		"replaced by others":           {with(func(c *routemap.Counts) { c.EntriesRemoved, c.EntriesLost, c.EntriesAdded = 500, 500, 500 }), []string{"keys_lost 500 of 200"}},
		"ten without an entry":         {with(func(c *routemap.Counts) { c.Entries, c.NamesLost = 0, 10 }), nil},
		"eleven without an entry":      {with(func(c *routemap.Counts) { c.Entries, c.NamesLost = 0, 11 }), []string{"keys_lost 11 of 10"}},
		"entries of keys that stay":    {with(func(c *routemap.Counts) { c.Entries, c.EntriesRemoved = 12, 10 }), nil},
		"many of them":                 {with(func(c *routemap.Counts) { c.EntriesRemoved = 201 }), []string{"keys_shrunk 201 of 200"}},
		"one cell elsewhere":           {with(func(c *routemap.Counts) { c.CellsRepointed = 1 }), nil},
		"two cells elsewhere":          {with(func(c *routemap.Counts) { c.CellsRepointed = 2 }), []string{"cells_repointed 2 of 1"}},
		"extractors":                   {with(func(c *routemap.Counts) { c.ExtractorsChanged = true }), []string{"extractors_changed 1 of 0"}},
		"mapping":                      {with(func(c *routemap.Counts) { c.MappingChanged = true }), []string{"mapping_changed 1 of 0"}},
		"numbers that overflow 32 bit": {with(func(c *routemap.Counts) { c.Entries, c.EntriesMoved = 4_000_000_000, 400_000_001 }), []string{"entries_moved 400000001 of 400000000"}},
	} {
		var got []string
		for _, cause := range tt.c.Exceeded() {
			got = append(got, fmt.Sprintf("%s %d of %d", cause.Name, cause.Count, cause.Limit))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

func TestChangesAreJudgedByTheirSum(t *testing.T) {
	small := routemap.Counts{Entries: 100, Buckets: 64, Cells: 20, EntriesMoved: 6, NamesLost: 6}
	if causes := small.Exceeded(); len(causes) > 0 {
		t.Fatalf("one alone exceeds %v", causes)
	}
	later := small
	later.Entries, later.Cells, later.MappingChanged = 5000, 1, true
	sum := small.Add(later)
	if sum.Entries != 100 || sum.Cells != 20 {
		t.Errorf("the sum is measured against %d entries and %d cells, want those at first", sum.Entries, sum.Cells)
	}
	if causes := sum.Exceeded(); len(causes) != 2 {
		t.Errorf("the sum exceeds %v, want entries_moved and mapping_changed", causes)
	}
	for range 10 {
		sum = sum.Add(small)
	}
	if causes := sum.Exceeded(); len(causes) != 3 {
		t.Errorf("the sum exceeds %v, want also keys_lost", causes)
	}
}

// The gate is about what a key's look-up answers, so that no way of changing
// an owner or of losing a key goes uncounted.
func TestCompareCountsOwnersThatChange(t *testing.T) {
	c := content(4, 64)
	for i := range c.Owners {
		c.Owners[i].Cell = "cell-001"
	}
	c.Entries = []cellway.Entry{
		{Key: "acme", Cell: "cell-002"}, {Key: "globex", Cell: "cell-001"}, {Key: "globex/eu", Cell: "cell-002"}, override("pinned", cellway.Pin, "cell-001"),
	}
	c.Aliases = []cellway.Alias{{Name: "old", Target: "acme"}}
	c.Tombstones = []cellway.Tombstone{{Key: "left"}}
	m := build(t, c)
	cell, repointed := c.Cells[0], c.Cells[1]
	cell.Endpoints = []string{"http://10.0.0.1:1", "http://10.0.0.2:1"}
	repointed.Admit = 0
	two := apply(t, m, routemap.ChangeSet{Cells: []cellway.Cell{cell}}, 5)
	cell.Endpoints = []string{"http://10.0.0.2:1", "http://10.0.0.1:1"}

	for name, tt := range map[string]struct {
		from *routemap.Map
		cs   routemap.ChangeSet
		want routemap.Counts
	}{
		"an entry elsewhere":                {m, routemap.ChangeSet{Entries: []cellway.Entry{{Key: "acme", Cell: "cell-003"}}}, routemap.Counts{EntriesMoved: 1}},
		"an entry of another kind":          {m, routemap.ChangeSet{Entries: []cellway.Entry{override("acme", cellway.Pin, "cell-002")}}, routemap.Counts{}},
		"quarantine":                        {m, routemap.ChangeSet{Entries: []cellway.Entry{override("acme", cellway.Quarantine, "")}}, routemap.Counts{EntriesMoved: 1}},
		"an entry goes, another owner":      {m, routemap.ChangeSet{RemoveEntries: []cellway.Key{"acme"}}, routemap.Counts{EntriesRemoved: 1, EntriesMoved: 1}},
		"an entry goes, the same owner":     {m, routemap.ChangeSet{RemoveEntries: []cellway.Key{"globex"}}, routemap.Counts{EntriesRemoved: 1}},
		"a composite goes to its tenant":    {m, routemap.ChangeSet{RemoveEntries: []cellway.Key{"globex/eu"}}, routemap.Counts{EntriesRemoved: 1, EntriesMoved: 1}},
		"an entry is deleted":               {m, routemap.ChangeSet{RemoveEntries: []cellway.Key{"acme"}, Tombstones: []cellway.Tombstone{{Key: "acme"}}}, routemap.Counts{EntriesRemoved: 1, EntriesLost: 1}},
		"an entry is renamed":               {m, routemap.ChangeSet{RemoveEntries: []cellway.Key{"pinned"}, Entries: []cellway.Entry{{Key: "p2", Cell: "cell-001"}}, Aliases: []cellway.Alias{{Name: "pinned", Target: "p2"}}}, routemap.Counts{EntriesRemoved: 1, EntriesAdded: 1}},
		"a new key elsewhere":               {m, routemap.ChangeSet{Entries: []cellway.Entry{{Key: "new", Cell: "cell-002"}}}, routemap.Counts{EntriesAdded: 1}},
		"a key of a bucket pinned":          {m, routemap.ChangeSet{Entries: []cellway.Entry{override("bucketed", cellway.Pin, "cell-002")}}, routemap.Counts{EntriesAdded: 1, EntriesMoved: 1}},
		"a key of a bucket pinned there":    {m, routemap.ChangeSet{Entries: []cellway.Entry{override("bucketed", cellway.Pin, "cell-001")}}, routemap.Counts{EntriesAdded: 1}},
		"a key of a bucket quarantined":     {m, routemap.ChangeSet{Entries: []cellway.Entry{override("bucketed", cellway.Quarantine, "")}}, routemap.Counts{EntriesAdded: 1, EntriesMoved: 1}},
		"a test tenant":                     {m, routemap.ChangeSet{Entries: []cellway.Entry{override("probe", cellway.Test, "cell-002")}}, routemap.Counts{EntriesAdded: 1}},
		"a key of a bucket deleted":         {m, routemap.ChangeSet{Tombstones: []cellway.Tombstone{{Key: "bucketed"}}}, routemap.Counts{NamesLost: 1}},
		"a part of a deleted tenant":        {m, routemap.ChangeSet{Tombstones: []cellway.Tombstone{{Key: "left/eu"}}}, routemap.Counts{}},
		"an alias goes":                     {m, routemap.ChangeSet{RemoveAliases: []cellway.TenantID{"old"}, Tombstones: []cellway.Tombstone{{Key: "old"}}}, routemap.Counts{NamesLost: 1}},
		"a name may be used again":          {m, routemap.ChangeSet{RemoveTombstones: []cellway.Key{"left"}}, routemap.Counts{}},
		"a bucket elsewhere":                {m, routemap.ChangeSet{Owners: []cellway.BucketOwner{{Bucket: 7, Cell: "cell-002"}}}, routemap.Counts{BucketsMoved: 1}},
		"a drain":                           {m, routemap.ChangeSet{Cells: []cellway.Cell{repointed}}, routemap.Counts{}},
		"a hold":                            {m, routemap.ChangeSet{Holds: []cellway.Hold{{Key: "acme", Move: "m", Until: review}}}, routemap.Counts{}},
		"other endpoints":                   {m, routemap.ChangeSet{Cells: []cellway.Cell{cell}}, routemap.Counts{CellsRepointed: 1}},
		"the same endpoints, another order": {two, routemap.ChangeSet{Cells: []cellway.Cell{cell}}, routemap.Counts{}},
	} {
		want := tt.want
		want.Entries, want.Buckets, want.Cells = 4, 64, 4
		after := apply(t, tt.from, tt.cs, 100)
		folded, err := after.Fold()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for how, got := range map[string]routemap.Counts{"one base": routemap.Compare(tt.from, after), "two bases": routemap.Compare(tt.from, folded)} {
			if got != want {
				t.Errorf("%s, %s: got\n%v, want\n%v", name, how, got, want)
			}
		}
	}
	if got, want := routemap.Compare(nil, m), (routemap.Counts{EntriesAdded: 4}); got != want {
		t.Errorf("a first map counts as %v, want %v", got, want)
	}
}

// A job that deletes the wrong tenants must be stopped, whether they have
// entries or live where their bucket is.
func TestGateStopsAMassDeletion(t *testing.T) {
	for _, entries := range []int{0, 500} {
		c := content(4, 64)
		for i := range entries {
			c.Entries = append(c.Entries, cellway.Entry{Key: cellway.Key(fmt.Sprintf("tenant-%d", i)), Cell: "cell-001"})
		}
		m := build(t, c)
		var cs routemap.ChangeSet
		for i := range 120 {
			key := cellway.Key(fmt.Sprintf("tenant-%d", i))
			cs.Tombstones = append(cs.Tombstones, cellway.Tombstone{Key: key})
			if entries > 0 {
				cs.RemoveEntries = append(cs.RemoveEntries, key)
			}
		}
		causes := routemap.Compare(m, apply(t, m, cs, 10)).Exceeded()
		if !slices.ContainsFunc(causes, func(c routemap.Cause) bool { return c.Name == "keys_lost" && c.Count == 120 }) {
			t.Errorf("with %d entries, 120 deleted tenants exceed %v", entries, causes)
		}
	}
}

// An empty map from a sick source must be noticed, and an intended one be
// possible.
func TestGateAsksBeforeAMapIsEmptied(t *testing.T) {
	c := content(2, 8)
	c.Strict = true
	c.Entries = []cellway.Entry{{Key: "a", Cell: "cell-001"}, {Key: "b", Cell: "cell-002"}}
	m, _ := published(t, build(t, c), nil, 1)
	empty := apply(t, m, routemap.ChangeSet{RemoveEntries: []cellway.Key{"a", "b"}}, 10)
	if causes := routemap.Compare(m, empty).Exceeded(); len(causes) == 0 {
		t.Error("the gate lets a map be emptied without a word")
	}
	for confirmed, want := range map[bool]bool{true: true, false: false} {
		next, _, err := routemap.Publish(empty, routemap.Publication{
			Version: 2, Parent: m, Verdict: routemap.Verdict{Confirmed: confirmed}, Signers: []routemap.Signer{routemap.LocalSigner(signingKey())},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := routemap.Accept(m, next); (err == nil) != want {
			t.Errorf("confirmed %t: %v", confirmed, err)
		}
	}
}
