package memstore_test

import (
	"bytes"
	"crypto/sha256"
	"testing"
	"time"

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

func TestBlobThatIsPutAgainWhileItIsJudgedStays(t *testing.T) {
	s := memstore.New()
	b := []byte("blob")
	d := sha256.Sum256(b)
	put := func() {
		if err := s.PutBlob(t.Context(), d, b); err != nil {
			t.Fatal(err)
		}
	}
	put()
	mark := time.Now()
	for !time.Now().After(mark) { // clocks may be coarse
	}
	n, err := s.DropBlobs(t.Context(), time.Now(), func([32]byte) bool {
		put()
		return false
	})
	if n != 0 || err != nil {
		t.Errorf("dropped %d, %v", n, err)
	}
	if _, err := s.Blob(t.Context(), d); err != nil {
		t.Error(err)
	}
}
