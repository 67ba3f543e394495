package boot

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
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
	fmt.Fprintln(w, line)
	for text := range strings.SplitSeq(usage, "\n") {
		fmt.Fprintln(w, Fold(text, "      ", "      "))
	}
}

// helpWidth is how many columns help takes at most: those that every terminal has.
const helpWidth = 80

// Fold parts a text between words into lines of at most 80 columns, of which the
// first begins with one indent and the others with another. A word that is longer
// stays whole.
func Fold(text, first, others string) string {
	var b strings.Builder
	b.WriteString(first)
	at, begun := utf8.RuneCountInString(first), false
	for word := range strings.FieldsSeq(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case !begun:
		case at+1+n <= helpWidth:
			b.WriteString(" ")
			at++
		default:
			b.WriteString("\n" + others)
			at = utf8.RuneCountInString(others)
		}
		b.WriteString(word)
		at, begun = at+n, true
	}
	return b.String()
}

// FoldProse folds each paragraph of a text: lines one after the other that are
// neither empty nor indented. Other lines stay as they are.
func FoldProse(text string) string {
	var out, paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			out = append(out, Fold(strings.Join(paragraph, " "), "", ""))
		}
		paragraph = nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" && !strings.HasPrefix(line, " ") && !strings.HasSuffix(line, ":") {
			paragraph = append(paragraph, line)
			continue
		}
		end()
		out = append(out, line)
	}
	end()
	return strings.Join(out, "\n")
}
