package gateway

import (
	"net/http"
	"testing"
	"testing/synctest"
)

func TestRequestsReachTheirHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 8, 2, func(c *Config) { c.ExplainHeaders = true })
		for range 20 {
			res := r.do(question{method: http.MethodPost, key: "acme/eu", body: "hello"})
			if res.status != 200 || res.body != "ok" {
				t.Fatalf("answer %+v", res)
			}
			if res.header.Get("X-Cell-Worker") == "" || res.header.Get("X-Cell-Hand") != r.gw.Stats().Version {
				t.Errorf("the answer does not explain itself: %v", res.header)
			}
		}
		for _, m := range r.hand("acme") {
			if m.hits.Load() == 0 {
				t.Errorf("%s is in the hand and got nothing", m.id)
			}
			for _, s := range m.saw() {
				if s.tenant != "acme" || s.body != "hello" || s.header.Get("X-Cell-Key") != "acme/eu" || s.header.Get("X-Cell-Epoch") != "1.7" ||
					s.header.Get("X-Cell-Id") != "cell-001" || s.header.Get("X-Cell-Attempt") != "1" || s.header.Get("X-Cell-Hand") != r.gw.Stats().Version {
					t.Errorf("a worker saw %+v", s)
				}
			}
		}
		if n := r.hits(); n != 20 {
			t.Errorf("%d requests reached workers, want 20", n)
		}
	})
}
