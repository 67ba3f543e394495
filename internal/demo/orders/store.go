package orders

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/cellway/cellway"

	"modernc.org/sqlite" // the driver registers itself under "sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// An Order is one row of the order book.
type Order struct {
	ID       string           `json:"id"`
	Tenant   cellway.TenantID `json:"tenant"`
	Item     string           `json:"item"`
	Quantity int              `json:"quantity"`
	Created  time.Time        `json:"created"` // in UTC, to the millisecond
}

// A Store is one cell's order book in one SQLite file. It has one writer; any
// number of readers go on beside it. A write that was acknowledged survives
// the death of the process, not that of the machine: nothing waits for the
// disk, which the cells of a demo share with everything else on the machine.
type Store struct {
	write *sql.DB
	read  *sql.DB
}

const schema = `
CREATE TABLE IF NOT EXISTS orders (
	tenant   TEXT    NOT NULL,
	id       TEXT    NOT NULL,
	item     TEXT    NOT NULL,
	quantity INTEGER NOT NULL,
	created  INTEGER NOT NULL,
	request  TEXT,
	PRIMARY KEY (tenant, id)
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS orders_request ON orders (tenant, request) WHERE request IS NOT NULL;`

// OpenStore opens the order book at path and creates it if it does not exist.
// Close it after use.
func OpenStore(ctx context.Context, path string) (*Store, error) {
	q := url.Values{
		"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(OFF)"},
		"_txlock": {"immediate"},
	}
	dsn := (&url.URL{Scheme: "file", Opaque: url.PathEscape(path), RawQuery: q.Encode()}).String()
	write, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("open order book %s: %w", path, err)
	}
	write.SetMaxOpenConns(1)
	if err := prepare(ctx, write); err != nil {
		write.Close()
		return nil, fmt.Errorf("open order book %s: %w", path, err)
	}
	read, err := sql.Open("sqlite", dsn)
	if err != nil {
		write.Close()
		return nil, fmt.Errorf("open order book %s: %w", path, err)
	}
	read.SetMaxOpenConns(4)
	read.SetMaxIdleConns(4)
	return &Store{write: write, read: read}, nil
}

// openWithin is how long a book may be locked by others who open it.
const openWithin = 5 * time.Second

// prepare brings a new file into shape. SQLite does not wait for a lock where it
// makes a file one with a log beside it, however long it may wait elsewhere, and
// all workers of a cell open its book at once.
func prepare(ctx context.Context, db *sql.DB) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for begun := time.Now(); ; {
		_, err := db.ExecContext(ctx, schema)
		locked, ok := errors.AsType[*sqlite.Error](err)
		if !ok || locked.Code()&0xff != sqlite3.SQLITE_BUSY || time.Since(begun) >= openWithin {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

// Close closes the file.
func (s *Store) Close() error { return errors.Join(s.read.Close(), s.write.Close()) }

// Add writes a new order and returns it with its id and time of creation. If
// request is not empty and the tenant has used it before, nothing is written
// and the earlier order is returned, so that a request whose answer was lost
// can be sent again; it is an [cellway.ErrInvalid] if that order was another.
func (s *Store) Add(ctx context.Context, o Order, request string) (Order, error) {
	o.Created = o.Created.UTC().Truncate(time.Millisecond)
	o.ID = newID(o.Created)
	res, err := s.write.ExecContext(ctx,
		`INSERT INTO orders (tenant, id, item, quantity, created, request) VALUES (?, ?, ?, ?, ?, ?)
		 ON CONFLICT (tenant, request) WHERE request IS NOT NULL DO NOTHING`,
		string(o.Tenant), o.ID, o.Item, o.Quantity, o.Created.UnixMilli(), sql.NullString{String: request, Valid: request != ""})
	if err != nil {
		return Order{}, fmt.Errorf("add order of tenant %s: %w", o.Tenant, err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 1 {
		return o, err
	}
	earlier, err := scan(s.read.QueryRowContext(ctx, selectOrder+` WHERE tenant = ? AND request = ?`, string(o.Tenant), request))
	if err != nil {
		return Order{}, fmt.Errorf("add order of tenant %s: read the earlier one: %w", o.Tenant, err)
	}
	if earlier.Item != o.Item || earlier.Quantity != o.Quantity {
		return Order{}, fmt.Errorf("add order of tenant %s: idempotency key %q belongs to another order: %w", o.Tenant, request, cellway.ErrInvalid)
	}
	return earlier, nil
}

// Order returns one order of a tenant, or an [cellway.ErrNotFound].
func (s *Store) Order(ctx context.Context, tenant cellway.TenantID, id string) (Order, error) {
	o, err := scan(s.read.QueryRowContext(ctx, selectOrder+` WHERE tenant = ? AND id = ?`, string(tenant), id))
	if errors.Is(err, sql.ErrNoRows) {
		return Order{}, fmt.Errorf("order %q of tenant %s: %w", id, tenant, cellway.ErrNotFound)
	}
	if err != nil {
		return Order{}, fmt.Errorf("read order %q of tenant %s: %w", id, tenant, err)
	}
	return o, nil
}

// Orders returns at most limit orders of a tenant whose ids follow after, in
// the order of their ids, which is that of their creation.
func (s *Store) Orders(ctx context.Context, tenant cellway.TenantID, after string, limit int) ([]Order, error) {
	rows, err := s.read.QueryContext(ctx, selectOrder+` WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?`, string(tenant), after, limit)
	if err != nil {
		return nil, fmt.Errorf("list orders of tenant %s: %w", tenant, err)
	}
	defer rows.Close()
	list := []Order{}
	for rows.Next() {
		o, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("list orders of tenant %s: %w", tenant, err)
		}
		list = append(list, o)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list orders of tenant %s: %w", tenant, err)
	}
	return list, nil
}

// Forget removes a tenant's orders that were created before t.
func (s *Store) Forget(ctx context.Context, tenant cellway.TenantID, t time.Time) error {
	_, err := s.write.ExecContext(ctx, `DELETE FROM orders WHERE tenant = ? AND created < ?`, string(tenant), t.UnixMilli())
	if err != nil {
		return fmt.Errorf("forget orders of tenant %s: %w", tenant, err)
	}
	return nil
}

const selectOrder = `SELECT tenant, id, item, quantity, created FROM orders`

func scan(row interface{ Scan(...any) error }) (Order, error) {
	var o Order
	var tenant string
	var created int64
	if err := row.Scan(&tenant, &o.ID, &o.Item, &o.Quantity, &created); err != nil {
		return Order{}, err
	}
	o.Tenant, o.Created = cellway.TenantID(tenant), time.UnixMilli(created).UTC()
	return o, nil
}

// newID returns an id that sorts by time and that no other cell has given out.
func newID(t time.Time) string { return fmt.Sprintf("%012x-%.10s", t.UnixMilli(), rand.Text()) }
