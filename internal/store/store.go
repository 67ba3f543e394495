// Package store is the contract that whatever keeps the control plane's
// memory fulfils.
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
// Calls after Close have that error too, and no effect.
type Store interface {
	// View calls read with a consistent snapshot: what was committed before View
	// was called is in it, and nothing that is committed while read runs. Writes
	// through it fail with ErrReadOnly. The error of read is returned as it is; if
	// ctx ends, View may return its cause instead. Views neither wait for updates
	// nor hold them up.
	View(ctx context.Context, read func(Tx) error) error

	// Update calls write once, alone among updates. If write returns nil, all it
	// wrote is committed at once and is durable before Update returns nil. If
	// write returns an error or ctx ends before the commit, nothing is kept and
	// that error, or the cause of ctx's end, is returned. If write panics, nothing
	// is kept and the panic goes on. write may ignore an ErrConflict, ErrNotFound
	// or ErrInvalid of its Tx; after any other, nothing is kept. It must not call
	// Update, PutBlob or DropBlobs of the same store, which may wait for it.
	Update(ctx context.Context, write func(Tx) error) error

	// PutBlob stores bytes under the SHA-256 that names them and returns once
	// they are durable. Putting what is there already is no error, and counts as
	// put now. Bytes that digest does not name are an [cellway.ErrInvalid].
	PutBlob(ctx context.Context, digest [32]byte, blob []byte) error

	// Blob returns the bytes named by digest, or [cellway.ErrNotFound]. Bytes
	// that no longer have that digest are an error, never returned.
	Blob(ctx context.Context, digest [32]byte) ([]byte, error)

	// DropBlobs removes the blobs that keep does not want and that were put
	// before the given time. It returns how many went. A blob that is put again
	// meanwhile stays.
	DropBlobs(ctx context.Context, before time.Time, keep func(digest [32]byte) bool) (int, error)

	// Backup writes a consistent copy of everything, from which a store of the
	// same kind can be opened. Updates go on meanwhile. An error of w is returned
	// wrapped; what w got by then is no backup.
	Backup(ctx context.Context, w io.Writer) error

	// Close waits for calls under way. What was acknowledged stays. Closing again
	// does nothing.
	Close() error
}

// Incarnations are numbers that a place of stores draws, each once. A [Store] that
// has them remembers what was drawn beside what it keeps, so that no restore from a
// backup sets it back. It is safe for concurrent use, also by several processes and
// within an Update. Its errors wrap [cellway.ErrStoreDown]: a number may have been
// drawn all the same, which nobody has then.
type Incarnations interface {
	// NewIncarnation returns a number that is at least that, and above all that
	// were returned or told. It is remembered durably before it is returned.
	NewIncarnation(ctx context.Context, least uint32) (uint32, error)

	// UsedIncarnation tells of a number that was used without having been drawn.
	UsedIncarnation(ctx context.Context, n uint32) error
}

// Tx reads and writes within one View or Update, and must not be used after
// it or by two goroutines. It sees its own writes. The bytes and slices that go
// in and come out are copies: neither side sees the other's changes.
//
// Names (kinds, ids, index terms, logs) are 1 to 512 bytes of UTF-8 without
// control characters; bodies are JSON, kept byte for byte. What breaks that is
// an [cellway.ErrInvalid], and so is a limit below 1.
type Tx interface {
	// Get returns a record, or [cellway.ErrNotFound].
	Get(kind, id string) (Record, error)

	// Revision returns the revision of a record, or [cellway.ErrNotFound], without
	// reading the body, however long that is.
	Revision(kind, id string) (cellway.Revision, error)

	// Put writes r.Body and r.Index under r.Kind and r.ID. r.Revision is the
	// revision that was read, 0 to create. It returns the new revision, which is
	// higher than any this record ever had, deleted ones of that name included,
	// or [cellway.ErrConflict] if the record has another one or is gone.
	Put(r Record) (cellway.Revision, error)

	// Delete removes a record at the revision that was read; ErrConflict if it
	// has another one, ErrNotFound if there is none.
	Delete(kind, id string, at cellway.Revision) error

	// List returns at most limit records of a kind whose ids are above after, in
	// the order of the ids' bytes. An empty after is below all ids.
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
	Index    []string // terms under which ListIndex finds it, such as "cell=cell-001"; read back sorted, each once
}

// An Entry is one line of a log.
type Entry struct {
	Number uint64
	Body   []byte // JSON
}

// ErrReadOnly is the error of a write within a View.
var ErrReadOnly = errors.New("write within a view")
