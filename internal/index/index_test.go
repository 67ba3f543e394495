package index

import (
	"net/http/httptest"
	"strings"
	"testing"
)

const text = `a <program>

/metrics  figures
/hands    the workers
          /hands?tenant=a&b: and a hand, or /x`

func get(accept string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Accept", accept)
	rec := httptest.NewRecorder()
	Handler(text).ServeHTTP(rec, r)
	return rec
}

func TestToolsGetText(t *testing.T) {
	for _, accept := range []string{"", "*/*", "application/json"} {
		rec := get(accept)
		if got := rec.Body.String(); got != text+"\n" || !strings.HasPrefix(rec.Header().Get("Content-Type"), "text/plain") {
			t.Errorf("%q: %v %q", accept, rec.Header(), got)
		}
	}
}

func TestBrowsersGetLinks(t *testing.T) {
	rec := get("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
	page := rec.Body.String()
	if got := rec.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/html") || rec.Header().Get("Vary") != "Accept" {
		t.Errorf("%v", rec.Header())
	}
	for _, want := range []string{
		"<title>a &lt;program&gt;</title>",
		`<a href="/metrics">/metrics</a>  figures`,
		`<a href="/hands?tenant=a&amp;b">/hands?tenant=a&amp;b</a>: and a hand`,
		`or <a href="/x">/x</a></pre>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s:\n%s", want, page)
		}
	}
	if n := strings.Count(page, "<a "); n != 4 {
		t.Errorf("%d links:\n%s", n, page)
	}
}
