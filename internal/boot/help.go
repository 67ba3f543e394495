package boot

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

// A Topic is settings that are about one thing, in the order in which people
// meet them.
type Topic struct {
	Title    string
	Settings []string
}

// WriteSettings writes to w what each setting of fs is, topic by topic, and
// marks those that must be given. Settings of no topic come last, and without a
// title if there are no topics at all.
func WriteSettings(w io.Writer, fs *flag.FlagSet, topics []Topic, required ...string) {
	must := map[string]bool{}
	for _, name := range required {
		must[name] = true
	}
	told := map[string]bool{}
	for _, topic := range topics {
		fmt.Fprintf(w, "%s:\n", topic.Title)
		for _, name := range topic.Settings {
			if f := fs.Lookup(name); f != nil {
				writeSetting(w, f, must[name])
				told[name] = true
			}
		}
		fmt.Fprintln(w)
	}
	title := ""
	if len(topics) > 0 {
		title = "More settings"
	}
	fs.VisitAll(func(f *flag.Flag) {
		if told[f.Name] {
			return
		}
		if title != "" {
			fmt.Fprintf(w, "%s:\n", title)
			title = ""
		}
		writeSetting(w, f, must[f.Name])
	})
}

func writeSetting(w io.Writer, f *flag.Flag, must bool) {
	kind, usage := flag.UnquoteUsage(f)
	line := "  --" + f.Name
	if kind != "" {
		line += " " + kind
	}
	if must {
		line += " (must be given)"
	}
	switch f.DefValue {
	case "", "0", "0s", "false":
	default:
		usage += " (default " + f.DefValue + ")"
	}
	fmt.Fprintf(w, "%s\n      %s\n", line, strings.ReplaceAll(usage, "\n", "\n      "))
}
