package sqlitestore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/cellway/cellway/internal/store"
)

// lookForDamage checks the file for as long as o allows.
func (s *Store) lookForDamage(ctx context.Context, o Options) error {
	if o.checkFor() < 0 {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, o.checkFor())
	defer cancel()
	c, err := connect(ctx, s.reads)
	if err != nil {
		return s.fault("open", err)
	}
	defer c.close()
	// One snapshot, since other processes may be writing.
	if err := c.exec(ctx, "BEGIN"); err != nil {
		return s.fault("open", err)
	}
	err = s.format.damage(bounded, c)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		s.log.Warn("store is too large to be checked whole at start; damage is found when it is read", "path", s.path, "checked_for", o.checkFor())
		return nil
	}
	return s.fault("open", err)
}

// damage looks for damage, with SQLite's own check first and then with ours. The
// quick one of SQLite's is not enough: it would let pass a record that is there
// and that no look-up finds.
func (f format) damage(ctx context.Context, c *conn) error {
	said, err := c.texts(ctx, "PRAGMA integrity_check(5)")
	if err != nil {
		return err
	}
	var found []error
	for _, s := range said {
		if s != "ok" {
			found = append(found, errors.New(s))
		}
	}
	if len(found) > 0 {
		return fmt.Errorf("%w: %w", errDamaged, errors.Join(found...))
	}
	return f.check(ctx, c)
}

// checkRecords reads every record and entry and compares the tables.
func checkRecords(ctx context.Context, c *conn) error {
	err := c.each(ctx, "SELECT r.kind, "+columns+" FROM records r", nil, func(rows *sql.Rows) error {
		var r row
		if err := rows.Scan(&r.Kind, &r.ID, &r.Revision, &r.Body, &r.terms, &r.sum); err != nil {
			return err
		}
		return r.verify()
	})
	if err != nil {
		return err
	}
	err = c.each(ctx, "SELECT log, number, body, sum FROM logs", nil, func(rows *sql.Rows) error {
		var log string
		var e store.Entry
		var sum uint32
		if err := rows.Scan(&log, &e.Number, &e.Body, &sum); err != nil {
			return err
		}
		if sum != entrySum(log, e.Number, e.Body) {
			return fmt.Errorf("%w: log %s at entry %d", errDamaged, log, e.Number)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return deny(ctx, c, contradictions())
}

// deny reports the first of the contradictions that it finds.
func deny(ctx context.Context, c *conn, contradictions []string) error {
	for _, contradiction := range contradictions {
		var what string
		found, err := c.row(ctx, contradiction, nil, &what)
		if err != nil {
			return err
		}
		if found {
			return fmt.Errorf("%w: %s", errDamaged, what)
		}
	}
	return nil
}

// contradictions returns queries for what one table says and another denies.
// Each selects a sentence about the first that it finds.
func contradictions() []string {
	return []string{
		`SELECT 'log ' || log || ' has gaps' FROM logs GROUP BY log HAVING min(number) <> 1 OR max(number) <> count(*) LIMIT 1`,

		`SELECT 'the index of ' || r.kind || ' ' || r.id || ' lacks ' || t.value
		FROM records r, json_each(r.terms) t
		WHERE NOT EXISTS (SELECT 1 FROM record_index i WHERE i.kind = r.kind AND i.term = t.value AND i.id = r.id) LIMIT 1`,

		`SELECT 'the index has too much' WHERE
		(SELECT count(*) FROM record_index) <> (SELECT ifnull(sum(json_array_length(terms)), 0) FROM records)`,

		`SELECT 'the count of ' || kind || ' under ' || term || ' is wrong' FROM
		(SELECT kind, term, records FROM index_terms EXCEPT SELECT kind, term, count(*) FROM record_index GROUP BY kind, term) LIMIT 1`,

		`SELECT 'the count of ' || kind || ' under ' || term || ' is missing' FROM
		(SELECT kind, term FROM record_index EXCEPT SELECT kind, term FROM index_terms) LIMIT 1`,

		`SELECT 'the count of ' || kind || ' is wrong' FROM
		(SELECT kind, count(*) FROM records GROUP BY kind EXCEPT SELECT kind, records FROM kinds) LIMIT 1`,

		`SELECT 'the count of ' || kind || ' is wrong' FROM kinds
		WHERE records <> 0 AND kind NOT IN (SELECT kind FROM records) LIMIT 1`,

		`SELECT 'blob ' || digest || ' lacks chunks' FROM blobs b
		WHERE size <> (SELECT ifnull(sum(length(content)), 0) FROM blob_chunks c WHERE c.digest = b.digest) LIMIT 1`,
	}
}

// checkBlobs reads every blob.
func checkBlobs(ctx context.Context, c *conn) error {
	names, err := c.texts(ctx, "SELECT digest FROM blobs")
	if err != nil {
		return err
	}
	for _, name := range names {
		h := sha256.New()
		if err := c.chunks(ctx, name, func(chunk []byte) { h.Write(chunk) }); err != nil {
			return err
		}
		if hex.EncodeToString(h.Sum(nil)) != name {
			return fmt.Errorf("%w: blob %s has other content than was put", errDamaged, name)
		}
	}
	return nil
}
