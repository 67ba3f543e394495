package serving

import "testing"

func FuzzValues(f *testing.F) {
	f.Add("10.0.0.0/8,::1")
	f.Add("64KiB")
	f.Add("0.5")
	f.Add("a, b,c")
	f.Fuzz(func(t *testing.T, text string) {
		for _, v := range []interface {
			Set(string) error
			String() string
		}{new(Prefixes), new(Size), new(Share), new(Words)} {
			if v.Set(text) != nil {
				continue
			}
			once := v.String()
			if once == "" {
				continue
			}
			if w, ok := v.(*Words); ok {
				w.given = false
			}
			if p, ok := v.(*Prefixes); ok {
				*p = nil
			}
			if err := v.Set(once); err != nil || v.String() != once {
				t.Errorf("%T: %q is written as %q, and that as %q: %v", v, text, once, v.String(), err)
			}
		}
	})
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]Size{"0": 0, "65536": 64 << 10, "64KiB": 64 << 10, "16MiB": 16 << 20, "1GiB": 1 << 30, "3 MiB": 3 << 20} {
		var s Size
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("%q is %d, %v; want %d", text, s, err, want)
		}
		var again Size
		if err := again.Set(s.String()); err != nil || again != s {
			t.Errorf("%q is written as %q", text, s.String())
		}
	}
	for _, text := range []string{"", "-1", "1.5MiB", "1KB", "MiB", "99999999999GiB"} {
		var s Size
		if err := s.Set(text); err == nil {
			t.Errorf("%q is read as %d", text, s)
		}
	}
}
