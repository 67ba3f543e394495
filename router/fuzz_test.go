package router

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/cellway/cellway"
)

// Whatever a client sends, the extractors neither panic nor hand out what is
// no key, and the decision can be told again.
func FuzzDecide(f *testing.F) {
	c := fleet(3, extractors(
		cellway.Extractor{Kind: cellway.FromFixed, Pattern: "/login/*", Key: "front-desk"},
		cellway.Extractor{Kind: cellway.FromHeader, Name: "X-Tenant-Id"},
		cellway.Extractor{Kind: cellway.FromHost, Pattern: "{part}.{tenant}.example.com"},
		cellway.Extractor{Kind: cellway.FromPath, Pattern: "/t/{tenant}/{part}/*"},
		cellway.Extractor{Kind: cellway.FromQuery, Name: "tenant", MustAgree: true},
		cellway.Extractor{Kind: cellway.FromCookie, Name: "tenant"},
		cellway.Extractor{Kind: cellway.FromJWT, Name: "a.b", MustAgree: true},
	))
	d := decider(f, c)
	f.Add("eu.acme.example.com:80", "/t/acme/eu", "tenant=acme", "", "a=b; tenant=acme", "Bearer "+jwt(`{"a":{"b":1}}`))
	f.Add("", "/t/%2e%2e/x", "a;tenant=%zz", "acme", "", "Bearer a.b.c")
	f.Add("[::1]", "/login/../x", "+&=&", "a,b", ";;=", "bearer ..")
	f.Fuzz(func(t *testing.T, host, path, query, header, cookies, auth string) {
		fields := http.Header{}
		for name, v := range map[string]string{"X-Tenant-Id": header, "Cookie": cookies, "Authorization": auth} {
			if v != "" {
				fields.Set(name, v)
			}
		}
		h := &Head{Method: "GET", Host: host, Path: path, Query: query, Fields: fields}
		out := d.Decide(h)
		if (out.Found.Key == "") == (out.Found.Code == "") || out.Found.Key != "" && out.Found.Key.Validate() != nil {
			t.Fatalf("found key %q and code %q", out.Found.Key, out.Found.Code)
		}
		if (out.Cell == nil) == (out.Code == "") {
			t.Fatalf("cell %v and code %q", out.Cell, out.Code)
		}
		e := d.ExplainRequest(h)
		if e.Code != out.Code || e.Forwarded != (out.Code == "") {
			t.Fatalf("decided %q, explained %q", out.Code, e.Code)
		}
	})
}

// The scanner takes what encoding/json takes, and reads the same value where
// that has only one way to read it.
func FuzzClaim(f *testing.F) {
	for _, s := range []string{`{"a":{"b":"x"}}`, `{"a.b":12}`, `{"a":{"b":1,"b":2}}`, `{"a":[1,2,{"b":null}],"c":-0.5e+3,"d":"\ud83d\ude00\n"}`, `{"a":{"b":"\u0061"}}`, `[]`, "{\"\x00\":1}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		got := claim([]byte(payload), "a.b")
		nested := strings.Count(payload, "[") + strings.Count(payload, "{")
		if nested >= maxClaimDepth {
			return // encoding/json goes deeper
		}
		var top map[string]json.RawMessage
		if err := json.Unmarshal([]byte(payload), &top); err != nil || top == nil {
			if got.code != cellway.KeyInvalid {
				t.Fatalf("%q is no object, and was taken as %+v", payload, got)
			}
			return
		}
		if got.key == "" {
			return
		}
		// A key was found, so exactly one of the two ways leads to a value.
		raw, ok := top["a.b"]
		if !ok || string(raw) == "null" {
			var below map[string]json.RawMessage
			if err := json.Unmarshal(top["a"], &below); err != nil {
				t.Fatalf("%q: found %q where there is nothing", payload, got.key)
			}
			raw = below["b"]
		}
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		if text != string(got.key) {
			t.Fatalf("%q: found %q, want %q", payload, got.key, text)
		}
	})
}

// What the query has once for net/url and for a reader of semicolons is what
// is found.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{"a=b&t=acme", "t=acme&t=x", "t=a;t=b", "%74=%61", "t", "t=+", "a=%zz&t=x", "a;t=1&t=2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		got := fromQuery(query, "t")
		if got.key == "" {
			return
		}
		v, _ := url.ParseQuery(query) // it leaves malformed pairs out
		if len(v["t"]) != 1 || v["t"][0] != string(got.key) {
			t.Fatalf("%q: found %q, net/url reads %q", query, got.key, v["t"])
		}
		v, _ = url.ParseQuery(strings.ReplaceAll(query, ";", "&"))
		if len(v["t"]) != 1 {
			t.Fatalf("%q: found %q, a reader of semicolons reads %q", query, got.key, v["t"])
		}
	})
}

// What is found in a path is what a server reads there that decodes and cleans
// the path before it looks.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"/t/acme/x", "/t/ac%6de", "/t/a/../b", "/t/%2e./b", "/%74/x", "/t/a%2fb", "/t/..%5cx"} {
		f.Add(s)
	}
	p := pathPattern("/t/{tenant}/*")
	f.Fuzz(func(t *testing.T, path string) {
		got := p.path(path, "")
		if got.key == "" || strings.ContainsAny(path, "?#") {
			return
		}
		u, err := url.ParseRequestURI(path)
		if err != nil {
			return
		}
		clean := (&url.URL{Path: "/"}).JoinPath(strings.ReplaceAll(u.Path, `\`, "/")).Path
		if tenant, _, _ := strings.Cut(strings.TrimPrefix(clean, "/t/"), "/"); tenant != string(got.key) {
			t.Fatalf("%q: found %q, a server that cleans paths reads %q of %q", path, got.key, tenant, clean)
		}
	})
}

func FuzzHost(f *testing.F) {
	for _, s := range []string{"acme.example.com", "ACME.example.com.:80", "[::1]:80", "a:b", ".example.com"} {
		f.Add(s)
	}
	p := hostPattern("{tenant}.example.com")
	f.Fuzz(func(t *testing.T, host string) {
		got := p.host(host)
		if got.key == "" {
			return
		}
		u := url.URL{Host: host}
		want := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), ".example.com")
		if want != string(got.key) {
			t.Fatalf("%q: found %q, want %q", host, got.key, want)
		}
	})
}

// Whatever a client writes, it hides nothing of what is added behind.
func FuzzVia(f *testing.F) {
	for _, s := range []string{"", "1.1 x (a (b) c", `(\`, "a)(,", "1.1 shop (x), ", "(((())"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if got, want := passes([]string{line + ", 1.1 shop, 2 other (x), 1.1 shop"}, "shop"), 2+passes([]string{line}, "shop"); got != want {
			t.Fatalf("%q: %d passes, want %d", line, got, want)
		}
	})
}
