package servingtest

import (
	"flag"
	"testing"

	"github.com/cellway/cellway/internal/boot"
)

// Topics fails the test unless each of the settings that declare declares is under one
// heading of the help.
func Topics(t *testing.T, topics []boot.Topic, declare func(*flag.FlagSet)) {
	t.Helper()
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	declare(fs)
	in := map[string]int{}
	for _, topic := range topics {
		for _, name := range topic.Settings {
			in[name]++
			if fs.Lookup(name) == nil {
				t.Errorf("topic %s has %s, which is no setting", topic.Title, name)
			}
		}
	}
	fs.VisitAll(func(f *flag.Flag) {
		if in[f.Name] != 1 {
			t.Errorf("%s is in %d topics", f.Name, in[f.Name])
		}
	})
}
