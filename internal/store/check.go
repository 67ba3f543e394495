package store

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/cellway/cellway"
)

// MaxName is the length in bytes that no kind, id, index term or name of a log
// may exceed.
const MaxName = 512

// CheckNames reports the first of the names that is not a name, as an
// [cellway.ErrInvalid].
func CheckNames(names ...string) error {
	for _, s := range names {
		if s == "" || len(s) > MaxName || !utf8.ValidString(s) {
			return fmt.Errorf("store: name %.60q must be 1 to %d bytes of UTF-8: %w", s, MaxName, cellway.ErrInvalid)
		}
		for i := range len(s) {
			if s[i] < ' ' || s[i] == 0x7f {
				return fmt.Errorf("store: name %.60q holds a control character: %w", s, cellway.ErrInvalid)
			}
		}
	}
	return nil
}

// CheckBody reports bytes that are not JSON, as an [cellway.ErrInvalid].
func CheckBody(body []byte) error {
	if !json.Valid(body) || !utf8.Valid(body) {
		return fmt.Errorf("store: body %.60q is not JSON: %w", body, cellway.ErrInvalid)
	}
	return nil
}

// CheckLimit reports a limit below 1, as an [cellway.ErrInvalid].
func CheckLimit(limit int) error {
	if limit < 1 {
		return fmt.Errorf("store: limit %d: ask for at least 1: %w", limit, cellway.ErrInvalid)
	}
	return nil
}

// CheckBlob reports bytes that digest does not name, as an
// [cellway.ErrInvalid].
func CheckBlob(digest [32]byte, blob []byte) error {
	if got := sha256.Sum256(blob); got != digest {
		return fmt.Errorf("store: blob of %d bytes has digest %x, not %x: %w", len(blob), got, digest, cellway.ErrInvalid)
	}
	return nil
}

// Check reports the first rule that r breaks, as an [cellway.ErrInvalid].
func (r Record) Check() error {
	if err := CheckNames(r.Kind, r.ID); err != nil {
		return err
	}
	if err := CheckNames(r.Index...); err != nil {
		return err
	}
	if err := CheckBody(r.Body); err != nil {
		return fmt.Errorf("%s %s: %w", r.Kind, r.ID, err)
	}
	return nil
}
