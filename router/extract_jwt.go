package router

import (
	"encoding/base64"
	"strings"
	"unsafe"

	"github.com/cellway/cellway"
)

// maxToken is the size in bytes of the longest token that is read.
const maxToken = 16 << 10

// fromToken reads the claim x.name of the token that x names. The signature is
// not verified: the router routes by the claim, and the cell, which has the
// keys, verifies.
//
// What does not look like three parts joined by dots is some other token, an
// opaque or an encrypted one, and does not match.
func (x *extractor) fromToken(h *Head) finding {
	token, problem := x.token(h)
	if token == "" {
		return problem
	}
	_, rest, ok := strings.Cut(token, ".")
	if !ok {
		return finding{}
	}
	payload, signature, ok := strings.Cut(rest, ".")
	if !ok || strings.IndexByte(signature, '.') >= 0 {
		return finding{}
	}
	if len(token) > maxToken {
		return invalid("the token is too long")
	}
	var space [2048]byte
	buf := space[:]
	if n := base64.RawURLEncoding.DecodedLen(len(payload)); n > len(buf) {
		buf = make([]byte, n)
	}
	// Decode keeps no reference to its input and does not change it.
	n, err := base64.RawURLEncoding.Decode(buf, unsafe.Slice(unsafe.StringData(payload), len(payload)))
	if err != nil {
		return invalid("the token's payload is not base64url")
	}
	return claim(buf[:n], x.name)
}

// token returns the token's text. Without one it returns what that means: a
// refusal, or no match.
func (x *extractor) token(h *Head) (string, finding) {
	if x.where == cellway.FromCookie {
		value, n := cookie(h.Fields.Values("Cookie"), x.source)
		if n > 1 {
			return "", conflict("the token's cookie is there twice")
		}
		return value, finding{}
	}
	name := x.source
	if name == "" {
		name = "Authorization"
	}
	v := h.Fields.Values(name)
	switch {
	case len(v) == 0:
		return "", finding{}
	case len(v) > 1:
		return "", conflict("the token's header is there twice")
	}
	const scheme = "bearer "
	value := v[0]
	if len(value) > len(scheme) && equalFold(value[:len(scheme)], scheme) {
		return strings.Trim(value[len(scheme):], " "), finding{}
	}
	if x.source == "" {
		return "", finding{} // other credentials
	}
	return value, finding{}
}
