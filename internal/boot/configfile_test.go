package boot

import (
	"flag"
	"io"
	"strings"
	"testing"
)

type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }
func (l *list) Repeated()          {}

func TestASettingsFileSetsWhatItSays(t *testing.T) {
	for _, tt := range []struct{ text, want, problem string }{
		{"# a comment\n\nstore  a b \n\tkey 1\nkey 2\n", "store=a b key=1,2 init=false", ""},
		{"init\nstore", "store= key= init=true", ""},
		{"init false", "store=default key= init=false", ""},
		{"store a\nkey 1\nstore b", "", "line 3: store is set in line 1 already"},
		{"store a\nstore a", "", "line 2: store is set"},
		{"colour blue", "", "line 1: no such flag"},
	} {
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		store, on := fs.String("store", "default", ""), fs.Bool("init", false, "")
		var keys list
		fs.Var(&keys, "key", "")
		err := ConfigFile(fs)(strings.NewReader(tt.text), fs.Set)
		if tt.problem != "" {
			if err == nil || !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("%q: %v, want %s", tt.text, err, tt.problem)
			}
			continue
		}
		got := "store=" + *store + " key=" + keys.String() + " init=" + map[bool]string{true: "true", false: "false"}[*on]
		if err != nil || got != tt.want {
			t.Errorf("%q: %s, %v; want %s", tt.text, got, err, tt.want)
		}
	}
}

func FuzzConfigFile(f *testing.F) {
	f.Add("fleet shop\n# a comment\nlisten\nno-h2c\n\tsource  a b\n")
	f.Fuzz(func(t *testing.T, text string) {
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		fs.Bool("on", false, "")
		_ = ConfigFile(fs)(strings.NewReader(text), func(name, value string) error {
			if name == "" || strings.ContainsAny(name, " \t\n") || name[0] == '#' || strings.TrimSpace(value) != value {
				t.Errorf("setting %q is %q", name, value)
			}
			return nil
		})
	})
}
