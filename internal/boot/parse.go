package boot

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/cellway/cellway/internal/regular"
	"github.com/peterbourgon/ff/v3"
)

// A UsageError is a wrong command line, or wrong settings: to start the same
// again would end the same.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e UsageError) Unwrap() error { return e.Err }

// maxConfig bounds a settings file in bytes.
const maxConfig = 1 << 20

// Parse reads settings for the flags in fs: from args, else from the environment
// under names that begin with env, else from the file that the flag config names.
// The error is [flag.ErrHelp] if help is asked for, and else a [UsageError].
func Parse(fs *flag.FlagSet, env string, args []string) error {
	err := ff.Parse(fs, args, ff.WithEnvVarPrefix(env))
	switch {
	case errors.Is(err, flag.ErrHelp):
		return flag.ErrHelp
	case err != nil:
		return UsageError{plainly(err, fs)}
	case fs.NArg() > 0:
		return UsageError{fmt.Errorf("%q is not a setting%s", fs.Arg(0), Meant(fs.Arg(0), names(fs), "--"))}
	}
	config := fs.Lookup("config")
	if config == nil || config.Value.String() == "" {
		return nil
	}
	if err := parseFile(fs, config.Value.String()); err != nil {
		return UsageError{err}
	}
	return nil
}

func parseFile(fs *flag.FlagSet, path string) error {
	// A pipe that nobody writes to would be waited for, deaf to every signal.
	text, err := regular.Read(path, maxConfig)
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	first := map[string]bool{} // given on the command line or in the environment, which stand before the file
	fs.Visit(func(f *flag.Flag) { first[f.Name] = true })
	err = ConfigFile(fs)(bytes.NewReader(text), func(name, value string) error {
		switch {
		case fs.Lookup(name) == nil:
			return fmt.Errorf("there is no setting %s%s", name, Meant(name, names(fs), ""))
		case first[name]:
			return nil
		}
		if err := fs.Set(name, value); err != nil {
			return fmt.Errorf("%s: invalid value %q: %w", name, value, err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func names(fs *flag.FlagSet) (all []string) {
	fs.VisitAll(func(f *flag.Flag) { all = append(all, f.Name) })
	return all
}

// What package flag says, which has no other form than text.
var (
	unknownFlag = regexp.MustCompile(`^flag provided but not defined: -+(.+)$`)
	needsValue  = regexp.MustCompile(`^flag needs an argument: -+(.+)$`)
	wrongValue  = regexp.MustCompile(`(?s)^invalid (boolean )?value (".*") for (?:flag )?-+([^ :]+): (.*)$`)
	wrongEnv    = regexp.MustCompile(`(?s)^error setting flag "([^"]+)" from environment variable "([^"]+)": (.*)$`)
)

// plainly says in words of ours what package flag says of a command line.
func plainly(err error, fs *flag.FlagSet) error {
	text := err.Error()
	for _, of := range []string{"error parsing commandline arguments: ", "error parsing environment variables: "} {
		text = strings.TrimPrefix(text, of)
	}
	if m := unknownFlag.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("there is no setting --%s%s", m[1], Meant(m[1], names(fs), "--"))
	}
	if m := needsValue.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("--%s needs a value", m[1])
	}
	if m := wrongValue.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("--%s: invalid value %s: %s", m[3], m[2], m[4])
	}
	if m := wrongEnv.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("environment: %s: %s", m[2], m[3])
	}
	return errors.New(text)
}

// Meant says which of those names somebody meant who wrote another one, with
// what stands before it: "; did you mean --fleet?". It is empty if none is near.
func Meant(written string, names []string, before string) string {
	written = strings.TrimLeft(written, "-")
	best, least := "", min((len(written)+1)/3, 2)+1
	for _, name := range slices.Sorted(slices.Values(names)) {
		d := distance(written, name)
		if d >= least && len(written) > 3 && strings.HasPrefix(name, written) {
			d = least - 1 // the beginning of it
		}
		if d < least {
			best, least = name, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + before + best + "?"
}

// distance counts the letters to put in, take out, replace or swap with the next
// between a and b.
func distance(a, b string) int {
	before, last, now := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		now[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			now[j] = min(last[j]+1, now[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				now[j] = min(now[j], before[j-2]+1)
			}
		}
		before, last, now = last, now, before
	}
	return last[len(b)]
}
