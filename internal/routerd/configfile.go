package routerd

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"strings"
)

// configFile reads "name value" lines for fs. What begins with # is a comment.
// A name alone is a switch that is on, or else an empty value.
func configFile(fs *flag.FlagSet) func(r io.Reader, set func(name, value string) error) error {
	return func(r io.Reader, set func(name, value string) error) error {
		lines := bufio.NewScanner(r)
		for n := 1; lines.Scan(); n++ {
			line := strings.TrimSpace(lines.Text())
			if line == "" || line[0] == '#' {
				continue
			}
			name, value := line, ""
			if i := strings.IndexAny(line, " \t"); i >= 0 {
				name, value = line[:i], strings.TrimSpace(line[i:])
			} else if f := fs.Lookup(name); f != nil && isSwitch(f) {
				value = "true"
			}
			if err := set(name, value); err != nil {
				return fmt.Errorf("settings file, line %d: %w", n, err)
			}
		}
		return lines.Err()
	}
}

func isSwitch(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}
