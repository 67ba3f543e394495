package engine

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// hopByHop are the fields that speak to the next hop only: RFC 9110, section
// 7.6.1, and what is treated so by custom.
var hopByHop = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Proxy-Authenticate": true,
	"Proxy-Authorization": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
	"Http2-Settings": true,
}

func isHopByHop(name string) bool { return hopByHop[name] }

// kept are fields that no client may have removed by naming them in its
// Connection field: they say who or where, or somebody before us set them.
var kept = []string{
	"host", "authorization", "cookie", "content-type", "content-length", "content-encoding", "expect",
	"origin", "referer", "user-agent", "accept", "via", "forwarded", "x-real-ip", "x-tenant-id",
	"traceparent", "tracestate", "baggage", "idempotency-key", "proxy",
}

// isKept reports whether a Connection field may not remove the field, in
// whatever spelling.
func isKept(name string) bool {
	return isCellField(name) || hasFoldPrefix(name, "x-forwarded-") || hasFoldPrefix(name, "sec-") ||
		slices.ContainsFunc(kept, func(k string) bool { return len(k) == len(name) && hasFoldPrefix(name, k) })
}

// mayTrail reports whether a field may follow a request's body. One that says
// who, where or how may not, in no spelling: it stands in the head, where
// routers have seen and perhaps replaced it, and a server that merges trailers
// into its header would believe the client instead.
func mayTrail(name string) bool {
	return !isHopByHop(name) && !framesMessage([]byte(name)) && !isKept(name)
}

// isCellField reports whether a field is one of ours, or looks so to a server
// that keeps fields in environment variables: see [foldByte].
func isCellField(name string) bool { return hasFoldPrefix(name, "x-cell-") }

// isLookalike reports whether a field's name is spelt so that it reads like one
// that routers set: X_Tenant_Id, X.Forwarded.For. Proxy is one without any odd
// byte: it becomes HTTP_PROXY, by which many programs choose where their own
// requests go.
func isLookalike(name string) bool {
	return name == "Proxy" || hasOddByte(name) &&
		(hasFoldPrefix(name, "x-cell-") || hasFoldPrefix(name, "x-forwarded-") || hasFoldPrefix(name, "x-real-ip") || hasFoldPrefix(name, "x-tenant-id"))
}

// LooksLike reports whether a field's name is not canonical, which is in
// canonical form, but reads so to a server that keeps fields in environment
// variables.
func LooksLike(name, canonical string) bool {
	if len(name) != len(canonical) || !hasOddByte(name) || name == canonical {
		return false
	}
	for i := range len(name) {
		if foldByte(name[i]) != foldByte(canonical[i]) {
			return false
		}
	}
	return true
}

// foldByte returns what a byte of a field's name becomes for servers that keep
// fields in environment variables, as CGI and WSGI have it: all but letters and
// digits are one, and so is a letter in both cases.
func foldByte(c byte) byte {
	switch {
	case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		return c
	case 'A' <= c && c <= 'Z':
		return c + 'a' - 'A'
	}
	return '-'
}

// hasOddByte reports whether a field's name has a byte beside letters, digits
// and hyphens.
func hasOddByte[T string | []byte](name T) bool {
	for i := range len(name) {
		if c := name[i]; c != '-' && foldByte(c) == '-' {
			return true
		}
	}
	return false
}

// hasFoldPrefix reports whether s starts with prefix, which is in lower case,
// as [foldByte] reads it.
func hasFoldPrefix(s, prefix string) bool {
	if len(s) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if foldByte(s[i]) != prefix[i] {
			return false
		}
	}
	return true
}

// namedByConnection returns the fields that the Connection field removes.
func namedByConnection(h http.Header) (names []string) {
	for _, v := range h["Connection"] {
		for e := range strings.SplitSeq(v, ",") {
			if e = strings.Trim(e, " \t"); e != "" && !isKept(e) {
				names = append(names, http.CanonicalHeaderKey(e))
			}
		}
	}
	return names
}

// outHeader returns the header that goes to the cell.
func (t *transfer) outHeader() http.Header {
	in := t.in.Header
	out := make(http.Header, len(in)+8)
	named := namedByConnection(in)
	for name, v := range in {
		if isHopByHop(name) || isCellField(name) || isLookalike(name) || name == "Host" || slices.Contains(named, name) {
			continue
		}
		out[name] = v
	}
	if t.kind == upgrade {
		out["Connection"] = []string{"Upgrade"}
		out["Upgrade"] = in["Upgrade"]
	} else if wantsTrailers(in) {
		out["Te"] = []string{"trailers"}
	}
	if !t.in.ProtoAtLeast(1, 1) {
		delete(out, "Expect") // HTTP/1.0 knows no 100
	}
	if t.o.Edit != nil {
		t.o.Edit.EditRequest(HTTPHeader(out))
	}
	onlyOwnWords(out)
	return out
}

// onlyOwnWords has only the client's own words go out: http.Transport adds a
// User-Agent else, and replays a request, whatever its method, that has an
// Idempotency-Key under its canonical name.
func onlyOwnWords(out http.Header) {
	if _, ok := out["User-Agent"]; !ok {
		out["User-Agent"] = nil
	}
	for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
		if v, ok := out[name]; ok {
			delete(out, name)
			out[strings.ToLower(name)] = v
		}
	}
}

// wantsTrailers reports whether a TE field accepts trailers.
func wantsTrailers(h http.Header) bool {
	for _, v := range h["Te"] {
		if hasListToken([]byte(v), "trailers") {
			return true
		}
	}
	return false
}

// Upgradable reports whether a request asks to switch to a protocol that is
// relayed, so that its answer may be a tunnel. HTTP/2 in cleartext and TLS are not: inside them a client would
// speak to the cell past the router.
func Upgradable(r *http.Request) bool {
	if r.ProtoMajor != 1 || r.ProtoMinor < 1 || len(r.Header["Upgrade"]) != 1 {
		return false
	}
	asked := false
	for _, v := range r.Header["Connection"] {
		asked = asked || hasListToken([]byte(v), "upgrade")
	}
	p := strings.ToLower(r.Header["Upgrade"][0])
	name, _, _ := strings.Cut(p, "/")
	return asked && isToken([]byte(name)) && name != "h2c" && name != "h2" && name != "http" && name != "tls" &&
		!strings.ContainsAny(p, ", \t")
}

// IsGRPC reports whether a request is gRPC, which needs HTTP/2 all the way.
func IsGRPC(r *http.Request) bool {
	rest, ok := strings.CutPrefix(r.Header.Get("Content-Type"), "application/grpc")
	return ok && r.ProtoMajor == 2 && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

// setTarget makes u ask for the target of r, byte for byte. host is what the
// request's Host will be.
func setTarget(u *url.URL, r *http.Request, host string) {
	target := r.RequestURI
	if target == "" {
		target = r.URL.RequestURI()
	}
	if rest, ok := cutScheme([]byte(target)); ok { // absolute-form becomes origin-form
		if i := strings.IndexAny(string(rest), "/?"); i < 0 {
			target = "/"
			if r.Method == http.MethodOptions {
				target = "*"
			}
		} else if target = string(rest[i:]); target[0] == '?' {
			target = "/" + target
		}
	}
	path, query, ok := strings.Cut(target, "?")
	u.RawQuery, u.ForceQuery = query, ok && query == ""
	if !strings.HasPrefix(path, "//") {
		u.Opaque = path
		return
	}
	// net/url takes an Opaque with two slashes for an authority.
	u.RawPath = path
	u.Path, _ = url.PathUnescape(path)
	if u.RequestURI() != target {
		// It would be escaped anew. The absolute form has no such trouble, and
		// every server must accept it.
		u.RawPath, u.Path, u.Opaque = "", "", "//"+host+path
	}
}

// answerHeader copies the cell's header to the client's, less what is not for
// it. (A Connection field that also says close never gets here: http.Transport
// takes it away, so what it names beside goes on. No harm is in that.)
func (t *transfer) answerHeader(dst, src http.Header) {
	named := namedByConnection(src)
	for name, v := range src {
		if isHopByHop(name) || slices.Contains(named, name) || !t.o.KeepCellHeaders && isCellField(name) {
			continue
		}
		dst[name] = v
	}
}
