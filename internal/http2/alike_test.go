package http2_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cellway/cellway/internal/http2"
	"github.com/cellway/cellway/internal/memnet"
)

// echo answers with all that it was asked, framed as the request says.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	head := r.Header.Clone()
	head.Del("Connection") // streams say close
	head.Del("Expect")     // which package http keeps to itself over HTTP/2
	var said strings.Builder
	fmt.Fprintf(&said, "%s %s host %q length %d body %d %v\n", r.Method, r.RequestURI, r.Host, r.ContentLength, len(body), err)
	for _, h := range []http.Header{head, r.Trailer} {
		for _, name := range slices.Sorted(maps.Keys(h)) {
			fmt.Fprintf(&said, "%s: %q\n", name, h[name])
		}
		said.WriteString("--\n")
	}
	h := w.Header()
	h["X-Many"] = []string{"one", "two", ""}
	h.Set("X-Answer", strings.Repeat("v", len(body)%200))
	h.Set("Set-Cookie", "a=b")
	rc := http.NewResponseController(w)
	switch r.Header.Get("X-How") {
	case "hints":
		h.Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(103)
		h.Del("Link")
		rc.Flush()
	case "empty":
		w.WriteHeader(204)
		return
	case "unchanged":
		h.Set("Etag", `"x"`)
		w.WriteHeader(304)
		return
	case "trailers":
		h.Set("Trailer", "X-Sum")
		rc.Flush() // else the length depends on how much is kept
		io.WriteString(w, said.String())
		rc.Flush()
		w.Write(body)
		h.Set("X-Sum", fmt.Sprint(len(body)))
		h.Set(http.TrailerPrefix+"X-Late", "late")
		return
	case "pieces":
		rc.Flush()
		io.WriteString(w, said.String())
		for piece := range slices.Chunk(body, 1000) {
			w.Write(piece)
			rc.Flush()
		}
		return
	case "sized":
		h.Set("Content-Length", fmt.Sprint(said.Len()+len(body)))
	case "breaks":
		h.Set("Content-Length", fmt.Sprint(said.Len()+len(body)+1))
		io.WriteString(w, said.String())
		rc.Flush()
		panic(http.ErrAbortHandler)
	default:
		rc.Flush()
	}
	io.WriteString(w, said.String())
	w.Write(body)
}

// asked is one request and what came of it, in words.
func asked(client *http.Client, method, url string, how http.Header, body io.Reader, trailer http.Header) string {
	req, err := http.NewRequest(method, url, body)
	if err != nil {
		return err.Error()
	}
	req.Header = how
	req.Trailer = trailer
	resp, err := client.Do(req)
	if err != nil {
		return "no answer"
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	var said strings.Builder
	fmt.Fprintf(&said, "%s %d length %d, broken off: %v\n", resp.Proto, resp.StatusCode, resp.ContentLength, err != nil)
	resp.Header.Del("Date")
	for _, h := range []http.Header{resp.Header, resp.Trailer} {
		for _, name := range slices.Sorted(maps.Keys(h)) {
			fmt.Fprintf(&said, "%s: %q\n", name, h[name])
		}
		said.WriteString("--\n")
	}
	said.Write(got)
	return said.String()
}

// A client hears over streams what it hears from package net/http.
func TestAnswersAreThoseOfNetHTTP(t *testing.T) {
	var mem memnet.Net
	newServer(t, mem.Listen("streams:80"), http2.Config{}, byNetHTTP(t, http.HandlerFunc(echo)))
	plain := &http.Server{Handler: http.HandlerFunc(echo), Protocols: new(http.Protocols), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	plain.Protocols.SetUnencryptedHTTP2(true)
	l := mem.Listen("plain:80")
	go plain.Serve(l)
	defer plain.Close()
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: p, DisableCompression: true}
	clients := map[string]*http.Client{}
	for _, at := range []string{"streams:80", "plain:80"} {
		c := tr.Clone()
		c.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return mem.DialContext(ctx, network, at)
		}
		defer c.CloseIdleConnections()
		clients[at] = &http.Client{Transport: c, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	hows := []string{"", "hints", "empty", "unchanged", "trailers", "pieces", "sized", "breaks"}
	rounds := 600
	if testing.Short() {
		rounds = 100
	}
	for round := range rounds {
		method := []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "QUERY"}[rnd.IntN(7)]
		path := []string{"/", "/a?b=c", "/%2F//x", "/a;b", "/" + strings.Repeat("long", rnd.IntN(400))}[rnd.IntN(5)]
		how := http.Header{"X-How": {hows[rnd.IntN(len(hows))]}, "User-Agent": {"test"}}
		if rnd.IntN(3) == 0 {
			how["Cookie"] = []string{"a=1; b=2"}
		}
		if rnd.IntN(3) == 0 {
			how["X-Many"] = []string{"a", "", "b c", strings.Repeat("z", rnd.IntN(3000))}
		}
		if rnd.IntN(6) == 0 && method != "GET" {
			how["Expect"] = []string{"100-continue"}
		}
		size := []int{0, 1, 100, 5000, 70_000, 300_000}[rnd.IntN(6)]
		data := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
		kind := rnd.IntN(3)
		if method == "GET" || method == "HEAD" {
			kind = 0
		}
		ask := func(c *http.Client) string {
			var body io.Reader
			var trailer http.Header
			switch kind {
			case 1:
				body = bytes.NewReader(data)
			case 2:
				body = io.MultiReader(bytes.NewReader(data))
				trailer = http.Header{"X-Trail": {"end"}}
			}
			return asked(c, method, "http://a.test"+path, how.Clone(), body, trailer)
		}
		got, want := ask(clients["streams:80"]), ask(clients["plain:80"])
		if got != want {
			t.Fatalf("round %d: %s %s %v of kind %d with %d bytes:\n%.2500s\n\nwant\n\n%.2500s", round, method, path, how, kind, size, got, want)
		}
	}
}
