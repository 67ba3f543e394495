package boot

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/cellway/cellway"
)

// The last line of a program says what is wrong and how to mend it, not what kind of
// error that is to a program.
func TestTheLastLineLacksTheNamesOfKinds(t *testing.T) {
	own := errors.New("of a kind of its own")
	for want, err := range map[string]error{
		"cell: id X! is wrong; give another":                    fmt.Errorf("cell: id X! is wrong; give another: %w", cellway.ErrInvalid),
		"one is wrong\ntwo does not exist, make it\nthree":      errors.Join(fmt.Errorf("one is wrong: %w", cellway.ErrInvalid), fmt.Errorf("two does not exist, make it: %w", cellway.ErrNotFound), errors.New("three")),
		"the backup is not usable; take another: it is a boat":  fmt.Errorf("the backup is not usable; take another: %w: it is a boat", cellway.ErrInvalid),
		"there is no cell c":                                    fmt.Errorf("cell c: %w", cellway.ErrNotFound),
		"open store x: it is locked by process 7":               fmt.Errorf("open store x: it is locked by process 7: %w", cellway.ErrStoreDown),
		"store x: store not usable":                             fmt.Errorf("store x: %w", cellway.ErrStoreDown),
		"key: open /k: permission denied":                       fmt.Errorf("key: %w", &fs.PathError{Op: "open", Path: "/k", Err: fs.ErrPermission}),
		"what is valid":                                         errors.New("what is valid"),
		`worker "w1": the list has this id twice; give another`: fmt.Errorf("worker %q: %w: the list has this id twice; give another", "w1", cellway.ErrInvalid),
		"list: worker w1: weight -1, want 0 or more":            fmt.Errorf("list: %w: worker w1: %w: weight -1, want 0 or more", cellway.ErrInvalid, errors.New("invalid")),
		"t: no cell fits: c is full; it would have to move":     fmt.Errorf("t: no cell fits: c is full: %w; it would have to move: %w", cellway.ErrNoRoom, cellway.ErrNeedsMove),
		"open store /x: permission denied":                      fmt.Errorf("open store /x: %w: permission denied", cellway.ErrStoreDown),
		"store /x: store not usable: permission denied":         fmt.Errorf("store /x: %w: permission denied", cellway.ErrStoreDown),
		"context c: not found; there are none":                  fmt.Errorf("context c: %w; there are none", cellway.ErrNotFound),
	} {
		var out bytes.Buffer
		if code := Exit("cellway-x", err, &out); code != 1 || out.String() != "cellway-x: "+want+"\n" {
			t.Errorf("%v ends with %d and %q, want %q", err, code, out.String(), want)
		}
	}
	if got, want := PlainText("cell c still has 3 tenants: still in use\nworker w: invalid: listed twice"), "cell c still has 3 tenants\nworker w: listed twice"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Plain(fmt.Errorf("it has said so already: %w", own), nil, []error{own}); got != "it has said so already" {
		t.Error(got)
	}
}
