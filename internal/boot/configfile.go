package boot

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"strings"
)

// ConfigFile returns a parser of "name value" lines for the flags in fs. What
// begins with # is a comment. A name alone is a switch that is on, or else an
// empty value. A name that is there twice is an error, unless its flag's value
// is [Repeated].
func ConfigFile(fs *flag.FlagSet) func(r io.Reader, set func(name, value string) error) error {
	return func(r io.Reader, set func(name, value string) error) error {
		first := map[string]int{} // line of each name
		lines := bufio.NewScanner(r)
		for n := 1; lines.Scan(); n++ {
			line := strings.TrimSpace(lines.Text())
			if line == "" || line[0] == '#' {
				continue
			}
			name, value := line, ""
			f := fs.Lookup(name)
			if i := strings.IndexAny(line, " \t"); i >= 0 {
				name, value = line[:i], strings.TrimSpace(line[i:])
				f = fs.Lookup(name)
			} else if f != nil && isSwitch(f) {
				value = "true"
			}
			if before, twice := first[name]; twice && !isRepeated(f) {
				return fmt.Errorf("line %d: %s is set in line %d already; keep one of them", n, name, before)
			}
			first[name] = n
			if err := set(name, value); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		}
		return lines.Err()
	}
}

// Repeated is a flag's value that takes one more each time it is set.
type Repeated interface {
	flag.Value

	// Repeated marks it; it does nothing.
	Repeated()
}

func isRepeated(f *flag.Flag) bool {
	if f == nil {
		return false
	}
	_, ok := f.Value.(Repeated)
	return ok
}

func isSwitch(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}
