package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/regular"
)

// A keeper keeps the last good list of a source on disk, so that a gateway that
// starts with nobody to ask starts from there.
type keeper struct {
	path string // "" for none
	owed []byte // what is still to be written, as that has failed
}

// mostKept is the size in bytes of the longest file of a kept list, which may say more
// than what it was read from.
const mostKept = 2 * MaxList

// A keptList is a list as it is kept, with the source that it is from: the workers of
// another one may be another cell's. Builds before kept the list alone.
type keptList struct {
	From string          `json:"from"`
	List json.RawMessage `json:"list"`
}

// load returns the list, or nil if there is none. One that is kept from another
// source is an error.
func (k *keeper) load(from string) (*Workers, error) {
	if k.path == "" {
		return nil, nil
	}
	b, err := regular.Read(k.path, mostKept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the kept list of workers: %w", err)
	}
	l := keptList{List: b}
	var with keptList
	if err := json.Unmarshal(b, &with); err == nil && with.From != "" {
		l = with
		if l.From != from {
			return nil, fmt.Errorf("kept list of workers %s: it is from %s, not from %s; give each gateway a file of its own: %w", k.path, l.From, from, cellway.ErrInvalid)
		}
	}
	w, err := ParseWorkers(l.List)
	if err != nil {
		return nil, fmt.Errorf("kept list of workers %s: %w", k.path, err)
	}
	return w, nil
}

// save writes what v is in JSON in place of what is there, or leaves that whole. Only
// its owner may read it, for the salt. If it fails, [keeper.retry] tries again.
func (k *keeper) save(v any) error {
	if k.path == "" {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("keep the list of workers: %w", err)
	}
	k.owed = append(b, '\n')
	_, err = k.retry()
	return err
}

// retry writes what save could not: a list that stays in use for months would
// otherwise be lost with the first restart, since a disk was full for a minute. It
// reports whether there was something to write.
func (k *keeper) retry() (owed bool, err error) {
	if k.owed == nil {
		return false, nil
	}
	if err := regular.Replace(k.path, 0o600, k.owed); err != nil {
		return true, fmt.Errorf("keep the list of workers: %w", err)
	}
	k.owed = nil
	return true, nil
}

// sweep removes what a process left beside the file that was killed while it wrote.
func (k *keeper) sweep() []string {
	if k.path == "" {
		return nil
	}
	return regular.Sweep(k.path, ".workers-") // the prefix of builds before
}
