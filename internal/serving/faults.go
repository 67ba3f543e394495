package serving

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cellway/cellway/internal/boot"
)

// Faults collects what is wrong with settings, or with what they name, so that all of
// it is said at once. The zero Faults are none.
type Faults struct{ all []error }

// Bad says what is wrong with a setting.
func (f *Faults) Bad(key, format string, args ...any) {
	f.all = append(f.all, fmt.Errorf("%s: %s", key, fmt.Sprintf(format, args...)))
}

// Note takes in an error, if there is one, of what a setting names. The key is empty
// if the error says which it is.
func (f *Faults) Note(key string, err error) {
	if err != nil && key != "" {
		err = fmt.Errorf("%s: %w", key, err)
	}
	if err != nil {
		f.all = append(f.all, err)
	}
}

// Invalid takes in what is wrong with settings by themselves, if anything is. That the
// command line is wrong is not said: it asks for what is wrong.
func (f *Faults) Invalid(err error) {
	if wrong, ok := errors.AsType[boot.UsageError](err); ok {
		err = wrong.Err
	}
	f.Note("", err)
}

// NotAPair finds a certificate without a key, or a key without a certificate, in the
// settings that end so.
func (f *Faults) NotAPair(prefix, cert, key string) {
	if (cert == "") != (key == "") {
		f.Bad(prefix+"-key", "%s-cert and %s-key go together; one is missing", prefix, prefix)
	}
}

// Below finds numbers that are below least.
func (f *Faults) Below(least int, all map[string]int) {
	for _, key := range inOrder(all) {
		if n := all[key]; n < least {
			f.Bad(key, "%d is below %d", n, least)
		}
	}
}

// Negative finds durations that are below 0.
func (f *Faults) Negative(all map[string]time.Duration) {
	for _, key := range inOrder(all) {
		if d := all[key]; d < 0 {
			f.Bad(key, "%v is below 0", d)
		}
	}
}

// NotPositive finds durations that are not above 0.
func (f *Faults) NotPositive(all map[string]time.Duration) {
	for _, key := range inOrder(all) {
		if d := all[key]; d <= 0 {
			f.Bad(key, "%v is not above 0", d)
		}
	}
}

// inOrder returns the names of settings such that the same faults are said in the same
// order each time.
func inOrder[V any](all map[string]V) []string { return slices.Sorted(maps.Keys(all)) }

// Err returns all that is wrong, or nil.
func (f *Faults) Err() error { return errors.Join(f.all...) }

// Usage returns all that is wrong with the settings themselves, or nil: a
// [boot.UsageError].
func (f *Faults) Usage() error {
	if err := f.Err(); err != nil {
		return boot.UsageError{Err: err}
	}
	return nil
}
