package guard_test

import (
	"net/http"
	"net/netip"
	"testing"

	"github.com/cellway/cellway/guard"
)

// Whatever headers say, a request is either refused with a reason, or is one that a
// router has sent to this cell, with a key that is one or none at all.
func FuzzJudge(f *testing.F) {
	j, err := guard.NewJudge(guard.Config{Cell: "cell-001", Addresses: prefixes("10.0.0.0/8")})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("cell-001", "1.7", "acme/eu", "acme", true)
	f.Add("cell-002", "1.7", "acme", "acme", true)
	f.Add("cell-001", "", "", "mine", true)
	f.Add("cell-001", "-1", "a/b/c", "a", false)
	f.Fuzz(func(t *testing.T, cell, epoch, key, tenant string, router bool) {
		h := http.Header{}
		for name, v := range map[string]string{guard.CellHeader: cell, guard.EpochHeader: epoch, guard.KeyHeader: key, guard.TenantHeader: tenant} {
			if v != "" {
				h[name] = []string{v}
			}
		}
		peer := netip.MustParseAddr("192.0.2.1")
		if router {
			peer = netip.MustParseAddr("10.1.2.3")
		}
		v := j.Judge(h, peer, nil)
		if v.Refused != "" {
			set := http.Header{}
			if status, body := v.Answer(set.Set); status != 421 || len(body) == 0 || set.Get(guard.EpochHeader) == "" {
				t.Errorf("refusal %d %q %v", status, body, set)
			}
			return
		}
		id := v.Identity
		if !v.Routed || !router || id.Cell != "cell-001" || id.Key != "" && (!id.Key.Valid() || string(id.Tenant()) != tenant) {
			t.Errorf("%+v passes", v)
		}
	})
}

func TestJudgingCostsNoMemory(t *testing.T) {
	j, err := guard.NewJudge(guard.Config{Cell: "cell-001", Addresses: prefixes("10.0.0.0/8")})
	if err != nil {
		t.Fatal(err)
	}
	h, peer := routed().Header, netip.MustParseAddr("10.1.2.3")
	if n := testing.AllocsPerRun(1000, func() {
		if v := j.Judge(h, peer, nil); v.Refused != "" {
			t.Fatal(v)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
