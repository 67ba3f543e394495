package boot

import (
	"errors"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/cellway/cellway"
)

// Plain is an error as people read it, line by line: without the names of its kind at
// the end, where a sentence has said the same already, and without what the system
// called it. Beside those of [cellway.ErrInvalid] and its like, kinds have such names;
// wordless are those that tell a reader nothing, whatever stands before.
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
	wordless = append([]error{cellway.ErrInvalid}, wordless...)
	kinds = append([]error{
		cellway.ErrNotFound, cellway.ErrExists, cellway.ErrConflict, cellway.ErrNeedsMove, cellway.ErrGate, cellway.ErrNoRoom,
		cellway.ErrInUse, cellway.ErrNotReady, cellway.ErrForbidden, cellway.ErrStoreDown,
	}, kinds...)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		for cut := true; cut; {
			cut = false
			for _, kind := range slices.Concat(wordless, kinds) {
				rest, ok := strings.CutSuffix(line, ": "+kind.Error())
				if ok && (slices.Contains(wordless, kind) || says(rest)) {
					line, cut = rest, true
				}
			}
		}
		if errors.Is(err, cellway.ErrInvalid) {
			line = strings.ReplaceAll(line, ": "+cellway.ErrInvalid.Error()+": ", ": ")
		}
		lines[i] = missing.ReplaceAllString(line, "${1}there is no $2")
	}
	return strings.Join(lines, "\n")
}

// missing is how an error says of a record, by its kind and name, that it is none.
var missing = regexp.MustCompile(`(^|; )([a-z]+ [^ ;]+): ` + regexp.QuoteMeta(cellway.ErrNotFound.Error()) + `$`)

// says reports whether a text ends in a sentence, where one that only names what
// it is about is none yet.
func says(text string) bool {
	last := text[max(strings.LastIndex(text, "; "), strings.LastIndex(text, ": "))+1:]
	return len(strings.Fields(last)) > 2
}
