package cellway

import (
	"fmt"
	"slices"
	"strings"
)

// An enum names the values of a small integer type, in text and in JSON.
type enum[T ~uint8] struct {
	what  string
	names []string
}

func (e enum[T]) name(v T) string {
	if int(v) < len(e.names) {
		return e.names[v]
	}
	return fmt.Sprintf("%s(%d)", e.what, v)
}

func (e enum[T]) marshal(v T) ([]byte, error) {
	if int(v) >= len(e.names) {
		return nil, fmt.Errorf("%s %d is unknown: %w", e.what, v, ErrInvalid)
	}
	return []byte(e.names[v]), nil
}

func (e enum[T]) parse(s string) (T, error) {
	i := slices.Index(e.names, s)
	if i < 0 {
		return 0, fmt.Errorf("%s %q is not one of %s: %w", e.what, s, strings.Join(e.names, ", "), ErrInvalid)
	}
	return T(i), nil
}

func (e enum[T]) unmarshal(b []byte, v *T) error {
	got, err := e.parse(string(b))
	if err == nil {
		*v = got
	}
	return err
}
