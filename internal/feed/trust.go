package feed

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/looks"
	"github.com/cellway/cellway/internal/regular"
	"github.com/cellway/cellway/routemap"
)

// Keys says whose maps are accepted. It may give other keys each time.
type Keys interface {
	Keyring() routemap.Keyring
}

// A KeyringFile is a file with the keys whose maps are accepted. It is read
// again when it changed. While it can't be read, or holds nonsense, the keys
// stay as they were.
type KeyringFile struct {
	path string
	log  *slog.Logger
	file func(path string, most int64) ([]byte, error) // reads it

	reading sync.Mutex // held while the file is read, which may take long
	text    []byte     // guarded by reading
	ring    routemap.Keyring

	look looks.Last
}

// OpenKeyring reads a keyring for the first time. The file must be there and
// hold a trusted key; the error says what is wrong with it.
func OpenKeyring(path string, log *slog.Logger) (*KeyringFile, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	k := &KeyringFile{path: path, log: log, file: regular.Read}
	text, ring, err := k.read()
	if err != nil {
		return nil, err
	}
	k.text, k.ring = text, ring
	return k, nil
}

func (k *KeyringFile) read() ([]byte, routemap.Keyring, error) {
	text, err := k.file(k.path, maxKeyring)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; where the control plane's signing key is, cellway key show prints the line that belongs there", err)
	}
	if err != nil {
		return nil, nil, err
	}
	ring, err := routemap.ParseKeyring(text)
	if err != nil {
		return text, nil, fmt.Errorf("%s: %w", k.path, err)
	}
	for _, key := range ring {
		if key.Trust == routemap.Trusted {
			return text, ring, nil
		}
	}
	return text, nil, fmt.Errorf("%s has no trusted key, so no map could be accepted; where the control plane's signing key is, cellway key show prints its line: %w", k.path, cellway.ErrInvalid)
}

// Keyring returns the keys as they are in the file now.
func (k *KeyringFile) Keyring() routemap.Keyring {
	k.reading.Lock()
	defer k.reading.Unlock()
	text, ring, err := k.read()
	switch news := k.look.Note(err); {
	case err != nil:
		if news {
			k.log.Error("keyring not read; the keys stay as they were", "error", err)
		}
		return k.ring
	case news:
		k.log.Info("keyring read again")
	}
	if bytes.Equal(text, k.text) {
		return k.ring
	}
	k.text, k.ring = text, ring
	k.log.Info("keyring changed", "keys", len(ring))
	return ring
}

// Err returns why the file could not be read the last time, or nil. It waits for no
// disk.
func (k *KeyringFile) Err() error { return k.look.Err() }
