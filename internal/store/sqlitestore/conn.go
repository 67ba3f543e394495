package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"net/url"

	_ "modernc.org/sqlite" // the driver registers itself under "sqlite"
)

// A conn is one connection with the statements that it has prepared. It
// belongs to one goroutine at a time.
type conn struct {
	c     *sql.Conn
	stmts map[string]*sql.Stmt
}

func connect(ctx context.Context, db *sql.DB) (*conn, error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{c: c, stmts: map[string]*sql.Stmt{}}, nil
}

func (c *conn) close() error {
	for _, st := range c.stmts {
		st.Close()
	}
	return c.c.Close()
}

func (c *conn) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	if st, ok := c.stmts[query]; ok {
		return st, nil
	}
	st, err := c.c.PrepareContext(ctx, query)
	if err == nil {
		c.stmts[query] = st
	}
	return st, err
}

// exec runs a statement that returns no rows.
func (c *conn) exec(ctx context.Context, query string, args ...any) error {
	_, err := c.affect(ctx, query, args...)
	return err
}

// affect runs a statement and returns how many rows it changed.
func (c *conn) affect(ctx context.Context, query string, args ...any) (int64, error) {
	st, err := c.prepared(ctx, query)
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// row reads the first row into dest and reports whether there was one.
func (c *conn) row(ctx context.Context, query string, args []any, dest ...any) (bool, error) {
	st, err := c.prepared(ctx, query)
	if err != nil {
		return false, err
	}
	err = st.QueryRowContext(ctx, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// each calls scan for every row.
func (c *conn) each(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	st, err := c.prepared(ctx, query)
	if err != nil {
		return err
	}
	rows, err := st.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// texts returns the one column of every row.
func (c *conn) texts(ctx context.Context, query string, args ...any) (all []string, err error) {
	err = c.each(ctx, query, args, func(rows *sql.Rows) error {
		var one string
		err := rows.Scan(&one)
		all = append(all, one)
		return err
	})
	return all, err
}

// chunks calls take for each part of a blob, in order. The bytes are valid during the
// call.
func (c *conn) chunks(ctx context.Context, digest string, take func([]byte)) error {
	return c.each(ctx, "SELECT content FROM blob_chunks WHERE digest = ? ORDER BY part", []any{digest}, func(rows *sql.Rows) error {
		var chunk sql.RawBytes
		if err := rows.Scan(&chunk); err != nil {
			return err
		}
		take(chunk)
		return nil
	})
}

// open returns a handle whose connections have the given pragmas. It creates
// no file.
func open(file string, pragmas ...string) (*sql.DB, error) {
	q := url.Values{
		"mode":       {"rw"},
		"_defensive": {"1"},
		"_dqs":       {"0"},
		"_error_rc":  {"1"},
		"_pragma":    append([]string{"busy_timeout(5000)", "trusted_schema(0)", "cell_size_check(1)"}, pragmas...),
	}
	dsn := url.URL{Scheme: "file", Opaque: url.PathEscape(file), RawQuery: q.Encode()}
	return sql.Open("sqlite", dsn.String())
}

// forWriting returns the pragmas of a connection that writes: a commit is
// synced, to the medium itself where the system offers that, and the write-ahead
// log is cut back to 64 MiB after a large update.
func forWriting() []string {
	return []string{"journal_mode(WAL)", "synchronous(FULL)", "fullfsync(1)", "checkpoint_fullfsync(1)", "journal_size_limit(67108864)"}
}

// forReading is the pragma of a connection that reads.
const forReading = "query_only(1)"
