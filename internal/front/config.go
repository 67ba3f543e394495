package front

import (
	"strings"
	"time"
)

// Span returns d, zero if it is negative, or byDefault if it is zero.
func Span(d, byDefault time.Duration) time.Duration {
	if d == 0 {
		return byDefault
	}
	return max(d, 0)
}

// IsToken reports whether s can stand as a bare name in a structured field (RFC
// 9651, section 3.3.4, without what only few need): letters, then digits, hyphens,
// dots and underscores too.
func IsToken(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return s != "" && strings.IndexByte(letters, s[0]) >= 0 && strings.Trim(s, letters+"0123456789-._") == ""
}
