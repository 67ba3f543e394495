package memstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
)

// A backup is one line of JSON, the head, and then the content in JSON.
type head struct {
	Format int      `json:"format"`
	SHA256 [32]byte `json:"sha256"` // of all that follows the line
}

type dump struct {
	Records []store.Record              `json:"records"`
	Floors  map[string]cellway.Revision `json:"floors"`
	Logs    map[string][]store.Entry    `json:"logs"`
	Blobs   []dumpedBlob                `json:"blobs"`
}

type dumpedBlob struct {
	Digest [32]byte  `json:"digest"`
	Put    time.Time `json:"put"`
	Bytes  []byte    `json:"bytes"`
}

const dumpFormat = 1

// Backup implements [store.Store]. [Restore] reads what it writes.
func (s *Store) Backup(ctx context.Context, w io.Writer) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()

	s.mu.Lock() // blobs are put before the records that name them, and dropped after
	st := s.state.Load()
	blobs := maps.Clone(s.blobs)
	s.mu.Unlock()

	d := dump{Floors: map[string]cellway.Revision{}, Logs: map[string][]store.Entry{}}
	for name, k := range st.kinds.after("") {
		d.Floors[name] = k.floor
		for _, r := range k.records.after("") {
			d.Records = append(d.Records, r)
		}
	}
	maps.Insert(d.Logs, st.logs.after(""))
	for digest, b := range blobs {
		d.Blobs = append(d.Blobs, dumpedBlob{digest, b.put, b.bytes})
	}
	content, err := json.Marshal(d)
	if err == nil {
		err = json.NewEncoder(w).Encode(head{dumpFormat, sha256.Sum256(content)})
	}
	if err == nil {
		_, err = w.Write(content)
	}
	if err != nil {
		return fmt.Errorf("back up memory store: %w", err)
	}
	return nil
}

// Restore returns a store with the content of a backup, or an
// [cellway.ErrInvalid] that says what is wrong with it.
func Restore(r io.Reader) (*Store, error) {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("restore memory store: %s: %w", fmt.Sprintf(format, args...), cellway.ErrInvalid)
	}
	within := func(err error) error {
		if errors.Is(err, cellway.ErrInvalid) {
			return fmt.Errorf("restore memory store: %w", err)
		}
		return bad("%v", err)
	}
	all, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("restore memory store: %w", err)
	}
	first, content, _ := bytes.Cut(all, []byte("\n"))
	var h head
	if err := json.Unmarshal(first, &h); err != nil {
		return nil, bad("this is not its backup: %v", err)
	}
	if h.Format != dumpFormat {
		return nil, bad("the backup has format %d, this program reads %d", h.Format, dumpFormat)
	}
	if sha256.Sum256(content) != h.SHA256 {
		return nil, bad("the backup is cut off or was changed")
	}
	var d dump
	if err := json.Unmarshal(content, &d); err != nil {
		return nil, bad("%v", err)
	}
	s := New()
	t := &tx{}
	for name, floor := range d.Floors {
		t.kinds = t.kinds.put(name, kind{floor: floor})
	}
	for _, r := range d.Records {
		at := r.Revision
		r.Revision = 0
		if _, err := t.Put(r); err != nil {
			return nil, within(err)
		}
		t.setRevision(r.Kind, r.ID, at)
	}
	for name, entries := range d.Logs {
		for i, e := range entries {
			if e.Number != uint64(i)+1 {
				return nil, bad("log %s: entry %d follows entry %d", name, e.Number, i)
			}
			if _, err := t.Append(name, e.Body); err != nil {
				return nil, within(err)
			}
		}
	}
	s.state.Store(&t.state)
	for _, b := range d.Blobs {
		if err := store.CheckBlob(b.Digest, b.Bytes); err != nil {
			return nil, within(err)
		}
		s.blobs[b.Digest] = blob{b.Bytes, b.Put}
	}
	return s, nil
}

// setRevision gives a record that was just put the revision that it had.
func (t *tx) setRevision(kind, id string, at cellway.Revision) {
	k, _ := t.kinds.get(kind)
	r, _ := k.records.get(id)
	r.Revision = at
	k.records = k.records.put(id, r)
	t.kinds = t.kinds.put(kind, k)
}
