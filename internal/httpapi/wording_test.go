package httpapi

import (
	"strings"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
)

// A walk over what can be wrong with a request: each refusal says what is wrong,
// and says it once. What else this package's tests ask is held to the same.
func TestRefusalsSayThingsOnce(t *testing.T) {
	s, _ := newServer(t)
	fleetOf(t, s, 2)
	var tenant api.TenantChange
	must(t, s, &tenant, "PUT", "/v1/tenants/acme", api.TenantSettings{}, create...)
	elsewhere := cellway.CellID("cell-001")
	if tenant.Cell == elsewhere {
		elsewhere = "cell-002"
	}
	must(t, s, nil, "PUT", "/v1/aliases/slug", api.AliasSettings{Target: "acme"}, create...)
	must(t, s, nil, "POST", "/v1/tokens?dry_run=true", api.TokenCreation{Name: "root", Role: "admin"})
	long := strings.Repeat("x", 600)
	at := func(rev string) []string { return []string{"If-Match", `"` + rev + `"`} }
	key := []string{"Idempotency-Key", "k"}
	const by = `"by":"alice","reason":"why","review_by":"2099-01-01T00:00:00Z"`
	for _, tt := range []struct {
		method, path, body string
		headers            []string
	}{
		{"PUT", "/v1/fleet", `{"name":"shop","mapping":"buckets","buckets":256,"extractors":[{"kind":"header","name":"X-Tenant-Id"}]}`, create},
		{"PUT", "/v1/fleet", `{"name":"shop","mapping":"rings"}`, at("1")},
		{"PUT", "/v1/fleet", `{"name":"Shop","mapping":"buckets","buckets":256}`, at("1")},
		{"PUT", "/v1/fleet", `{"name":"shop","mapping":"buckets","buckets":5}`, at("1")},
		{"PUT", "/v1/fleet", `{"name":"shop","mapping":"buckets","buckets":4294967296}`, at("1")},
		{"PUT", "/v1/fleet", `{"name":"shop","mapping":"buckets","buckets":256}`, at("1")},
		{"PUT", "/v1/fleet", `{"name":"shop","mapping":"buckets","buckets":256,"extractors":[{"kind":"telepathy"}]}`, at("1")},
		{"PUT", "/v1/fleet", `{"name":"shop","mapping":"buckets","buckets":256,"extractors":[{"kind":"header"}]}`, at("1")},
		{"PUT", "/v1/fleet", `{"name":"shop","mapping":"buckets","buckets":256,"extractors":[{"kind":"path","pattern":"nope"}]}`, at("1")},
		{"PUT", "/v1/fleet", `{"name":"shop","mapping":"buckets","buckets":256,"extractors":[{"kind":"header","name":"a b"}]}`, at("1")},
		{"PUT", "/v1/fleet", `{"name":"shop","mapping":"buckets","buckets":256,"extractors":[{"kind":"fixed","pattern":"/x","key":"a b"}]}`, at("1")},
		{"PUT", "/v1/fleet", `{"name":"shop","mapping":"buckets","buckets":256,"catch_all":"cell-009","extractors":[{"kind":"header","name":"X"}]}`, at("1")},
		{"PUT", "/v1/fleet", `{"name":"shop","mapping":"buckets","buckets":256,"catch_all":"Cell","extractors":[{"kind":"header","name":"X"}]}`, at("1")},
		{"PUT", "/v1/fleet", `{"name":"shop","mapping":"buckets","buckets":256,"pass_through":true,"extractors":[{"kind":"header","name":"X"}]}`, at("1")},
		{"PUT", "/v1/fleet", `{"name":"mall","mapping":"buckets","buckets":256,"extractors":[{"kind":"header","name":"X"}]}`, at("1")},
		{"PUT", "/v1/fleet", `{"name":"shop","mapping":"buckets","buckets":512,"extractors":[{"kind":"header","name":"X"}]}`, at("1")},
		{"PUT", "/v1/fleet", `{"name":"shop","mapping":"full","extractors":[{"kind":"header","name":"X"}]}`, at("9")},

		{"PUT", "/v1/cells/Cell", `{}`, create},
		{"PUT", "/v1/cells/cell-009", `{"endpoints":["10.0.0.1:80"]}`, create},
		{"PUT", "/v1/cells/cell-009", `{"endpoints":["http://10.0.0.1:70000"]}`, create},
		{"PUT", "/v1/cells/cell-009", `{"endpoints":["http://10.0.0.1:80/x"]}`, create},
		{"PUT", "/v1/cells/cell-009", `{"endpoints":["http://10.0.0.1:80","http://10.0.0.1:80"]}`, create},
		{"PUT", "/v1/cells/cell-009", `{"endpoints":["http://10.0.0.1:80","https://10.0.0.1:80"]}`, create},
		{"PUT", "/v1/cells/cell-009", `{"endpoints":["http://127.0.0.1:9001"]}`, create},
		{"PUT", "/v1/cells/cell-009", `{"state":"active"}`, create},
		{"PUT", "/v1/cells/cell-009", `{"state":"asleep"}`, create},
		{"PUT", "/v1/cells/cell-009", `{"state":"retired"}`, create},
		{"PUT", "/v1/cells/cell-009", `{"guard":"dog"}`, create},
		{"PUT", "/v1/cells/cell-009", `{"title":"` + long + `"}`, create},
		{"PUT", "/v1/cells/cell-009", `{"region":"a\nb"}`, create},
		{"PUT", "/v1/cells/cell-009", `{"tags":{"":"x"}}`, create},
		{"PUT", "/v1/cells/cell-009", `{"capacity":{"rps":-1}}`, create},
		{"PUT", "/v1/cells/cell-009", `{"capacity":{"a\nb":1}}`, create},
		{"PUT", "/v1/cells/cell-009", `{"headroom":100}`, create},
		{"PUT", "/v1/cells/cell-009", `{"tiers":[""]}`, create},
		{"PUT", "/v1/cells/cell-001", `{}`, create},
		{"PUT", "/v1/cells/cell-001", `{"state":"new"}`, at("1")},
		{"PUT", "/v1/cells/cell-001", `{"state":"active","endpoints":["http://10.0.0.1:80"]}`, at("9")},
		{"PUT", "/v1/cells/cell-009", `{}`, at("9")},
		{"POST", "/v1/cells/cell-009/drain", `{"admit":0}`, nil},
		{"POST", "/v1/cells/cell-001/drain", `{"admit":101}`, nil},
		{"POST", "/v1/cells/cell-001/drain", `{"admit":300}`, nil},
		{"POST", "/v1/cells/cell-001/undrain", `{"admit":101}`, nil},
		{"POST", "/v1/cells/cell-001/undrain", `{"admit":0}`, nil},
		{"POST", "/v1/cells/cell-001/undrain", `{"admit":0}`, at("9")},
		{"POST", "/v1/cells/cell-001/retire", `{}`, at("1")},
		{"POST", "/v1/cells/cell-009/retire", `{}`, at("1")},
		{"POST", "/v1/buckets/assign", `{"policy":"dice"}`, nil},

		{"GET", "/v1/tenants/nobody", ``, nil},
		{"GET", "/v1/tenants/a%20b", ``, nil},
		{"GET", "/v1/tenants/" + long, ``, nil},
		{"PUT", "/v1/tenants/beta", `{"policy":"dice"}`, create},
		{"PUT", "/v1/tenants/beta", `{"tier":"a\nb"}`, create},
		{"PUT", "/v1/tenants/beta", `{"weights":{"rps":-1}}`, create},
		{"PUT", "/v1/tenants/beta", `{"residency":"mars"}`, create},
		{"PUT", "/v1/tenants/beta", `{}`, at("4")},
		{"PUT", "/v1/tenants/acme", `{}`, create},
		{"PUT", "/v1/tenants/acme", `{}`, at("9")},
		{"PUT", "/v1/tenants/acme", `{"residency":"mars"}`, at("1")},
		{"PUT", "/v1/tenants/slug", `{}`, create},
		{"POST", "/v1/tenants", `{"id":""}`, key},
		{"POST", "/v1/tenants", `{"id":"acme"}`, key},
		{"DELETE", "/v1/tenants/nobody", ``, at("1")},
		{"DELETE", "/v1/tenants/acme", ``, at("9")},
		{"POST", "/v1/tenants/nobody/undelete", `{}`, at("1")},
		{"POST", "/v1/tenants/acme/undelete", `{}`, at("1")},

		{"GET", "/v1/overrides/nobody", ``, nil},
		{"PUT", "/v1/overrides/a%20b", `{}`, create},
		{"PUT", "/v1/overrides/acme", `{"kind":"placed","cell":"cell-001"}`, create},
		{"PUT", "/v1/overrides/acme", `{"kind":"wish"}`, create},
		{"PUT", "/v1/overrides/acme", `{"kind":"pin","cell":"Cell",` + by + `}`, create},
		{"PUT", "/v1/overrides/acme", `{"kind":"pin","cell":"cell-009",` + by + `}`, create},
		{"PUT", "/v1/overrides/acme", `{"kind":"pin","cell":"` + string(elsewhere) + `",` + by + `}`, create},
		{"PUT", "/v1/overrides/acme", `{"kind":"pin",` + by + `}`, create},
		{"PUT", "/v1/overrides/acme", `{"kind":"quarantine"}`, create},
		{"PUT", "/v1/overrides/acme", `{"kind":"quarantine","by":"a\nb","reason":"x"}`, create},
		{"PUT", "/v1/overrides/acme", `{"kind":"quarantine","by":"a","reason":"` + long + `"}`, create},
		{"PUT", "/v1/overrides/acme", `{"kind":"quarantine","by":"a","reason":"x","review_by":"soon"}`, create},
		{"PUT", "/v1/overrides/acme", `{"kind":"quarantine","by":"a","reason":"x","review_by":"1900-01-01T00:00:00Z"}`, create},
		{"PUT", "/v1/overrides/acme", `{"kind":"quarantine",` + by + `}`, at("9")},
		{"DELETE", "/v1/overrides/acme", ``, at("9")},

		{"GET", "/v1/aliases/nobody", ``, nil},
		{"PUT", "/v1/aliases/a%20b", `{"target":"acme"}`, create},
		{"PUT", "/v1/aliases/acme", `{"target":"beta"}`, create},
		{"PUT", "/v1/aliases/x", `{"target":"x"}`, create},
		{"PUT", "/v1/aliases/x", `{"target":"a b"}`, create},
		{"PUT", "/v1/aliases/x", `{"target":"slug"}`, create},
		{"PUT", "/v1/aliases/slug", `{"target":"beta"}`, create},
		{"PUT", "/v1/aliases/slug", `{"target":"beta"}`, at("9")},
		{"DELETE", "/v1/aliases/nobody", ``, at("1")},
		{"DELETE", "/v1/aliases/slug", ``, at("9")},

		{"GET", "/v1/map/versions/0.0", ``, nil},
		{"GET", "/v1/map/versions/9.9", ``, nil},
		{"GET", "/v1/map/versions/x", ``, nil},
		{"GET", "/v1/map/versions?after=x", ``, nil},
		{"GET", "/v1/map/content?version=9.9", ``, nil},
		{"GET", "/v1/map/content?version=x", ``, nil},
		{"GET", "/v1/map/diff", ``, nil},
		{"GET", "/v1/map/diff?from=0.7", ``, nil},
		{"GET", "/v1/map/diff?from=x", ``, nil},
		{"GET", "/v1/map/parts/abc", ``, nil},
		{"GET", "/v1/map/parts/" + strings.Repeat("0", 64), ``, nil},
		{"GET", "/v1/map/manifest?after=x", ``, nil},
		{"POST", "/v1/map/rollback", `{"version":"x"}`, nil},
		{"POST", "/v1/map/rollback", `{"version":"0.0"}`, nil},
		{"POST", "/v1/map/rollback", `{"version":"0.7"}`, nil},
		{"POST", "/v1/map/rollback", `{"version":"9.9"}`, nil},
		{"POST", "/v1/map/rollback", `{"version":7}`, nil},
		{"GET", "/v1/explain?key=a/b/c", ``, nil},
		{"GET", "/v1/explain", ``, nil},
		{"GET", "/v1/locate?key=%20", ``, nil},

		{"GET", "/v1/routers/nobody", ``, nil},
		{"DELETE", "/v1/routers/nobody", ``, nil},
		{"POST", "/v1/routers/a%20b", `{"fleet":"shop"}`, nil},
		{"POST", "/v1/routers/r1", `{"fleet":"mall"}`, nil},
		{"POST", "/v1/routers/r1", `{"fleet":"shop","map_digest":"x"}`, nil},
		{"POST", "/v1/routers/r1", `{"fleet":"shop","map_version":"x"}`, nil},
		{"POST", "/v1/routers/r1", `{"fleet":"shop","map_version":"4294967295.1"}`, nil},
		{"GET", "/v1/changes/x", ``, nil},
		{"GET", "/v1/changes/99999", ``, nil},
		{"GET", "/v1/journal?after=x", ``, nil},
		{"GET", "/v1/cells?limit=0", ``, nil},
		{"POST", "/v1/tokens", `{"name":"x","role":"king"}`, nil},
		{"POST", "/v1/tokens", `{"name":"","role":"admin"}`, nil},
		{"POST", "/v1/tokens", `{"name":"x","role":"viewer"}`, nil},
		{"POST", "/v1/tokens", `{"name":"x","role":"admin","routers":"r1"}`, nil},
		{"POST", "/v1/tokens", `{"name":"x","role":"router","routers":"a b"}`, nil},
		{"POST", "/v1/tokens", `{"name":"x","role":"admin","expires_at":"2001-01-01T00:00:00Z"}`, nil},
		{"DELETE", "/v1/tokens/nobody", ``, nil},
		{"POST", "/v1/restore/confirm", `{"digest":"x","version":"1.1"}`, nil},
		{"POST", "/v1/restore/confirm", `{"digest":"` + strings.Repeat("0", 64) + `","version":"1.1"}`, nil},
		{"GET", "/v1/nothing", ``, nil},
		{"PATCH", "/v1/fleet", ``, nil},
	} {
		rec := askRaw(t, s, tt.method, tt.path, tt.body, tt.headers...)
		if rec.Code < 400 || rec.Code >= 500 {
			t.Errorf("%s %s %.60s: %d %s, want a refusal", tt.method, tt.path, tt.body, rec.Code, rec.Body)
		}
	}
}

func TestWhatIsSaidTwiceIsFound(t *testing.T) {
	for message, want := range map[string]string{
		"cell nope: cell nope: not found":             "cell nope",
		"tag x: invalid: invalid":                     "invalid",
		"fleet fleet is at revision 1":                "fleet",
		"cell a has what cell b has: still in use":    "",
		"byte ' ' at 1 is not one of a-z . _ ~ @ : -": "",
		"": "",
	} {
		if got := saidTwice(message); got != want {
			t.Errorf("%q says %q twice, found %q", message, want, got)
		}
	}
}
