// Package store is the contract between the control plane and whatever keeps
// its memory.
//
// A store knows no cells or tenants. It keeps records, each a document under a
// kind and an id with a revision; logs, which only grow; and blobs, which are
// named by their content. The implementations are in the packages below, and
// storetest holds each of them to this contract.
package store

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/cellway/cellway"
)

// Store keeps the control plane's memory. It is safe for concurrent use.
//
// Every error that is not listed at the method wraps [cellway.ErrStoreDown]: it
// is not known whether the call took effect, and the caller must look again.
type Store interface {
	// View calls read with a consistent snapshot. Writes through it fail with
	// ErrReadOnly. The error of read is returned as it is.
	View(ctx context.Context, read func(Tx) error) error

	// Update calls write once, alone among updates. If write returns nil, all it
	// wrote is committed at once and is durable before Update returns nil. If
	// write returns an error or panics, or ctx ends before the commit, nothing is
	// kept and that error is returned.
	Update(ctx context.Context, write func(Tx) error) error

	// PutBlob stores bytes under the SHA-256 that names them and returns once
	// they are durable. Putting what is there already is no error.
	PutBlob(ctx context.Context, digest [32]byte, blob []byte) error

	// Blob returns the bytes named by digest, or [cellway.ErrNotFound]. Bytes
	// that no longer have that digest are an error, never returned.
	Blob(ctx context.Context, digest [32]byte) ([]byte, error)

	// DropBlobs removes the blobs that keep does not want and that were put
	// before the given time. It returns how many went.
	DropBlobs(ctx context.Context, before time.Time, keep func(digest [32]byte) bool) (int, error)

	// Backup writes a consistent copy of everything, from which a store of the
	// same kind can be opened.
	Backup(ctx context.Context, w io.Writer) error

	// Close waits for calls under way. What was acknowledged stays.
	Close() error
}

// Tx reads and writes within one View or Update, and must not be used after
// it or by two goroutines.
type Tx interface {
	// Get returns a record, or [cellway.ErrNotFound].
	Get(kind, id string) (Record, error)

	// Put writes r.Body and r.Index under r.Kind and r.ID. r.Revision is the
	// revision that was read, 0 to create. It returns the new revision, which is
	// higher than any this record ever had, deleted ones of that name included,
	// or [cellway.ErrConflict] if the record has another one.
	Put(r Record) (cellway.Revision, error)

	// Delete removes a record at the revision that was read; ErrConflict and
	// ErrNotFound as above.
	Delete(kind, id string, at cellway.Revision) error

	// List returns at most limit records of a kind whose ids are above after, in
	// the order of the ids' bytes.
	List(kind, after string, limit int) ([]Record, error)

	// ListIndex is List among the records of which index is one of the Index
	// terms.
	ListIndex(kind, index, after string, limit int) ([]Record, error)

	// Count counts the records of a kind that carry an index term; with an empty
	// term, all.
	Count(kind, index string) (int, error)

	// Append adds an entry to a log and returns its number: 1 for the first,
	// then rising by 1 without gaps.
	Append(log string, body []byte) (uint64, error)

	// Log returns at most limit entries above after, in order.
	Log(log string, after uint64, limit int) ([]Entry, error)

	// LogEnd returns the number of the last entry of a log, 0 if it is empty.
	LogEnd(log string) (uint64, error)
}

// A Record is a document of the control plane.
type Record struct {
	Kind, ID string
	Revision cellway.Revision
	Body     []byte   // JSON
	Index    []string // terms under which ListIndex finds it, such as "cell=cell-001"
}

// An Entry is one line of a log.
type Entry struct {
	Number uint64
	Body   []byte // JSON
}

// ErrReadOnly is the error of a write within a View.
var ErrReadOnly = errors.New("write within a view")
