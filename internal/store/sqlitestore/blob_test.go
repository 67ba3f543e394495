package sqlitestore

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/cellway/cellway"
)

// blobs puts n blobs into a new store and returns their digests.
func blobs(t *testing.T, n int) (*Store, [][32]byte) {
	t.Helper()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	var all [][32]byte
	for i := range n {
		blob := fmt.Appendf(nil, "blob %d", i)
		all = append(all, sha256.Sum256(blob))
		if err := s.PutBlob(t.Context(), all[i], blob); err != nil {
			t.Fatal(err)
		}
	}
	return s, all
}

// What is published is put while what nobody keeps is dropped: from within the
// drop, so that it can only end if the put does.
func TestDroppingBlobsDoesNotHoldUpPutting(t *testing.T) {
	s, all := blobs(t, 5)
	fresh := []byte("a new version")
	put := false
	n, err := s.DropBlobs(t.Context(), time.Now().Add(time.Hour), func([32]byte) bool {
		if put {
			return false
		}
		put = true
		done := make(chan error, 1)
		go func() { done <- s.PutBlob(t.Context(), sha256.Sum256(fresh), fresh) }()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(10 * time.Second):
			t.Error("a put waits for the end of the drop")
		}
		return false
	})
	if err != nil || n != len(all) {
		t.Errorf("dropped %d, %v", n, err)
	}
	if _, err := s.Blob(t.Context(), sha256.Sum256(fresh)); err != nil {
		t.Error(err)
	}
}

func TestABlobThatIsPutAgainMeanwhileStays(t *testing.T) {
	s, all := blobs(t, 3)
	before := time.Now().Add(time.Nanosecond) // after all puts
	n, err := s.DropBlobs(t.Context(), before, func(digest [32]byte) bool {
		if digest == all[1] {
			if err := s.PutBlob(t.Context(), all[1], []byte("blob 1")); err != nil {
				t.Error(err)
			}
		}
		return false
	})
	if err != nil || n != 2 {
		t.Errorf("dropped %d, %v, want 2", n, err)
	}
	for i, digest := range all {
		if _, err := s.Blob(t.Context(), digest); (err == nil) != (i == 1) || err != nil && !errors.Is(err, cellway.ErrNotFound) {
			t.Errorf("blob %d: %v", i, err)
		}
	}
}
