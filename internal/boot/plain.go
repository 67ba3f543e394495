package boot

import (
	"errors"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/cellway/cellway"
)

// Plain is an error as people read it, line by line: without the names of its kind,
// where a sentence has said the same already, and without what the system called it.
// Kinds have such names beside those of [cellway.ErrInvalid] and its like; wordless are
// those that tell a reader nothing, whatever stands before.
func Plain(err error, wordless, kinds []error) string {
	text := err.Error()
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		// The file is named already, and so is what it lacks or has.
		if rest, ok := strings.CutSuffix(text, ": "+file.Error()); ok && strings.Contains(rest, file.Path) {
			if text = rest; !errors.Is(err, cellway.ErrNotFound) && !errors.Is(err, cellway.ErrExists) {
				text += ": " + file.Err.Error()
			}
		}
	}
	return plainLines(text, wordless, kinds)
}

// PlainText is what [Plain] makes of an error of which only the text has come.
func PlainText(text string) string { return plainLines(text, nil, nil) }

func plainLines(text string, wordless, kinds []error) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = plainLine(line, wordless, kinds)
	}
	return strings.Join(lines, "\n")
}

func plainLine(line string, wordless, kinds []error) string {
	wordless = append([]error{cellway.ErrInvalid}, wordless...)
	// Of these a sentence goes on without.
	inner := []error{cellway.ErrNoRoom, cellway.ErrInUse, cellway.ErrNeedsMove, cellway.ErrNotReady, cellway.ErrStoreDown}
	kinds = slices.Concat(inner, []error{cellway.ErrNotFound, cellway.ErrExists, cellway.ErrConflict, cellway.ErrGate, cellway.ErrForbidden}, kinds)
	for cut := true; cut; {
		cut = false
		for _, kind := range slices.Concat(wordless, kinds) {
			rest, ok := strings.CutSuffix(line, ": "+kind.Error())
			if ok && (slices.Contains(wordless, kind) || says(rest)) {
				line, cut = rest, true
			}
		}
	}
	for _, kind := range slices.Concat(wordless, inner) {
		for _, sign := range []string{": ", "; "} {
			before, after, ok := strings.Cut(line, ": "+kind.Error()+sign)
			for ; ok && (slices.Contains(wordless, kind) || says(before)); before, after, ok = strings.Cut(line, ": "+kind.Error()+sign) {
				line = before + sign + after
			}
		}
	}
	return missing.ReplaceAllString(line, "${1}there is no $2")
}

// missing is how an error says of a record, by its kind and name, that it is none.
var missing = regexp.MustCompile(`(^|; )([a-z]+ [^ ;]+): ` + regexp.QuoteMeta(cellway.ErrNotFound.Error()) + `$`)

// says reports whether a text ends in a sentence, where one that only names what
// it is about is none yet.
func says(text string) bool {
	last := text[max(strings.LastIndex(text, "; "), strings.LastIndex(text, ": "))+1:]
	return len(strings.Fields(last)) > 2
}
