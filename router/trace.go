package router

import (
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"strings"
)

const (
	traceParent = "Traceparent"
	traceState  = "Tracestate"
)

// trace passes the trace context of W3C on to h, the header for the cell, or
// begins one if the client sent none that can be read. It returns the parent
// that the cell gets. sampled is the share of the traces begun here that are
// flagged as sampled.
func trace(h http.Header, sampled float64) (parent string) {
	if v := h[traceParent]; len(v) == 1 && traceID(v[0]) != "" {
		return v[0]
	}
	delete(h, traceState) // it belongs to a parent
	var b [24]byte
	for i := 0; i < len(b); i += 8 {
		n := rand.Uint64() | 1 // no part may be all zeros
		for j := range 8 {
			b[i+j] = byte(n >> (8 * j))
		}
	}
	// Flag 2 says that the id is random, flag 1 that it is sampled.
	flags := "-02"
	if sampled > 0 && rand.Float64() < sampled {
		flags = "-03"
	}
	var text [55]byte
	copy(text[:], "00-")
	hex.Encode(text[3:], b[:16])
	text[35] = '-'
	hex.Encode(text[36:], b[16:])
	copy(text[52:], flags)
	parent = string(text[:])
	h[traceParent] = []string{parent}
	return parent
}

// traceID returns the trace id of a traceparent, or "" if it is malformed.
func traceID(v string) string {
	const zeros = "00000000000000000000000000000000"
	switch {
	case len(v) < 55 || v[2] != '-' || v[35] != '-' || v[52] != '-' || v[:2] == "ff":
	case len(v) > 55 && (v[:2] == "00" || v[55] != '-'): // only later versions go on
	case !isLowerHex(v[:2]) || !isLowerHex(v[3:35]) || !isLowerHex(v[36:52]) || !isLowerHex(v[53:55]):
	case v[3:35] == zeros || v[36:52] == zeros[:16]:
	default:
		return v[3:35]
	}
	return ""
}

func isLowerHex(s string) bool {
	return strings.Trim(s, "0123456789abcdef") == ""
}
