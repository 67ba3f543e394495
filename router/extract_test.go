package router

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/routemap"
)

// fleet is a map's content: n cells that share 64 buckets in turn, and a header
// extractor.
func fleet(n int, change ...func(*routemap.Content)) routemap.Content {
	c := routemap.Content{Settings: routemap.Settings{Fleet: "shop", Mapping: routemap.Buckets, Buckets: 64,
		Extractors: []cellway.Extractor{{Kind: cellway.FromHeader, Name: "X-Tenant-Id"}}}}
	for i := range n {
		c.Cells = append(c.Cells, cellway.Cell{
			ID: cellway.CellID(fmt.Sprintf("cell-%03d", i+1)), Endpoints: []string{fmt.Sprintf("http://cell-%03d:80", i+1)},
			State: cellway.CellActive, Admit: 100,
		})
	}
	for b := range c.Buckets {
		c.Owners = append(c.Owners, cellway.BucketOwner{Bucket: b, Cell: c.Cells[int(b)%n].ID})
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

// extractors replaces the fleet's.
func extractors(all ...cellway.Extractor) func(*routemap.Content) {
	return func(c *routemap.Content) { c.Extractors = all }
}

func build(t testing.TB, c routemap.Content) *routemap.Map {
	t.Helper()
	m, err := routemap.Build(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func decider(t testing.TB, c routemap.Content) *Decider {
	t.Helper()
	d, err := NewDecider(build(t, c))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// head makes a head out of a target with its host, as in
// "acme.example.com/a?b", and header fields in pairs.
func head(target string, fields ...string) *Head {
	h := &Head{Method: "GET"}
	h.Host, h.Path = target, "/"
	if i := strings.IndexByte(target, '/'); i >= 0 {
		h.Host, h.Path = target[:i], target[i:]
	}
	h.Path, h.Query, _ = strings.Cut(h.Path, "?")
	header := http.Header{}
	for i := 0; i < len(fields); i += 2 {
		header.Add(fields[i], fields[i+1])
	}
	h.Fields = header
	h.Upgrade = engine.Upgradable(&http.Request{ProtoMajor: 1, ProtoMinor: 1, Header: header})
	return h
}

// jwt makes an unsigned token with that payload.
func jwt(payload string) string {
	enc := base64.RawURLEncoding.EncodeToString
	return enc([]byte(`{"alg":"none"}`)) + "." + enc([]byte(payload)) + ".c2ln"
}

const (
	missing  = string(cellway.KeyMissing)
	twofold  = string(cellway.KeyConflict)
	unusable = string(cellway.KeyInvalid)
)

// An extraction case wants a key, or one of the three codes.
type extraction struct {
	head *Head
	want string
}

func (tt extraction) check(t *testing.T, d *Decider) {
	t.Helper()
	f := d.extract(tt.head)
	got := string(f.Key)
	if f.Code != "" {
		if got = string(f.Code); f.Key != "" || f.Why == "" {
			t.Errorf("%+v: refused with key %q and reason %q", tt.head, f.Key, f.Why)
		}
	}
	if got != tt.want {
		t.Errorf("%s %s?%s %v: got %s (%s), want %s", tt.head.Host, tt.head.Path, tt.head.Query, tt.head.Fields, got, f.Why, tt.want)
	}
}

func TestHeaderNamesTheKey(t *testing.T) {
	d := decider(t, fleet(2, extractors(cellway.Extractor{Kind: cellway.FromHeader, Name: "x-account"})))
	for _, tt := range []extraction{
		{head("h"), missing},
		{head("h", "X-Account", "acme"), "acme"},
		{head("h", "X-Account", "Acme"), "Acme"},
		{head("h", "X-Account", "acme/eu"), "acme/eu"},
		{head("h", "X-Account", ""), unusable},
		{head("h", "X-Account", "acme/"), unusable},
		{head("h", "X-Account", "/eu"), unusable},
		{head("h", "X-Account", "a/b/c"), unusable},
		{head("h", "X-Account", "a b"), unusable},
		{head("h", "X-Account", "naïve"), unusable},
		{head("h", "X-Account", strings.Repeat("a", 128)), strings.Repeat("a", 128)},
		{head("h", "X-Account", strings.Repeat("a", 129)), unusable},
		{head("h", "X-Account", "acme", "X-Account", "acme"), twofold},
		{head("h", "X-Account", "acme", "X-Account", "evil"), twofold},
		{head("h", "X-Account", "acme, evil"), twofold},
		// Nobody asks for X-Tenant-Id, yet two of them smell.
		{head("h", "X-Account", "acme", "X-Tenant-Id", "evil"), "acme"},
		{head("h", "X-Account", "acme", "X-Tenant-Id", "acme", "X-Tenant-Id", "evil"), twofold},
	} {
		tt.check(t, d)
	}
}

func TestHostLabelNamesTheKey(t *testing.T) {
	d := decider(t, fleet(2, extractors(
		cellway.Extractor{Kind: cellway.FromHost, Pattern: "{tenant}.App.example.com"},
		cellway.Extractor{Kind: cellway.FromHost, Pattern: "{part}.{tenant}.*.example.org"},
		cellway.Extractor{Kind: cellway.FromHost, Pattern: "{tenant}.{part}.example.net"},
	)))
	for _, tt := range []extraction{
		{head("acme.app.example.com"), "acme"},
		{head("ACME.app.EXAMPLE.com:8443"), "acme"},
		{head("acme.app.example.com."), "acme"},
		{head("acme.app.example.com.:80"), "acme"},
		{head("acme.app.example.com:"), "acme"},
		{head("acme.app.example.com.."), missing},
		{head("acme_1.app.example.com"), "acme_1"},
		{head("app.example.com"), missing},
		{head("a.acme.app.example.com"), missing},
		{head("acme.appexample.com"), missing},
		{head(".app.example.com"), unusable},
		{head("a@b.app.example.com"), unusable},
		{head("a~b.app.example.com"), unusable},
		{head("acme.app.example.com:8x"), unusable},
		{head("acme.app.example.com:80:80"), unusable},
		{head("EU.acme.any.example.org"), "acme/eu"},
		{head(".acme.any.example.org"), unusable},
		{head("eu..any.example.org"), unusable},
		{head("acme.eu.example.net"), "acme/eu"},
		{head("[::1]:80"), missing},
		{head("10.0.0.1:80"), missing},
		{head(""), missing},
	} {
		tt.check(t, d)
	}
}

func TestPathSegmentNamesTheKey(t *testing.T) {
	d := decider(t, fleet(2, extractors(
		cellway.Extractor{Kind: cellway.FromPath, Pattern: "/t/{tenant}/*"},
		cellway.Extractor{Kind: cellway.FromPath, Pattern: "/exact/{tenant}"},
		cellway.Extractor{Kind: cellway.FromPath, Pattern: "/p/{tenant}/{part}/*"},
		cellway.Extractor{Kind: cellway.FromPath, Pattern: "/q/{part}/*/{tenant}"},
	)))
	for _, tt := range []extraction{
		{head("h/t/acme"), "acme"},
		{head("h/t/acme/"), "acme"},
		{head("h/t/acme/orders/1?x=/t/evil/"), "acme"},
		{head("h/%74/ac%6de/x"), "acme"},
		{head("h/%2574/acme"), missing}, // decoded once
		{head("h/t/ac%256de"), unusable},
		{head("h/t/acme%2Feu/x"), unusable},
		{head("h/t/acme%2feu"), unusable},
		{head("h/t/acme;v=1/x"), unusable},
		{head("h/t/"), unusable},
		{head("h/t//acme"), unusable},
		{head("h//t/acme"), missing},
		{head("h/t"), missing},
		{head("h/T/acme"), missing},
		{head("h/t/ac%6"), unusable},
		{head("h/t/ac%zz"), unusable},
		{head("h/t/acme/%zz"), "acme"}, // not ours to judge
		// The cell may serve another path than the one that was matched.
		{head("h/t/acme/../evil/x"), unusable},
		{head("h/t/acme/%2e%2E/evil/x"), unusable},
		{head("h/t/acme/x/.."), unusable},
		{head("h/t/acme/./x"), unusable},
		{head("h/t/acme/..%2fevil"), unusable},
		{head(`h/t/acme/..\evil`), unusable},
		{head("h/t/acme/a%5c..%5cb"), unusable},
		{head("h/t/acme/..;x=1/evil"), unusable},
		{head("h/t/acme/..%3b/evil"), unusable},
		{head("h/t/acme/x;../y;.;z"), "acme"},
		{head("h/t/.."), unusable},
		{head("h/t/."), unusable},
		{head("h/t/..."), "..."},
		{head("h/t/acme/..a/.b/a../c.d"), "acme"},
		{head("h/exact/acme"), "acme"},
		{head("h/exact/acme/"), missing},
		{head("h/p/acme/eu/x"), "acme/eu"},
		{head("h/p/acme/%65u"), "acme/eu"},
		{head("h/p/acme/e%2fu"), unusable},
		{head("h/p/acme/%u"), unusable},
		{head("h/p/%a/eu"), unusable},
		{head("h/p/acme"), missing},
		{head("h/p/acme//x"), unusable},
		{head("h/q/eu/any/acme"), "acme/eu"},
		{&Head{Method: "OPTIONS", Path: "*", Fields: http.Header{}}, missing},
		{&Head{Method: "GET", Path: "", Fields: http.Header{}}, missing},
	} {
		tt.check(t, d)
	}
}

func TestQueryParameterNamesTheKey(t *testing.T) {
	d := decider(t, fleet(2, extractors(cellway.Extractor{Kind: cellway.FromQuery, Name: "ten ant"})))
	for _, tt := range []extraction{
		{head("h/?ten+ant=acme"), "acme"},
		{head("h/?a=b&%74en%20ant=ac%6de&c"), "acme"},
		{head("h/?ten+ant=acme%2Feu"), "acme/eu"},
		{head("h/?ten+ant=acme/eu"), "acme/eu"},
		{head("h/?"), missing},
		{head("h/?Ten+ant=acme"), missing},
		{head("h/?ten+ants=acme&ten=x"), missing},
		{head("h/?ten+ant"), unusable},
		{head("h/?ten+ant="), unusable},
		{head("h/?ten+ant=ac+me"), unusable},
		{head("h/?ten+ant=ac%6"), unusable},
		{head("h/?ten+ant=acme&q=100%"), "acme"}, // not ours to judge
		{head("h/?ten%zzant=acme&%=1&+%=1"), missing},
		{head("h/?ten+ant=acme&ten+ant=acme"), twofold},
		{head("h/?ten+ant=acme&x=1&ten%20ant=evil"), twofold},
		// Readers who split at semicolons must not find another one.
		{head("h/?ten+ant=acme&a=b;c=d"), "acme"},
		{head("h/?ten+ant=acme&a=b;ten+ant=evil"), unusable},
		{head("h/?a=b;ten+ant=evil"), unusable},
		{head("h/?ten+ant=acme;a=b"), unusable},
	} {
		tt.check(t, d)
	}
}

func TestCookieNamesTheKey(t *testing.T) {
	d := decider(t, fleet(2, extractors(cellway.Extractor{Kind: cellway.FromCookie, Name: "tenant"})))
	for _, tt := range []extraction{
		{head("h", "Cookie", "tenant=acme"), "acme"},
		{head("h", "Cookie", "a=b; tenant=acme/eu;c=d"), "acme/eu"},
		{head("h", "Cookie", `tenant="acme"`), "acme"},
		{head("h", "Cookie", "a=b", "Cookie", "tenant=acme"), "acme"},
		{head("h", "Cookie", "xtenant=acme; Tenant=acme"), missing},
		{head("h", "Cookie", "a=tenant=acme"), missing},
		{head("h"), missing},
		{head("h", "Cookie", "tenant"), unusable},
		{head("h", "Cookie", "tenant="), unusable},
		{head("h", "Cookie", `tenant="`), unusable},
		{head("h", "Cookie", "tenant=ac%6de"), unusable},
		{head("h", "Cookie", "tenant=acme; tenant=acme"), twofold},
		{head("h", "Cookie", "tenant=acme", "Cookie", "tenant=evil"), twofold},
		{head("h", "Cookie", "tenant=acme, tenant=evil"), unusable},
	} {
		tt.check(t, d)
	}
}

func TestTokenClaimNamesTheKey(t *testing.T) {
	bearer := func(payload string) *Head { return head("h", "Authorization", "Bearer "+jwt(payload)) }
	long := func(n int) *Head { return bearer(`{"tid":"acme","x":"` + strings.Repeat("x", n) + `"}`) }
	d := decider(t, fleet(2, extractors(cellway.Extractor{Kind: cellway.FromJWT, Name: "tid"})))
	for _, tt := range []extraction{
		{bearer(`{"tid":"acme"}`), "acme"},
		{bearer(` { "sub" : [1,{"tid":"x"}] , "tid" : "acme/eu" } `), "acme/eu"},
		{bearer(`{"tid":42}`), "42"},
		{bearer(`{"tid":12345678901234567890123}`), "12345678901234567890123"},
		{bearer(`{"tid":"ac\u006de"}`), "acme"},
		{bearer(`{"t\u0069d":"acme"}`), "acme"},
		{head("h", "Authorization", "bearer   "+jwt(`{"tid":"acme"}`)), "acme"},
		{long(3000), "acme"},
		{long(13000), unusable},
		{bearer(`{"tid":null}`), missing},
		{bearer(`{"Tid":"acme","tid.":"x","ti":"x","":"x"}`), missing},
		{bearer(`{}`), missing},
		{head("h"), missing},
		{head("h", "Authorization", "Basic YWNtZTp4"), missing},
		{head("h", "Authorization", "Bearer"), missing},
		{head("h", "Authorization", "Bearer opaque-token"), missing},
		{head("h", "Authorization", "Bearer one.dot"), missing},
		{head("h", "Authorization", "Bearer an.encrypted.one.has.five"), missing},
		{head("h", "Authorization", "Bearer a.b!.c"), unusable},
		{head("h", "Authorization", "Bearer a..c"), unusable},
		{bearer(`{"tid":1.5}`), unusable},
		{bearer(`{"tid":1e3}`), unusable},
		{bearer(`{"tid":true}`), unusable},
		{bearer(`{"tid":{"a":1}}`), unusable},
		{bearer(`{"tid":["acme"]}`), unusable},
		{bearer(`{"tid":""}`), unusable},
		{bearer(`{"tid":"a b"}`), unusable},
		{bearer(`{"tid":"\ud800"}`), unusable},
		{bearer(`{"tid":"acme"`), unusable},
		{bearer(`{"tid":"acme"}x`), unusable},
		{bearer(`{"tid":"acme",}`), unusable},
		{bearer(`{"tid":"acme" "a":1}`), unusable},
		{bearer(`{tid:"acme"}`), unusable},
		{bearer(`["tid","acme"]`), unusable},
		{bearer(`"acme"`), unusable},
		{bearer(``), unusable},
		{bearer(`{"tid":"acme","x":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`), unusable},
		{bearer(`{"tid":"acme","tid":"evil"}`), twofold},
		{bearer(`{"tid":"acme","t\u0069d":"acme"}`), twofold},
		{bearer(`{"tid":"acme","tid":null}`), twofold},
		{head("h", "Authorization", "Bearer "+jwt(`{"tid":"acme"}`), "Authorization", "Basic x"), twofold},
	} {
		tt.check(t, d)
	}
}

func TestTokenClaimMayBeNestedAndElsewhere(t *testing.T) {
	d := decider(t, fleet(2, extractors(
		cellway.Extractor{Kind: cellway.FromJWT, Name: "https://id.example/claims.org.id"},
		cellway.Extractor{Kind: cellway.FromJWT, Name: "org", Source: "cookie:sid"},
		cellway.Extractor{Kind: cellway.FromJWT, Name: "org", Source: "header:X-Id-Token"},
	)))
	bearer := func(payload string) *Head { return head("h", "Authorization", "Bearer "+jwt(payload)) }
	for _, tt := range []extraction{
		{bearer(`{"https://id.example/claims":{"org":{"id":"acme"}}}`), "acme"},
		{bearer(`{"https://id.example/claims.org":{"id":"acme"}}`), "acme"},
		{bearer(`{"https://id.example/claims.org.id":"acme"}`), "acme"},
		{bearer(`{"https://id.example/claims":{"org":"acme"}}`), missing},
		{bearer(`{"https://id.example/claims":[{"org":{"id":"acme"}}]}`), missing},
		{bearer(`{"https://id.example/claims":{"org":{"id":"acme"}},"https://id.example/claims.org.id":"evil"}`), twofold},
		{bearer(`{"https://id.example/claims":{"org":{"id":"acme"},"org":{}}}`), twofold},
		{bearer(`{"https://id.example/claims":{"org":{"id":"acme"}},"x":{"org":{"id":"x"},"org":1}}`), "acme"},
		{head("h", "Cookie", "sid="+jwt(`{"org":7}`)), "7"},
		{head("h", "Cookie", "sid="+jwt(`{"org":7}`)+"; sid=x"), twofold},
		{head("h", "X-Id-Token", jwt(`{"org":"acme"}`)), "acme"},
		{head("h", "X-Id-Token", "Bearer "+jwt(`{"org":"acme"}`)), "acme"},
		{head("h", "X-Id-Token", "opaque"), missing},
	} {
		tt.check(t, d)
	}
}

func TestFixedPathsHaveANamedKey(t *testing.T) {
	d := decider(t, fleet(2, extractors(
		cellway.Extractor{Kind: cellway.FromFixed, Pattern: "/login", Key: "front-desk"},
		cellway.Extractor{Kind: cellway.FromFixed, Pattern: "/hooks/*/in/*", Key: "hooks/in"},
		cellway.Extractor{Kind: cellway.FromHeader, Name: "X-Tenant-Id"},
	)))
	for _, tt := range []extraction{
		{head("h/login"), "front-desk"},
		{head("h/login?next=/"), "front-desk"},
		{head("h/log%69n", "X-Tenant-Id", "acme"), "front-desk"},
		{head("h/login/", "X-Tenant-Id", "acme"), "acme"},
		{head("h/hooks/stripe/in"), "hooks/in"},
		{head("h/hooks/stripe/in/a/b"), "hooks/in"},
		{head("h/hooks/stripe/in/../../../t"), unusable},
		{head("h/hooks/stripe/out", "X-Tenant-Id", "acme"), "acme"},
	} {
		tt.check(t, d)
	}
}

func TestFirstExtractorWinsAndOthersMayHaveToAgree(t *testing.T) {
	c := fleet(2, extractors(
		cellway.Extractor{Kind: cellway.FromPath, Pattern: "/t/{tenant}/{part}/*"},
		cellway.Extractor{Kind: cellway.FromHeader, Name: "X-Tenant-Id"},
		cellway.Extractor{Kind: cellway.FromCookie, Name: "tenant"},
		cellway.Extractor{Kind: cellway.FromJWT, Name: "tid", MustAgree: true},
	))
	c.Entries = []cellway.Entry{{Key: "acme", Cell: "cell-001"}}
	c.Aliases = []cellway.Alias{{Name: "old", Target: "acme"}, {Name: "old-eu", Target: "acme/eu"}}
	d := decider(t, c)
	with := func(tid string) []string { return []string{"Authorization", "Bearer " + jwt(`{"tid":"`+tid+`"}`)} }
	for _, tt := range []struct {
		extraction
		by, and int
	}{
		{extraction{head("h", "X-Tenant-Id", "acme", "Cookie", "tenant=evil"), "acme"}, 1, -1},
		{extraction{head("h", "Cookie", "tenant=acme"), "acme"}, 2, -1},
		{extraction{head("h", with("acme")...), "acme"}, 3, -1},
		{extraction{head("h", append(with("acme"), "X-Tenant-Id", "acme")...), "acme"}, 1, -1},
		{extraction{head("h", append(with("evil"), "X-Tenant-Id", "acme")...), twofold}, 1, 3},
		{extraction{head("h", append(with("Acme"), "X-Tenant-Id", "acme")...), twofold}, 1, 3},
		{extraction{head("h", append(with("a b"), "X-Tenant-Id", "acme")...), unusable}, 1, 3},
		// A tenant says nothing against one of its parts, but a part does against another.
		{extraction{head("h/t/acme/eu", with("acme")...), "acme/eu"}, 0, -1},
		{extraction{head("h/t/acme/eu", with("acme/us")...), twofold}, 0, 3},
		{extraction{head("h", append(with("acme/eu"), "X-Tenant-Id", "acme")...), twofold}, 1, 3},
		// Aliases are resolved before anything is compared.
		{extraction{head("h", append(with("old"), "X-Tenant-Id", "acme")...), "acme"}, 1, -1},
		{extraction{head("h", append(with("acme"), "X-Tenant-Id", "old")...), "old"}, 1, -1},
		{extraction{head("h", append(with("acme"), "X-Tenant-Id", "old-eu")...), "old-eu"}, 1, -1},
		{extraction{head("h", append(with("acme/us"), "X-Tenant-Id", "old-eu")...), twofold}, 1, 3},
		{extraction{head("h"), missing}, -1, -1},
		{extraction{head("h", "X-Tenant-Id", "a b", "Cookie", "tenant=acme"), unusable}, 1, -1},
	} {
		tt.check(t, d)
		if f := d.extract(tt.head); f.By != tt.by || f.And != tt.and {
			t.Errorf("%v: found by %d against %d, want %d, %d", tt.head.Fields, f.By, f.And, tt.by, tt.and)
		}
	}
}

// A kind that the vocabulary gains must be one that a router can extract by.
func TestEveryKindOfExtractorIsBuilt(t *testing.T) {
	examples := map[cellway.ExtractorKind]cellway.Extractor{
		cellway.FromHeader: {Name: "X-A"}, cellway.FromHost: {Pattern: "{tenant}.example"}, cellway.FromPath: {Pattern: "/{tenant}"},
		cellway.FromQuery: {Name: "a"}, cellway.FromCookie: {Name: "a"}, cellway.FromJWT: {Name: "a"}, cellway.FromFixed: {Pattern: "/a", Key: "a"},
	}
	for k := cellway.ExtractorKind(0); ; k++ {
		if _, err := k.MarshalText(); err != nil {
			if int(k) != len(examples) {
				t.Errorf("%d kinds are known, %d have an example", k, len(examples))
			}
			return
		}
		x, ok := examples[k]
		x.Kind = k
		if _, err := compile([]cellway.Extractor{x}); !ok || err != nil {
			t.Errorf("extractor %s: %v", k, err)
		}
	}
}
