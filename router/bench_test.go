package router

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

func BenchmarkDecide(b *testing.B) {
	for name, tt := range map[string]struct {
		x cellway.Extractor
		h *Head
	}{
		"header": {cellway.Extractor{Kind: cellway.FromHeader, Name: "X-Tenant-Id"}, head("h/orders?x=1", "X-Tenant-Id", "acme")},
		"host":   {cellway.Extractor{Kind: cellway.FromHost, Pattern: "{tenant}.example.com"}, head("acme.example.com/orders?x=1")},
		"path":   {cellway.Extractor{Kind: cellway.FromPath, Pattern: "/t/{tenant}/*"}, head("h/t/acme/orders?x=1")},
		"jwt":    {cellway.Extractor{Kind: cellway.FromJWT, Name: "tid"}, head("h/orders", "Authorization", "Bearer "+jwt(`{"iss":"https://id.example","sub":"u-1","exp":1900000000,"tid":"acme"}`))},
	} {
		b.Run(name, func(b *testing.B) {
			d := decider(b, fleet(4, everything, extractors(tt.x)))
			b.ReportAllocs()
			for b.Loop() {
				if d.Decide(tt.h).Code != "" {
					b.Fatal("refused")
				}
			}
		})
	}
}

// A sink is a ResponseWriter that costs nothing.
type sink struct{ h http.Header }

func (s *sink) Header() http.Header         { return s.h }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Flush()                      {}

func BenchmarkServe(b *testing.B) {
	cell := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") }))
	defer cell.Close()
	rt, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer rt.Close()
	if err := rt.Swap(build(b, fleet(1, func(c *routemap.Content) { c.Cells[0].Endpoints = []string{cell.URL} }))); err != nil {
		b.Fatal(err)
	}
	for name, tenant := range map[string]string{"forwarded": "acme", "refused": ""} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := request("GET", "/orders?x=1", tenant)
				rt.ServeHTTP(&sink{http.Header{}}, r)
			}
		})
	}
}
