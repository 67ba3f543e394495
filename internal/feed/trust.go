package feed

import (
	"bytes"
	"fmt"
	"log/slog"
	"sync"

	"github.com/cellway/cellway"
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

	mu   sync.Mutex
	text []byte
	ring routemap.Keyring
	err  error // of the last time it was read
}

// OpenKeyring reads a keyring for the first time. The file must be there and
// hold a trusted key; the error says what is wrong with it.
func OpenKeyring(path string, log *slog.Logger) (*KeyringFile, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	k := &KeyringFile{path: path, log: log}
	text, ring, err := k.read()
	if err != nil {
		return nil, err
	}
	k.text, k.ring = text, ring
	return k, nil
}

func (k *KeyringFile) read() ([]byte, routemap.Keyring, error) {
	text, err := readRegular(k.path, maxKeyring)
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
	return text, nil, fmt.Errorf("%s has no trusted key, so no map could be accepted: %w", k.path, cellway.ErrInvalid)
}

// Keyring returns the keys as they are in the file now.
func (k *KeyringFile) Keyring() routemap.Keyring {
	k.mu.Lock()
	defer k.mu.Unlock()
	text, ring, err := k.read()
	switch {
	case err != nil:
		if k.err == nil || k.err.Error() != err.Error() {
			k.log.Error("keyring not read; the keys stay as they were", "error", err)
		}
		k.err = err
		return k.ring
	case k.err != nil:
		k.log.Info("keyring read again")
	}
	k.err = nil
	if bytes.Equal(text, k.text) {
		return k.ring
	}
	k.text, k.ring = text, ring
	k.log.Info("keyring changed", "keys", len(ring))
	return ring
}

// Err returns why the file could not be read the last time, or nil.
func (k *KeyringFile) Err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}
