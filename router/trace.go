package router

import (
	"math/rand/v2"
	"strings"

	"github.com/cellway/cellway/internal/engine"
)

const (
	traceParent = "Traceparent"
	traceState  = "Tracestate"
)

// trace passes the trace context of W3C on to h, the header for the cell, or
// begins one if the client sent none that can be read. It appends to dst the
// parent that the cell gets. sampled is the share of the traces begun here that
// are flagged as sampled.
func trace(h engine.Header, dst []byte, sampled float64) (parent []byte) {
	if v := h.Values(traceParent); len(v) == 1 && traceID(v[0]) != "" {
		return append(dst, v[0]...)
	}
	h.Del(traceState) // it belongs to a parent
	// Flag 2 says that the id is random, flag 1 that it is sampled.
	flags := "-02"
	if sampled > 0 && rand.Float64() < sampled {
		flags = "-03"
	}
	dst = append(dst, "00-"...)
	dst = appendRandom(appendRandom(dst))
	dst = append(dst, '-')
	dst = appendRandom(dst)
	dst = append(dst, flags...)
	h.SetBytes(traceParent, dst)
	return dst
}

// appendRandom appends 16 random digits, which are not all zeros.
func appendRandom(dst []byte) []byte {
	const digits = "0123456789abcdef"
	for i, n := 0, rand.Uint64()|1; i < 16; i++ {
		dst = append(dst, digits[n&15])
		n >>= 4
	}
	return dst
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
