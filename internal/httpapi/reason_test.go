package httpapi

import (
	"testing"

	"github.com/cellway/cellway/api"
)

// Whatever is written, the journal can say why.
func TestEveryWriteTakesAReasonForTheJournal(t *testing.T) {
	s, _ := newServer(t)
	var made api.NewToken // by the last of them
	fresh := []string{"If-None-Match", "*"}
	for _, w := range []struct {
		method, path string
		in           any
		headers      []string
	}{
		{"PUT", "/v1/fleet", api.FleetSettings{Name: "shop", Mapping: "full"}, fresh},
		{"PUT", "/v1/cells/cell-001", map[string]any{"state": "active", "guard": "none", "endpoints": []string{"http://10.0.0.1:80"}}, fresh},
		{"PUT", "/v1/tenants/acme", api.TenantSettings{}, fresh},
		{"POST", "/v1/tenants", api.TenantCreation{ID: "globex"}, []string{"Idempotency-Key", "k"}},
		{"PUT", "/v1/aliases/acme-corp", api.AliasSettings{Target: "acme"}, fresh},
		{"PUT", "/v1/overrides/loud", map[string]any{"kind": "quarantine", "by": "me", "reason": "loud", "review_by": "2099-01-31T00:00:00Z"}, fresh},
		{"POST", "/v1/tokens", api.TokenCreation{Name: "alice", Role: "admin"}, nil},
	} {
		must(t, s, nil, w.method, w.path+"?dry_run=true&reason=as+agreed", w.in, w.headers...)
		must(t, s, &made, w.method, w.path+"?reason=as+agreed", w.in, w.headers...)
	}
	var page api.Page[api.JournalEntry]
	must(t, s, &page, "GET", "/v1/journal", nil, "Authorization", "Bearer "+made.Secret)
	said := 0
	for _, e := range page.Items {
		if e.Reason != "as agreed" {
			t.Errorf("%s %s: reason %q", e.Act, e.Subject, e.Reason)
		}
		said++
	}
	if said != 7 {
		t.Errorf("%d acts are in the journal, want 7", said)
	}
}
