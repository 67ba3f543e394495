package router

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
)

// A Described is a request that somebody describes to learn what becomes of it.
type Described struct {
	Method  string              `json:"method,omitempty"` // if empty, GET
	URL     string              `json:"url,omitempty"`    // absolute, or a path with its query
	Host    string              `json:"host,omitempty"`   // if empty, the URL's
	Headers map[string][]string `json:"headers,omitempty"`
}

// head makes a Head of d.
func (d Described) head() (*Head, error) {
	u, err := url.Parse(d.URL)
	if err != nil {
		return nil, fmt.Errorf("url %.80q: %w", d.URL, cellway.ErrInvalid)
	}
	fields := http.Header{}
	for name, values := range d.Headers {
		for _, v := range values {
			fields.Add(name, v)
		}
	}
	h := &Head{Method: d.Method, Host: d.Host, Path: u.EscapedPath(), Query: u.RawQuery, Fields: fields}
	h.Upgrade = engine.Upgradable(&http.Request{ProtoMajor: 1, ProtoMinor: 1, Header: fields})
	if h.Method == "" {
		h.Method = http.MethodGet
	}
	if h.Host == "" {
		h.Host = u.Host
	}
	if h.Path == "" {
		h.Path = "/"
	}
	return h, nil
}

// maxDescribed is the size in bytes of the longest description.
const maxDescribed = 128 << 10

// ExplainHandler answers what the router would do, and why. It is for the
// admin listener, not for clients.
//
//	GET  ?key=acme/eu
//	GET  ?url=https://acme.example.com/orders&method=POST&header=X-Tenant-Id:acme
//	POST {"method": "POST", "url": "/orders", "host": "acme.example.com", "headers": {"X-Tenant-Id": ["acme"]}}
func (rt *Router) ExplainHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e, status, err := rt.explain(w, r)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		var out any = e
		if err != nil {
			w.Header().Set("Content-Type", "application/problem+json")
			if status == http.StatusMethodNotAllowed {
				w.Header().Set("Allow", "GET, HEAD, POST")
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

func (rt *Router) explain(w http.ResponseWriter, r *http.Request) (e Explanation, status int, err error) {
	d := rt.Decider()
	if d == nil {
		return e, http.StatusServiceUnavailable, fmt.Errorf("there is no map yet: %w", cellway.ErrNotReady)
	}
	var what Described
	switch r.Method {
	case http.MethodGet, http.MethodHead:
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
		what = Described{Method: q.Get("method"), URL: q.Get("url"), Host: q.Get("host"), Headers: map[string][]string{}}
		for _, h := range q["header"] {
			name, value, ok := strings.Cut(h, ":")
			if !ok {
				return e, http.StatusBadRequest, fmt.Errorf("header %.80q is not NAME:VALUE: %w", h, cellway.ErrInvalid)
			}
			what.Headers[name] = append(what.Headers[name], strings.TrimSpace(value))
		}
	case http.MethodPost:
		if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
			return e, http.StatusUnsupportedMediaType, fmt.Errorf("send application/json: %w", cellway.ErrInvalid)
		}
		dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxDescribed))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&what); err != nil {
			return e, http.StatusBadRequest, fmt.Errorf("the description: %v: %w", err, cellway.ErrInvalid)
		}
	default:
		return e, http.StatusMethodNotAllowed, fmt.Errorf("ask with GET or POST: %w", cellway.ErrInvalid)
	}
	h, err := what.head()
	if err != nil {
		return e, http.StatusBadRequest, err
	}
	return d.ExplainRequest(h), http.StatusOK, nil
}
