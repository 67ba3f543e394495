package sqlitestore

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strconv"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
)

// A tx implements [store.Tx] on a connection that is within a transaction.
type tx struct {
	s        *Store
	c        *conn
	ctx      context.Context // that of the call, without its end
	readOnly bool
	over     bool  // the call that the tx belongs to has returned
	err      error // the first fault; after it nothing is committed
}

// fault notes an error that ends the transaction.
func (t *tx) fault(doing string, err error) error {
	if err == nil {
		return nil
	}
	err = t.s.fault(doing, err)
	if t.err == nil {
		t.err = err
	}
	return err
}

// mayRead reports why nothing can be read through t.
func (t *tx) mayRead() error {
	if t.over {
		return fmt.Errorf("store %s: a transaction was used after its end: %w", t.s.path, cellway.ErrStoreDown)
	}
	return t.err
}

// mayWrite reports why nothing can be written through t.
func (t *tx) mayWrite() error {
	if t.readOnly {
		return store.ErrReadOnly
	}
	return t.mayRead()
}

func notFound(kind, id string) error { return fmt.Errorf("%s %s: %w", kind, id, cellway.ErrNotFound) }

func conflict(kind, id string, has, asked cellway.Revision) error {
	if has == 0 {
		return fmt.Errorf("%s %s, read at revision %d, is gone: %w", kind, id, asked, cellway.ErrConflict)
	}
	return fmt.Errorf("%s %s is at revision %d, not %d: %w", kind, id, has, asked, cellway.ErrConflict)
}

const columns = "r.id, r.revision, r.body, r.terms, r.sum"

// A row is a record as the file has it.
type row struct {
	store.Record
	terms []byte
	sum   uint32
}

// checksum is CRC-32C over all of a record, each part closed by a zero byte.
func checksum(parts ...[]byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	var sum uint32
	for _, p := range parts {
		sum = crc32.Update(sum, table, p)
		sum = crc32.Update(sum, table, []byte{0})
	}
	return sum
}

func (r *row) checksum() uint32 {
	return checksum([]byte(r.Kind), []byte(r.ID), strconv.AppendUint(nil, uint64(r.Revision), 10), r.Body, r.terms)
}

// verify reads what is encoded in r, and reports a record that is not what was
// written.
func (r *row) verify() error {
	if r.sum != r.checksum() {
		return fmt.Errorf("%w: %s %s does not match its checksum", errDamaged, r.Kind, r.ID)
	}
	if err := json.Unmarshal(r.terms, &r.Index); err != nil {
		return fmt.Errorf("%w: index of %s %s: %w", errDamaged, r.Kind, r.ID, err)
	}
	if len(r.Index) == 0 {
		r.Index = nil
	}
	return nil
}

// get reads a record, and reports whether it is there.
func (t *tx) get(kind, id string) (row, bool, error) {
	r := row{Record: store.Record{Kind: kind}}
	ok, err := t.c.row(t.ctx, "SELECT "+columns+" FROM records r WHERE r.kind = ? AND r.id = ?", []any{kind, id},
		&r.ID, &r.Revision, &r.Body, &r.terms, &r.sum)
	if ok {
		err = r.verify()
	}
	return r, ok, t.fault("read", err)
}

// Get implements [store.Tx].
func (t *tx) Get(kind, id string) (store.Record, error) {
	if err := cmp.Or(store.CheckNames(kind, id), t.mayRead()); err != nil {
		return store.Record{}, err
	}
	r, ok, err := t.get(kind, id)
	if err != nil {
		return store.Record{}, err
	}
	if !ok {
		return store.Record{}, notFound(kind, id)
	}
	return r.Record, nil
}

// Revision implements [store.Tx]. The column stands before the body, so that SQLite
// reads no more than the first page of a long record.
func (t *tx) Revision(kind, id string) (cellway.Revision, error) {
	if err := cmp.Or(store.CheckNames(kind, id), t.mayRead()); err != nil {
		return 0, err
	}
	var rev cellway.Revision
	ok, err := t.c.row(t.ctx, "SELECT revision FROM records WHERE kind = ? AND id = ?", []any{kind, id}, &rev)
	switch {
	case err != nil:
		return 0, t.fault("read", err)
	case !ok:
		return 0, notFound(kind, id)
	}
	return rev, nil
}

// Put implements [store.Tx].
func (t *tx) Put(rec store.Record) (cellway.Revision, error) {
	if err := t.mayWrite(); err != nil {
		return 0, err
	}
	if err := rec.Check(); err != nil {
		return 0, err
	}
	old, exists, err := t.get(rec.Kind, rec.ID)
	if err != nil {
		return 0, err
	}
	if old.Revision != rec.Revision {
		return 0, conflict(rec.Kind, rec.ID, old.Revision, rec.Revision)
	}
	r := row{Record: rec}
	r.Index = slices.Clone(rec.Index)
	slices.Sort(r.Index)
	r.Index = slices.Compact(r.Index)
	if len(r.Index) == 0 {
		r.Index = []string{} // written as [], not null
	}
	if r.terms, err = json.Marshal(r.Index); err != nil {
		return 0, t.fault("write", err)
	}
	if r.Revision++; !exists {
		var floor cellway.Revision
		if _, err := t.c.row(t.ctx, "SELECT floor FROM kinds WHERE kind = ?", []any{r.Kind}, &floor); err != nil {
			return 0, t.fault("read", err)
		}
		r.Revision = floor + 1
		if err := t.count(r.Kind, 1); err != nil {
			return 0, err
		}
	}
	r.sum = r.checksum()
	if err := t.exec(`INSERT INTO records (kind, id, revision, body, terms, sum) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT (kind, id) DO UPDATE SET revision = excluded.revision, body = excluded.body, terms = excluded.terms, sum = excluded.sum`,
		r.Kind, r.ID, int64(r.Revision), string(r.Body), string(r.terms), r.sum); err != nil {
		return 0, err
	}
	if err := t.index(r.Kind, r.ID, old.Index, r.Index); err != nil {
		return 0, err
	}
	return r.Revision, nil
}

// exec runs a statement of the transaction.
func (t *tx) exec(query string, args ...any) error {
	return t.fault("write", t.c.exec(t.ctx, query, args...))
}

// count adds to the number of records of a kind.
func (t *tx) count(kind string, n int) error {
	return t.exec(`INSERT INTO kinds (kind, floor, records) VALUES (?, 0, ?)
		ON CONFLICT (kind) DO UPDATE SET records = records + excluded.records`, kind, n)
}

// index changes the index terms of a record from old to terms.
func (t *tx) index(kind, id string, old, terms []string) error {
	for _, term := range old {
		if slices.Contains(terms, term) {
			continue
		}
		if err := t.exec("DELETE FROM record_index WHERE kind = ? AND term = ? AND id = ?", kind, term, id); err != nil {
			return err
		}
		if err := t.exec("UPDATE index_terms SET records = records - 1 WHERE kind = ? AND term = ?", kind, term); err != nil {
			return err
		}
		if err := t.exec("DELETE FROM index_terms WHERE kind = ? AND term = ? AND records = 0", kind, term); err != nil {
			return err
		}
	}
	for _, term := range terms {
		if slices.Contains(old, term) {
			continue
		}
		if err := t.exec("INSERT INTO record_index (kind, term, id) VALUES (?, ?, ?)", kind, term, id); err != nil {
			return err
		}
		if err := t.exec(`INSERT INTO index_terms (kind, term, records) VALUES (?, ?, 1)
			ON CONFLICT (kind, term) DO UPDATE SET records = records + 1`, kind, term); err != nil {
			return err
		}
	}
	return nil
}

// Delete implements [store.Tx].
func (t *tx) Delete(kind, id string, at cellway.Revision) error {
	if err := t.mayWrite(); err != nil {
		return err
	}
	if err := store.CheckNames(kind, id); err != nil {
		return err
	}
	old, exists, err := t.get(kind, id)
	switch {
	case err != nil:
		return err
	case !exists:
		return notFound(kind, id)
	case old.Revision != at:
		return conflict(kind, id, old.Revision, at)
	}
	if err := t.exec("DELETE FROM records WHERE kind = ? AND id = ?", kind, id); err != nil {
		return err
	}
	if err := t.exec("UPDATE kinds SET records = records - 1, floor = max(floor, ?) WHERE kind = ?", int64(old.Revision), kind); err != nil {
		return err
	}
	return t.index(kind, id, old.Index, nil)
}

// List implements [store.Tx].
func (t *tx) List(kind, after string, limit int) ([]store.Record, error) {
	if err := cmp.Or(store.CheckNames(kind), store.CheckLimit(limit), t.mayRead()); err != nil {
		return nil, err
	}
	return t.list(kind, "", "SELECT "+columns+" FROM records r WHERE r.kind = ? AND r.id > ? ORDER BY r.id LIMIT ?", kind, after, limit)
}

// ListIndex implements [store.Tx].
func (t *tx) ListIndex(kind, index, after string, limit int) ([]store.Record, error) {
	if err := cmp.Or(store.CheckNames(kind, index), store.CheckLimit(limit), t.mayRead()); err != nil {
		return nil, err
	}
	return t.list(kind, index, "SELECT "+columns+` FROM record_index i CROSS JOIN records r ON r.kind = i.kind AND r.id = i.id
		WHERE i.kind = ? AND i.term = ? AND i.id > ? ORDER BY i.id LIMIT ?`, kind, index, after, limit)
}

func (t *tx) list(kind, index, query string, args ...any) ([]store.Record, error) {
	var all []store.Record
	err := t.c.each(t.ctx, query, args, func(rows *sql.Rows) error {
		r := row{Record: store.Record{Kind: kind}}
		if err := rows.Scan(&r.ID, &r.Revision, &r.Body, &r.terms, &r.sum); err != nil {
			return err
		}
		if err := r.verify(); err != nil {
			return err
		}
		if index != "" && !slices.Contains(r.Index, index) {
			return fmt.Errorf("%w: %s %s stands in the index under %q, which it does not carry", errDamaged, kind, r.ID, index)
		}
		all = append(all, r.Record)
		return nil
	})
	if err != nil {
		return nil, t.fault("read", err)
	}
	return all, nil
}

// Count implements [store.Tx].
func (t *tx) Count(kind, index string) (n int, err error) {
	if err := cmp.Or(store.CheckNames(kind), t.mayRead()); err != nil {
		return 0, err
	}
	if index == "" {
		_, err = t.c.row(t.ctx, "SELECT records FROM kinds WHERE kind = ?", []any{kind}, &n)
		return n, t.fault("read", err)
	}
	if err := store.CheckNames(index); err != nil {
		return 0, err
	}
	_, err = t.c.row(t.ctx, "SELECT records FROM index_terms WHERE kind = ? AND term = ?", []any{kind, index}, &n)
	return n, t.fault("read", err)
}

// Append implements [store.Tx].
func (t *tx) Append(log string, body []byte) (uint64, error) {
	if err := t.mayWrite(); err != nil {
		return 0, err
	}
	if err := store.CheckNames(log); err != nil {
		return 0, err
	}
	if err := store.CheckBody(body); err != nil {
		return 0, fmt.Errorf("log %s: %w", log, err)
	}
	n, err := t.LogEnd(log)
	if err != nil {
		return 0, err
	}
	n++
	err = t.exec("INSERT INTO logs (log, number, body, sum) VALUES (?, ?, ?, ?)", log, int64(n), string(body), entrySum(log, n, body))
	return n, err
}

// entrySum is the checksum of a log's entry.
func entrySum(log string, n uint64, body []byte) uint32 {
	return checksum([]byte(log), strconv.AppendUint(nil, n, 10), body)
}

// Log implements [store.Tx].
func (t *tx) Log(log string, after uint64, limit int) ([]store.Entry, error) {
	if err := cmp.Or(store.CheckNames(log), store.CheckLimit(limit), t.mayRead()); err != nil {
		return nil, err
	}
	var all []store.Entry
	after = min(after, math.MaxInt64)
	err := t.c.each(t.ctx, "SELECT number, body, sum FROM logs WHERE log = ? AND number > ? ORDER BY number LIMIT ?",
		[]any{log, int64(after), limit}, func(rows *sql.Rows) error {
			var e store.Entry
			var sum uint32
			if err := rows.Scan(&e.Number, &e.Body, &sum); err != nil {
				return err
			}
			if after++; e.Number != after || sum != entrySum(log, e.Number, e.Body) {
				return fmt.Errorf("%w: log %s at entry %d", errDamaged, log, after)
			}
			all = append(all, e)
			return nil
		})
	if err != nil {
		return nil, t.fault("read", err)
	}
	return all, nil
}

// LogEnd implements [store.Tx].
func (t *tx) LogEnd(log string) (uint64, error) {
	if err := cmp.Or(store.CheckNames(log), t.mayRead()); err != nil {
		return 0, err
	}
	var n uint64
	_, err := t.c.row(t.ctx, "SELECT ifnull(max(number), 0) FROM logs WHERE log = ?", []any{log}, &n)
	return n, t.fault("read", err)
}
