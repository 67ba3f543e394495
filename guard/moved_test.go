package guard_test

import (
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/guard"
)

// epoch parses one.
func epoch(t *testing.T, s string) cellway.Epoch {
	t.Helper()
	e, err := cellway.ParseEpoch(s)
	must(t, err)
	return e
}

func TestWhatHasMovedIsRefusedWithItsNewCell(t *testing.T) {
	moved := map[cellway.Key]cellway.CellID{"acme": "cell-002", "globex/eu": "cell-003"}
	knows := func(c *guard.Config) {
		c.Direct = true
		c.Moved = func(key cellway.Key) (cellway.CellID, cellway.Epoch, bool) {
			to, ok := moved[key]
			return to, epoch(t, "1.9"), ok
		}
		c.DirectKey = func(f guard.Fields) cellway.Key {
			if v := f.Values("X-Tenant-Id"); len(v) == 1 {
				return cellway.Key(v[0])
			}
			return ""
		}
	}
	for name, c := range map[string]struct {
		headers []string
		direct  bool
		to      string
	}{
		"the tenant has moved":       {headers: []string{"X-Cell-Key", "acme", "X-Tenant-Id", "acme"}, to: "cell-002"},
		"a part of it was asked":     {headers: []string{"X-Cell-Key", "acme/eu", "X-Tenant-Id", "acme"}, to: "cell-002"},
		"a part has moved":           {headers: []string{"X-Cell-Key", "globex/eu", "X-Tenant-Id", "globex"}, to: "cell-003"},
		"another part stays":         {headers: []string{"X-Cell-Key", "globex/us", "X-Tenant-Id", "globex"}},
		"never here":                 {headers: []string{"X-Cell-Key", "initech", "X-Tenant-Id", "initech"}},
		"even at a higher epoch":     {headers: []string{"X-Cell-Key", "acme", "X-Tenant-Id", "acme", "X-Cell-Epoch", "2.1"}, to: "cell-002"},
		"direct, moved":              {direct: true, headers: []string{"X-Tenant-Id", "acme"}, to: "cell-002"},
		"direct, not moved":          {direct: true, headers: []string{"X-Tenant-Id", "initech"}},
		"direct, names no key":       {direct: true},
		"direct, names what is none": {direct: true, headers: []string{"X-Tenant-Id", "a b"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := routed(c.headers...)
			if c.direct {
				r = request(c.headers...)
				r.RemoteAddr = "192.0.2.1:1"
			}
			s, w, why := ask(t, r, knows)
			if s.served == (c.to != "") {
				t.Fatalf("served: %v, answer %d", s.served, w.Code)
			}
			if got := w.Header().Get("X-Cell-Moved-To"); got != c.to {
				t.Errorf("X-Cell-Moved-To is %q, want %q", got, c.to)
			}
			if c.to == "" {
				return
			}
			if w.Code != 421 || why != guard.MovedAway || w.Header().Get("X-Cell-Epoch") != "1.9" {
				t.Errorf("answer %d because of %q, epoch %q; want 421, moved, 1.9", w.Code, why, w.Header().Get("X-Cell-Epoch"))
			}
		})
	}
}

// A refusal for another reason names no cell to go to.
func TestOtherRefusalsNameNoNewCell(t *testing.T) {
	_, w, why := ask(t, routed("X-Cell-Id", "cell-009"), func(c *guard.Config) {
		c.Moved = func(cellway.Key) (cellway.CellID, cellway.Epoch, bool) { return "cell-002", epoch(t, "1.9"), true }
	})
	if why != guard.OtherCell || w.Header().Get("X-Cell-Moved-To") != "" || w.Header().Get("X-Cell-Epoch") != "1.7" {
		t.Errorf("refused because of %q with %v", why, w.Header())
	}
}
