package routemap_test

import (
	"strings"
	"testing"

	"github.com/cellway/cellway/routemap"
)

func TestParseDigestTakesOnlyWhatStringWrites(t *testing.T) {
	for s, ok := range map[string]bool{
		strings.Repeat("0f", 32):       true,
		strings.Repeat("0f", 31):       false,
		strings.Repeat("0f", 33):       false,
		strings.Repeat("0f", 4096):     false,
		strings.Repeat("0f", 31) + "0": false,
		strings.Repeat("0g", 32):       false,
		"":                             false,
	} {
		d, err := routemap.ParseDigest(s)
		if (err == nil) != ok || ok && d.String() != s {
			t.Errorf("ParseDigest(%.20q of %d) = %v, %v, want it accepted: %t", s, len(s), d, err, ok)
		}
	}
}
