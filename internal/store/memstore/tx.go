package memstore

import (
	"bytes"
	"fmt"
	"iter"
	"slices"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
)

// A state is all records and logs at one moment. Copying it is cheap; what it
// points at is never changed, except that a log's array may hold entries
// beyond the end that this state knows.
type state struct {
	kinds tree[kind]
	logs  tree[[]store.Entry]
}

// A kind is all records of one kind.
type kind struct {
	records tree[store.Record]
	index   tree[tree[struct{}]] // ids by index term
	floor   cellway.Revision     // the highest revision of a record that was deleted
}

// A tx implements [store.Tx] over a state of its own.
type tx struct {
	state
	readOnly bool
}

func notFound(kind, id string) error { return fmt.Errorf("%s %s: %w", kind, id, cellway.ErrNotFound) }

func conflict(kind, id string, has, asked cellway.Revision) error {
	if has == 0 {
		return fmt.Errorf("%s %s, read at revision %d, is gone: %w", kind, id, asked, cellway.ErrConflict)
	}
	return fmt.Errorf("%s %s is at revision %d, not %d: %w", kind, id, has, asked, cellway.ErrConflict)
}

// copied keeps callers away from what states share.
func copied(r store.Record) store.Record {
	r.Body, r.Index = bytes.Clone(r.Body), slices.Clone(r.Index)
	return r
}

func (t *tx) Get(kind, id string) (store.Record, error) {
	if err := store.CheckNames(kind, id); err != nil {
		return store.Record{}, err
	}
	k, _ := t.kinds.get(kind)
	r, ok := k.records.get(id)
	if !ok {
		return store.Record{}, notFound(kind, id)
	}
	return copied(r), nil
}

func (t *tx) Revision(kind, id string) (cellway.Revision, error) {
	if err := store.CheckNames(kind, id); err != nil {
		return 0, err
	}
	k, _ := t.kinds.get(kind)
	r, ok := k.records.get(id)
	if !ok {
		return 0, notFound(kind, id)
	}
	return r.Revision, nil
}

func (t *tx) Put(r store.Record) (cellway.Revision, error) {
	if t.readOnly {
		return 0, store.ErrReadOnly
	}
	if err := r.Check(); err != nil {
		return 0, err
	}
	k, _ := t.kinds.get(r.Kind)
	old, exists := k.records.get(r.ID)
	if old.Revision != r.Revision {
		return 0, conflict(r.Kind, r.ID, old.Revision, r.Revision)
	}
	r = copied(r)
	slices.Sort(r.Index)
	r.Index = slices.Compact(r.Index)
	if r.Revision++; !exists {
		r.Revision = k.floor + 1
	}
	k.unindex(old)
	for _, term := range r.Index {
		ids, _ := k.index.get(term)
		k.index = k.index.put(term, ids.put(r.ID, struct{}{}))
	}
	k.records = k.records.put(r.ID, r)
	t.kinds = t.kinds.put(r.Kind, k)
	return r.Revision, nil
}

func (t *tx) Delete(kind, id string, at cellway.Revision) error {
	if t.readOnly {
		return store.ErrReadOnly
	}
	if err := store.CheckNames(kind, id); err != nil {
		return err
	}
	k, _ := t.kinds.get(kind)
	old, exists := k.records.get(id)
	switch {
	case !exists:
		return notFound(kind, id)
	case old.Revision != at:
		return conflict(kind, id, old.Revision, at)
	}
	k.unindex(old)
	k.records = k.records.remove(id)
	k.floor = max(k.floor, old.Revision)
	t.kinds = t.kinds.put(kind, k)
	return nil
}

// unindex removes r from the index.
func (k *kind) unindex(r store.Record) {
	for _, term := range r.Index {
		ids, _ := k.index.get(term)
		if ids = ids.remove(r.ID); ids.len() > 0 {
			k.index = k.index.put(term, ids)
		} else {
			k.index = k.index.remove(term)
		}
	}
}

func (t *tx) List(kind, after string, limit int) ([]store.Record, error) {
	if err := store.CheckNames(kind); err != nil {
		return nil, err
	}
	k, _ := t.kinds.get(kind)
	return page(k, keys(k.records.after(after)), limit)
}

func (t *tx) ListIndex(kind, index, after string, limit int) ([]store.Record, error) {
	if err := store.CheckNames(kind, index); err != nil {
		return nil, err
	}
	k, _ := t.kinds.get(kind)
	ids, _ := k.index.get(index)
	return page(k, keys(ids.after(after)), limit)
}

func keys[V any](all iter.Seq2[string, V]) iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range all {
			if !yield(key) {
				return
			}
		}
	}
}

func page(k kind, ids iter.Seq[string], limit int) ([]store.Record, error) {
	if err := store.CheckLimit(limit); err != nil {
		return nil, err
	}
	var all []store.Record
	for id := range ids {
		r, _ := k.records.get(id)
		if all = append(all, copied(r)); len(all) == limit {
			break
		}
	}
	return all, nil
}

func (t *tx) Count(kind, index string) (int, error) {
	if err := store.CheckNames(kind); err != nil {
		return 0, err
	}
	k, _ := t.kinds.get(kind)
	if index == "" {
		return k.records.len(), nil
	}
	if err := store.CheckNames(index); err != nil {
		return 0, err
	}
	ids, _ := k.index.get(index)
	return ids.len(), nil
}

func (t *tx) Append(log string, body []byte) (uint64, error) {
	if t.readOnly {
		return 0, store.ErrReadOnly
	}
	if err := store.CheckNames(log); err != nil {
		return 0, err
	}
	if err := store.CheckBody(body); err != nil {
		return 0, fmt.Errorf("log %s: %w", log, err)
	}
	entries, _ := t.logs.get(log)
	n := uint64(len(entries)) + 1
	// States share the array. Only the one update that runs writes to it, and
	// only beyond the end of every committed state.
	t.logs = t.logs.put(log, append(entries, store.Entry{Number: n, Body: bytes.Clone(body)}))
	return n, nil
}

func (t *tx) Log(log string, after uint64, limit int) ([]store.Entry, error) {
	if err := store.CheckNames(log); err != nil {
		return nil, err
	}
	if err := store.CheckLimit(limit); err != nil {
		return nil, err
	}
	entries, _ := t.logs.get(log)
	if after >= uint64(len(entries)) {
		return nil, nil
	}
	entries = entries[after:]
	entries = slices.Clone(entries[:min(limit, len(entries))])
	for i := range entries {
		entries[i].Body = bytes.Clone(entries[i].Body)
	}
	return entries, nil
}

func (t *tx) LogEnd(log string) (uint64, error) {
	if err := store.CheckNames(log); err != nil {
		return 0, err
	}
	entries, _ := t.logs.get(log)
	return uint64(len(entries)), nil
}
