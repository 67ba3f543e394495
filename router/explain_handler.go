package router

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
)

// described makes a Head of a request that somebody describes: method, if empty
// GET; rawURL, absolute or a path with its query; host, if empty the URL's; and
// its header.
func described(method, rawURL, host string, header http.Header) (*Head, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("url %.80q: %w", rawURL, cellway.ErrInvalid)
	}
	h := &Head{
		Method: cmp.Or(method, http.MethodGet), Host: cmp.Or(host, u.Host), Path: cmp.Or(u.EscapedPath(), "/"), Query: u.RawQuery, Fields: header,
		Upgrade: engine.Upgradable(&http.Request{ProtoMajor: 1, ProtoMinor: 1, Header: header}),
	}
	return h, nil
}

// ExplainHandler answers what the router would do, and why. It is for the
// admin listener, not for clients.
//
//	GET ?key=acme/eu
//	GET ?url=https://acme.example.com/orders&method=POST&header=X-Tenant-Id:acme
func (rt *Router) ExplainHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e, status, err := rt.explain(r)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		var out any = e
		if err != nil {
			w.Header().Set("Content-Type", "application/problem+json")
			if status == http.StatusMethodNotAllowed {
				w.Header().Set("Allow", "GET, HEAD")
			}
			w.WriteHeader(status)
			out = map[string]any{"title": http.StatusText(status), "status": status, "detail": err.Error()}
		}
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		_ = enc.Encode(out) // the asker may be gone
	})
}

func (rt *Router) explain(r *http.Request) (e Explanation, status int, err error) {
	d := rt.Decider()
	if d == nil {
		return e, http.StatusServiceUnavailable, fmt.Errorf("there is no map yet: %w", cellway.ErrNotReady)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return e, http.StatusMethodNotAllowed, fmt.Errorf("ask with GET: %w", cellway.ErrInvalid)
	}
	q := r.URL.Query()
	if key := q.Get("key"); key != "" {
		k, err := cellway.ParseKey(key)
		if err != nil {
			return e, http.StatusBadRequest, err
		}
		return d.Explain(k), http.StatusOK, nil
	}
	if q.Get("url") == "" && q.Get("host") == "" && len(q["header"]) == 0 {
		return e, http.StatusBadRequest, fmt.Errorf("give key=, or describe a request with url=, host=, method= and header=NAME:VALUE: %w", cellway.ErrInvalid)
	}
	header := http.Header{}
	for _, h := range q["header"] {
		name, value, ok := strings.Cut(h, ":")
		if !ok {
			return e, http.StatusBadRequest, fmt.Errorf("header %.80q is not NAME:VALUE: %w", h, cellway.ErrInvalid)
		}
		header.Add(name, strings.TrimSpace(value))
	}
	h, err := described(q.Get("method"), q.Get("url"), q.Get("host"), header)
	if err != nil {
		return e, http.StatusBadRequest, err
	}
	return d.ExplainRequest(h), http.StatusOK, nil
}
