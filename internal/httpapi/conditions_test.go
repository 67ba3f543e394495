package httpapi

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/routemap"
)

func TestAConditionThatIsSentIsKeptOrRefused(t *testing.T) {
	s, _ := newServer(t)
	fleetOf(t, s, 2)
	must(t, s, nil, "POST", "/v1/tenants", api.TenantCreation{ID: "acme"}, "Idempotency-Key", "k")
	var alias api.AliasChange
	refused(t, s, 412, api.CodeConflict, "PUT", "/v1/aliases/acme-corp", api.AliasSettings{Target: "acme"}, matching(7)...)
	if rec := must(t, s, &alias, "PUT", "/v1/aliases/acme-corp", api.AliasSettings{Target: "acme"}, create...); rec.Code != 201 {
		t.Errorf("a new alias: %d", rec.Code)
	}
	if rec := must(t, s, nil, "PUT", "/v1/aliases/acme-corp", api.AliasSettings{Target: "acme"}, create...); rec.Code != 200 {
		t.Errorf("an alias that is there: %d, want 200: nothing was created", rec.Code)
	}
	refused(t, s, 412, api.CodeConflict, "PUT", "/v1/aliases/acme-corp", api.AliasSettings{Target: "acme"}, matching(alias.Revision+1)...)
	must(t, s, nil, "PUT", "/v1/aliases/acme-corp", api.AliasSettings{Target: "acme"}, matching(alias.Revision)...)

	var cell api.Cell
	must(t, s, &cell, "GET", "/v1/cells/cell-001", nil)
	for _, act := range []string{"drain", "undrain"} {
		path, in := "/v1/cells/cell-001/"+act, api.DrainRequest{Admit: 100}
		refused(t, s, 412, api.CodeConflict, "POST", path, in, matching(cell.Revision+1)...)
		refused(t, s, 400, api.CodeInvalid, "POST", path, in, create...)
		refused(t, s, 400, api.CodeInvalid, "POST", path, in, "If-Match", "*")
		must(t, s, nil, "POST", path, in, matching(cell.Revision)...)
		must(t, s, nil, "POST", path, in)
	}
	// No number is no number: a drain of nothing said would be one to nothing.
	refused(t, s, 400, api.CodeInvalid, "POST", "/v1/cells/cell-001/drain", map[string]any{})
	// What no cell can admit is told as that, and not by where this cell stands.
	for _, act := range []string{"drain", "undrain"} {
		for _, admit := range []int{101, 255, 256, -1} {
			p := refused(t, s, 400, api.CodeInvalid, "POST", "/v1/cells/cell-001/"+act, map[string]any{"admit": admit})
			if !strings.Contains(p.Detail, `admit`) || !strings.Contains(p.Detail, strconv.Itoa(admit)) || strings.Contains(p.Detail, "raise") {
				t.Errorf("%s to %d: %s", act, admit, p.Detail)
			}
		}
	}
	refused(t, s, 400, api.CodeInvalid, "POST", "/v1/map/rollback", map[string]any{})
	// What has no revision says so, whatever it is.
	for path, in := range map[string]any{
		"/v1/buckets/assign": api.BucketAssignment{}, "/v1/map/rollback": api.RollbackRequest{Version: published(t, s)},
		"/v1/tokens": api.TokenCreation{Name: "alice", Role: "admin"}, "/v1/restore/confirm": api.RestoreConfirmation{Digest: routemap.Digest{}.String()},
		"/v1/routers/r1": api.RouterReport{Fleet: "shop", StartedAt: time.Now()},
	} {
		refused(t, s, 400, api.CodeInvalid, "POST", path, in, matching(99)...)
	}
	refused(t, s, 400, api.CodeInvalid, "DELETE", "/v1/tokens/x", nil, matching(99)...)
}

func TestTheJournalGoesOnUntilItsEnd(t *testing.T) {
	st := memstore.New()
	if err := st.Update(t.Context(), func(tx store.Tx) error {
		for i := range 20_500 { // more than one call looks at
			if _, err := tx.Append("journal", fmt.Appendf(nil, `{"at":"2026-01-01T00:00:00Z","who":"x","act":"tenant.place","subject":"tenant/t%d"}`, i)); err != nil {
				return err
			}
		}
		_, err := tx.Append("journal", []byte(`{"at":"2026-01-01T00:00:00Z","who":"x","act":"cell.drain","subject":"cell/cell-001"}`))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	svc, err := control.Open(t.Context(), control.Config{Store: st, Signers: []routemap.Signer{signer()}})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Service: svc, Open: true})
	found, path := 0, "/v1/journal?subject=cell/&limit=500"
	for pages := 1; ; pages++ {
		var page api.Page[api.JournalEntry]
		must(t, s, &page, "GET", path, nil)
		found += len(page.Items)
		if page.Next == "" {
			break
		}
		if pages > 50 {
			t.Fatal("it never ends")
		}
		path = "/v1/journal?subject=cell/&limit=500&after=" + page.Next
	}
	if found != 1 {
		t.Errorf("%d drains are found, want 1", found)
	}
	// A page that ends where the journal does is the last one.
	var page api.Page[api.JournalEntry]
	if must(t, s, &page, "GET", "/v1/journal?last=3&limit=3", nil); len(page.Items) != 3 || page.Next != "" {
		t.Errorf("the last three are %d, next %q", len(page.Items), page.Next)
	}
}

func TestAWriteThatIsRepeatedWaitsForTheFirst(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server, _ *countingStore) {
		time.Sleep(31 * time.Second) // the control plane knows all routers by then
		serve := func() {
			p := s.service.Newest()
			must(t, s, nil, "POST", "/v1/routers/r1", api.RouterReport{Fleet: "shop", StartedAt: time.Now(), MapVersion: p.Map.Version(), MapDigest: p.Version.Manifest.Digest().String()})
		}
		serve()
		must(t, s, nil, "POST", "/v1/cells/cell-001/drain", api.DrainRequest{Admit: 50}) // whose answer got lost
		var out api.CellChange
		must(t, s, &out, "POST", "/v1/cells/cell-001/drain?wait=routers&timeout=2s", api.DrainRequest{Admit: 50})
		if out.ChangeID != "" || out.Waited == nil || out.Waited.Reached || len(out.Waited.Behind) != 1 {
			t.Errorf("with r1 behind: %+v", out.Waited)
		}
		serve()
		must(t, s, &out, "POST", "/v1/cells/cell-001/drain?wait=routers&timeout=2s", api.DrainRequest{Admit: 50})
		if out.Waited == nil || !out.Waited.Reached {
			t.Errorf("with r1 there: %+v", out.Waited)
		}
	})
}

func TestWhatWaitsIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T, s *Server, _ *countingStore) {
		now := s.service.Newest().Map.Version()
		s.polls.most, s.waits.most = 1, 0
		first := poll(s, now, "10s")
		time.Sleep(time.Second)
		second := poll(s, now, "10s")
		<-second.done
		var p api.Problem
		if err := json.Unmarshal(second.rec.Body.Bytes(), &p); err != nil || second.rec.Code != 503 || p.Code != api.CodeNotReady || second.rec.Header().Get("Retry-After") == "" {
			t.Errorf("one too many: %d %s", second.rec.Code, second.rec.Body)
		}
		<-first.done
		if third := poll(s, now, "1s"); true {
			if <-third.done; third.rec.Code != 204 {
				t.Errorf("with a seat free again: %d", third.rec.Code)
			}
		}
		// A drain is done all the same, and says that nobody waited.
		var out api.CellChange
		must(t, s, &out, "POST", "/v1/cells/cell-001/drain?wait=routers&timeout=2s", api.DrainRequest{Admit: 50})
		if out.ChangeID == "" || out.Waited == nil || out.Waited.Reached || out.Waited.Why == "" {
			t.Errorf("got %+v", out.Change)
		}
	})
}

func TestAllThatACachedPartTakesIsCounted(t *testing.T) {
	c := newPartCache()
	raw := bytes.Repeat([]byte("tenant-0001 tenant-0002 "), 4096)
	p, err := c.get(routemap.Digest{1}, func() ([]byte, error) { return raw, nil })
	if err != nil {
		t.Fatal(err)
	}
	if p.gzipped() == nil || c.bytes != len(raw)+len(p.packed) {
		t.Errorf("%d bytes are counted of %d and %d packed", c.bytes, len(raw), len(p.packed))
	}
	noise := make([]byte, mostPartBytes)
	rand.Read(noise[:1024])
	if _, err := c.get(routemap.Digest{2}, func() ([]byte, error) { return noise, nil }); err != nil {
		t.Fatal(err)
	}
	if c.bytes != len(noise) || len(c.parts) != 1 || len(c.order) != 1 {
		t.Errorf("%d bytes of %d parts after the first one went", c.bytes, len(c.parts))
	}
}

// A load that fails forgets its part. Who waited for it loads that same part
// well, and nothing may be in the order or the count that is not kept.
func TestAPartThatWasForgottenIsKeptAgain(t *testing.T) {
	c := newPartCache()
	digest := routemap.Digest{1}
	var waiting *part
	if _, err := c.get(digest, func() ([]byte, error) { waiting = c.parts[digest]; return nil, cellway.ErrStoreDown }); !errors.Is(err, cellway.ErrStoreDown) {
		t.Fatal(err)
	}
	waiting.raw = []byte("x")
	c.used(waiting, 1)
	if len(c.parts) != 1 || len(c.order) != 1 || c.bytes != 1 || c.parts[digest] != waiting {
		t.Errorf("%d parts, %d in order, %d bytes", len(c.parts), len(c.order), c.bytes)
	}
	// Another caller was faster and has a part of its own there.
	second := &part{digest: digest, cache: c, raw: []byte("x")}
	if c.used(second, 1); len(c.order) != 1 || c.bytes != 1 || c.parts[digest] != waiting {
		t.Errorf("%d in order, %d bytes", len(c.order), c.bytes)
	}
}
