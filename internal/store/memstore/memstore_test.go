package memstore_test

import (
	"bytes"
	"testing"

	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/internal/store/memstore"
	"github.com/cellway/cellway/internal/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, storetest.Maker{
		Open: func(*testing.T) store.Store { return memstore.New() },
		Restore: func(_ *testing.T, backup []byte) (store.Store, error) {
			s, err := memstore.Restore(bytes.NewReader(backup))
			if err != nil {
				return nil, err
			}
			return s, nil
		},
	})
}
