// Package shell writes command lines that a person can paste.
package shell

import "strings"

// Join joins words into a line that a POSIX shell reads as those words.
func Join(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = Quote(w)
	}
	return strings.Join(out, " ")
}

// Quote leaves plain words alone and puts others into single quotes.
func Quote(w string) string {
	plain := w != "" && strings.IndexFunc(w, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_./:@%+=,", r))
	}) < 0
	if plain {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
