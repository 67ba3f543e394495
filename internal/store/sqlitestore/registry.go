package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/cellway/cellway/shuffle"
)

var _ shuffle.RegistryStore = (*Registry)(nil)

// A Registry implements [shuffle.RegistryStore] in a SQLite file of its own.
// Several processes of one machine may have the file open: the primary key of
// its claims holds among them all. A hand is durable when it is acknowledged.
//
// Who holds which worker can be read with the sqlite3 shell meanwhile:
//
//	sqlite3 -readonly hands.db "SELECT tenant FROM holdings WHERE members LIKE '%\"w-7\"%'"
//
// Besides those of the contract, all errors wrap [cellway.ErrStoreDown].
type Registry struct {
	s *Store
}

// OpenRegistry opens the registry at path. The options and the errors are those
// of [Open], but for the lock: a process that finds another one opening the file
// waits, until ctx ends.
func OpenRegistry(ctx context.Context, path string, o Options) (*Registry, error) {
	s, err := hands().open(ctx, path, o)
	if err != nil {
		return nil, err
	}
	return &Registry{s}, nil
}

// Close waits for calls under way. What was acknowledged stays. Closing again
// does nothing.
func (r *Registry) Close() error { return r.s.Close() }

// hands is the format of a [Registry]. Its application id spells "Celh".
func hands() format {
	return format{name: "registry", app: 0x43656c68, check: checkHoldings, steps: []string{`
CREATE TABLE registry (
	one     INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
	overlap INTEGER,           -- how many workers two tenants may share; null until it is bound
	last    INTEGER NOT NULL   -- the newest revision
) STRICT;

INSERT INTO registry (one, last) VALUES (1, 0);

CREATE TABLE holdings (
	tenant   BLOB    NOT NULL PRIMARY KEY,
	members  TEXT    NOT NULL,  -- the workers, each in quotes as Go has them
	attempt  INTEGER NOT NULL,
	version  TEXT    NOT NULL,  -- in quotes, too
	revision INTEGER NOT NULL,
	claims   BLOB    NOT NULL,  -- 16 bytes each
	sum      INTEGER NOT NULL   -- CRC-32C of all of these
) STRICT;

-- What only one tenant may have: a hash of one worker more than two may share.
CREATE TABLE claims (
	claim  BLOB NOT NULL PRIMARY KEY,
	tenant BLOB NOT NULL
) STRICT, WITHOUT ROWID;
`}}
}

const holdingColumns = "tenant, members, attempt, version, revision, claims, sum"

// A holding is a holding as the file has it.
type holding struct {
	tenant, claims   []byte
	members, version string
	attempt          int
	revision         int64
	sum              uint32
}

func (h *holding) fields() []any {
	return []any{&h.tenant, &h.members, &h.attempt, &h.version, &h.revision, &h.claims, &h.sum}
}

func (h *holding) checksum() uint32 {
	return checksum(h.tenant, []byte(h.members), strconv.AppendInt(nil, int64(h.attempt), 10), []byte(h.version),
		strconv.AppendInt(nil, h.revision, 10), h.claims)
}

// decode returns what was reserved, or reports that it is not what was written.
func (h *holding) decode() (shuffle.Holding, error) {
	damaged := func(err error) (shuffle.Holding, error) {
		return shuffle.Holding{}, fmt.Errorf("%w: holding of %q: %w", errDamaged, h.tenant, err)
	}
	if h.sum != h.checksum() || h.revision <= 0 || len(h.claims)%len(shuffle.Claim{}) != 0 {
		return damaged(errors.New("it does not match its checksum"))
	}
	members, err := unquoteAll(h.members)
	if err != nil {
		return damaged(err)
	}
	version, err := strconv.Unquote(h.version)
	if err != nil {
		return damaged(err)
	}
	return shuffle.Holding{Tenant: string(h.tenant), Members: members, Attempt: h.attempt, Version: version, Revision: uint64(h.revision)}, nil
}

// quoteAll writes names in a way that people can read and that keeps every byte.
func quoteAll(names []string) string {
	var b []byte
	for i, name := range names {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendQuote(b, name)
	}
	return string(b)
}

// unquoteAll reads what quoteAll wrote.
func unquoteAll(s string) (names []string, err error) {
	for s != "" {
		quoted, err := strconv.QuotedPrefix(s)
		if err != nil {
			return nil, fmt.Errorf("members %.80q: %w", s, err)
		}
		name, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, fmt.Errorf("members %.80q: %w", s, err)
		}
		names = append(names, name)
		s = strings.TrimPrefix(s[len(quoted):], " ")
	}
	return names, nil
}

// Bind implements [shuffle.RegistryStore].
func (r *Registry) Bind(ctx context.Context, rules shuffle.Rules) error {
	if err := r.s.enter(ctx); err != nil {
		return err
	}
	defer r.s.calls.Done()
	return r.s.update(ctx, func(t *tx) error {
		if err := t.exec("UPDATE registry SET overlap = ? WHERE overlap IS NULL", rules.Overlap); err != nil {
			return err
		}
		var bound int
		if err := t.one("SELECT overlap FROM registry", &bound); err != nil {
			return err
		}
		if bound != rules.Overlap {
			return fmt.Errorf("registry %s has overlap %d, not %d: %w", r.s.path, bound, rules.Overlap, shuffle.ErrRules)
		}
		return nil
	})
}

// one reads a row that must be there.
func (t *tx) one(query string, dest ...any) error {
	ok, err := t.c.row(t.ctx, query, nil, dest...)
	if err == nil && !ok {
		err = fmt.Errorf("%w: the row of %s is gone", errDamaged, query)
	}
	return t.fault("read", err)
}

// held reads what a tenant holds, and reports whether it holds anything.
func (t *tx) held(tenant string) (h holding, ok bool, err error) {
	ok, err = t.c.row(t.ctx, "SELECT "+holdingColumns+" FROM holdings WHERE tenant = ?", []any{[]byte(tenant)}, h.fields()...)
	if ok {
		_, err = h.decode()
	}
	return h, ok, t.fault("read", err)
}

// Holding implements [shuffle.RegistryStore].
func (r *Registry) Holding(ctx context.Context, tenant string) (found shuffle.Holding, err error) {
	if err := r.s.enter(ctx); err != nil {
		return shuffle.Holding{}, err
	}
	defer r.s.calls.Done()
	err = r.s.view(ctx, func(t *tx) error {
		h, ok, err := t.held(tenant)
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("tenant %q: %w", tenant, shuffle.ErrNoHand)
		}
		found, err = h.decode()
		return err
	})
	return found, err
}

// Reserve implements [shuffle.RegistryStore].
func (r *Registry) Reserve(ctx context.Context, h shuffle.Holding, claims []shuffle.Claim) (revision uint64, err error) {
	if err := r.s.enter(ctx); err != nil {
		return 0, err
	}
	defer r.s.calls.Done()
	err = r.s.update(ctx, func(t *tx) error {
		old, _, err := t.held(h.Tenant)
		if err != nil {
			return err
		}
		if uint64(old.revision) != h.Revision {
			return fmt.Errorf("tenant %q: %w", h.Tenant, shuffle.ErrChanged)
		}
		if err := t.free(old); err != nil {
			return err
		}
		fresh := holding{tenant: []byte(h.Tenant), members: quoteAll(h.Members), attempt: h.Attempt, version: strconv.Quote(h.Version), claims: []byte{}}
		for _, claim := range claims {
			taken, err := t.c.affect(t.ctx, "INSERT INTO claims (claim, tenant) VALUES (?, ?) ON CONFLICT DO NOTHING", claim[:], fresh.tenant)
			if err != nil {
				return t.fault("write", err)
			}
			if taken == 0 {
				return fmt.Errorf("tenant %q: %w", h.Tenant, shuffle.ErrOverlap)
			}
			fresh.claims = append(fresh.claims, claim[:]...)
		}
		if fresh.revision, err = t.nextRevision(); err != nil {
			return err
		}
		revision = uint64(fresh.revision)
		return t.exec("INSERT OR REPLACE INTO holdings ("+holdingColumns+") VALUES (?, ?, ?, ?, ?, ?, ?)",
			fresh.tenant, fresh.members, fresh.attempt, fresh.version, fresh.revision, fresh.claims, fresh.checksum())
	})
	if err != nil {
		return 0, err
	}
	return revision, nil
}

// nextRevision uses up a revision.
func (t *tx) nextRevision() (last int64, err error) {
	if err := t.exec("UPDATE registry SET last = last + 1"); err != nil {
		return 0, err
	}
	err = t.one("SELECT last FROM registry", &last)
	return last, err
}

// free gives back the claims of a holding.
func (t *tx) free(h holding) error {
	for claim := range slices.Chunk(h.claims, len(shuffle.Claim{})) {
		if err := t.exec("DELETE FROM claims WHERE claim = ? AND tenant = ?", claim, h.tenant); err != nil {
			return err
		}
	}
	return nil
}

// Release implements [shuffle.RegistryStore].
func (r *Registry) Release(ctx context.Context, tenant string, at uint64) error {
	if err := r.s.enter(ctx); err != nil {
		return err
	}
	defer r.s.calls.Done()
	return r.s.update(ctx, func(t *tx) error {
		old, ok, err := t.held(tenant)
		switch {
		case err != nil:
			return err
		case !ok:
			return fmt.Errorf("tenant %q: %w", tenant, shuffle.ErrNoHand)
		case uint64(old.revision) != at:
			return fmt.Errorf("tenant %q: %w", tenant, shuffle.ErrChanged)
		}
		if err := t.free(old); err != nil {
			return err
		}
		return t.exec("DELETE FROM holdings WHERE tenant = ?", old.tenant)
	})
}

// errStopped ends a loop over holdings whose body has enough.
var errStopped = errors.New("stopped")

// Holdings implements [shuffle.RegistryStore].
func (r *Registry) Holdings(ctx context.Context) iter.Seq2[shuffle.Holding, error] {
	return func(yield func(shuffle.Holding, error) bool) {
		if err := r.s.enter(ctx); err != nil {
			yield(shuffle.Holding{}, err)
			return
		}
		defer r.s.calls.Done()
		err := r.s.view(ctx, func(t *tx) error {
			err := t.c.each(t.ctx, "SELECT "+holdingColumns+" FROM holdings ORDER BY tenant", nil, func(rows *sql.Rows) error {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				var h holding
				if err := rows.Scan(h.fields()...); err != nil {
					return err
				}
				decoded, err := h.decode()
				if err != nil {
					return err
				}
				if !yield(decoded, nil) {
					return errStopped
				}
				return nil
			})
			if errors.Is(err, errStopped) || ctx.Err() != nil {
				return err
			}
			return t.fault("read", err)
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(shuffle.Holding{}, err)
		}
	}
}

// Count implements [shuffle.RegistryStore].
func (r *Registry) Count(ctx context.Context) (n int, err error) {
	if err := r.s.enter(ctx); err != nil {
		return 0, err
	}
	defer r.s.calls.Done()
	err = r.s.view(ctx, func(t *tx) error { return t.one("SELECT count(*) FROM holdings", &n) })
	return n, err
}

// checkHoldings reads every holding and compares it with the claims.
func checkHoldings(ctx context.Context, c *conn) error {
	total := 0
	err := c.each(ctx, "SELECT "+holdingColumns+" FROM holdings", nil, func(rows *sql.Rows) error {
		var h holding
		if err := rows.Scan(h.fields()...); err != nil {
			return err
		}
		total += len(h.claims) / len(shuffle.Claim{})
		_, err := h.decode()
		return err
	})
	if err != nil {
		return err
	}
	// Each claim is within those of its holding, and there are as many.
	err = deny(ctx, c, []string{
		`SELECT 'tenant ' || quote(c.tenant) || ' has a claim that its holding lacks' FROM claims c
		LEFT JOIN holdings h ON h.tenant = c.tenant WHERE h.tenant IS NULL OR instr(h.claims, c.claim) = 0 LIMIT 1`,

		`SELECT 'a holding is newer than the newest revision' FROM holdings, registry WHERE revision > last LIMIT 1`,

		`SELECT 'the rules are gone' WHERE (SELECT count(*) FROM registry) <> 1`,
	})
	if err != nil {
		return err
	}
	var n int
	if _, err := c.row(ctx, "SELECT count(*) FROM claims", nil, &n); err != nil {
		return err
	}
	if n != total {
		return fmt.Errorf("%w: %d claims stand in the holdings, %d in their own table", errDamaged, total, n)
	}
	return nil
}
