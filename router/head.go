package router

import (
	"net/http"
	"strings"

	"github.com/cellway/cellway/internal/engine"
)

// A Head is what a decision needs of a request, as it came over the wire. It
// belongs to no HTTP engine; [HeadOf] makes one from a request of net/http.
type Head struct {
	Method string
	Host   string // of the target or the Host field, a port included
	Path   string // escaped, byte for byte
	Query  string // what follows the question mark, escaped
	Fields Fields

	// Upgrade says that the request may become a tunnel: it asks to switch to
	// a protocol that routers relay.
	Upgrade bool
}

// Fields are the header fields of a request. An http.Header is Fields.
type Fields interface {
	// Values returns the values of the named field in their order. The name
	// is in canonical form, as in X-Tenant-Id. The caller keeps no reference
	// to the slice.
	Values(name string) []string
}

// HeadOf returns the head of r. It allocates nothing unless the target is in
// absolute form and needs escaping.
func HeadOf(r *http.Request) Head {
	h := Head{Method: r.Method, Host: r.Host, Fields: r.Header, Upgrade: engine.Upgradable(r)}
	if strings.HasPrefix(r.RequestURI, "/") {
		// As it was sent: a parsed URL keeps not every byte.
		h.Path, h.Query, _ = strings.Cut(r.RequestURI, "?")
	} else if r.URL != nil {
		h.Path, h.Query = r.URL.EscapedPath(), r.URL.RawQuery
		if h.Path == "" && h.Method != http.MethodOptions {
			h.Path = "/" // as the cell gets it
		}
	}
	return h
}

// isSafe reports whether the method asks for nothing to change (RFC 9110,
// section 9.2.1).
func (h *Head) isSafe() bool {
	switch h.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

func (h *Head) isGRPC() bool {
	v := h.Fields.Values("Content-Type")
	return len(v) > 0 && strings.HasPrefix(v[0], "application/grpc")
}
