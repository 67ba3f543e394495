package routemap_test

import (
	"errors"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

func TestSettingsAreChecked(t *testing.T) {
	good := routemap.Settings{Fleet: "shop", Mapping: routemap.Buckets, Buckets: routemap.DefaultBuckets, Extractors: []cellway.Extractor{{Kind: cellway.FromHeader, Name: "X"}}}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*routemap.Settings){
		"no name":                   func(s *routemap.Settings) { s.Fleet = "" },
		"a name with a line break":  func(s *routemap.Settings) { s.Fleet = "shop\n" },
		"mapping":                   func(s *routemap.Settings) { s.Mapping = 2 },
		"no buckets":                func(s *routemap.Settings) { s.Buckets = 0 },
		"too many buckets":          func(s *routemap.Settings) { s.Buckets = routemap.MaxBuckets + 1 },
		"buckets of a full mapping": func(s *routemap.Settings) { s.Mapping = routemap.Full },
		"catch-all with buckets":    func(s *routemap.Settings) { s.CatchAll = "cell-001" },
		"catch-all in a strict fleet": func(s *routemap.Settings) {
			s.Mapping, s.Buckets, s.Strict, s.CatchAll = routemap.Full, 0, true, "cell-001"
		},
		"catch-all that is no cell id": func(s *routemap.Settings) { s.Mapping, s.Buckets, s.CatchAll = routemap.Full, 0, "Cell" },
		"too many extractors":          func(s *routemap.Settings) { s.Extractors = make([]cellway.Extractor, 65) },
		"an extractor":                 func(s *routemap.Settings) { s.Extractors = []cellway.Extractor{{Kind: cellway.FromHost}} },
	} {
		s := good
		spoil(&s)
		if err := s.Validate(); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNamesSurviveText(t *testing.T) {
	for _, m := range []routemap.Mapping{routemap.Buckets, routemap.Full} {
		text, err := m.MarshalText()
		var got routemap.Mapping
		if err != nil || got.UnmarshalText(text) != nil || got != m || string(text) != m.String() {
			t.Errorf("mapping %v is written as %s and read as %v", m, text, got)
		}
	}
	if s := routemap.Mapping(7).String(); s != "mapping(7)" {
		t.Errorf("an unknown mapping is %s", s)
	}
	if s := routemap.Rule(99).String(); s != "unknown" {
		t.Errorf("an unknown rule is %s", s)
	}
	d := build(t, content(1, 1)).Base().Digest()
	text, err := d.MarshalText()
	var got routemap.Digest
	if err != nil || got.UnmarshalText(text) != nil || got != d {
		t.Errorf("digest %v is written as %s and read as %v", d, text, got)
	}
	if err := got.UnmarshalText([]byte("short")); !errors.Is(err, cellway.ErrInvalid) || got != d {
		t.Errorf("a short digest: %v, and it became %v", err, got)
	}
}
