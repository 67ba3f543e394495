package sqlitestore

import (
	"context"
	"fmt"

	"github.com/cellway/cellway"
)

// A format is one kind of file that this package keeps.
type format struct {
	name  string // what the file is called in messages
	app   int    // the application id in its header
	steps []string

	// alone says that one process has the file at a time.
	alone bool

	// tidy removes what an interrupted process may have left.
	tidy string

	// check looks for damage that SQLite can't see.
	check func(context.Context, *conn) error
}

// memory is the format of a [Store]. Its application id spells "Celw".
func memory() format {
	return format{name: "store", app: 0x43656c77, steps: steps(), alone: true, tidy: dropRests, check: checkRecords}
}

// steps returns what makes each version of the schema from the one before it.
// A step that was ever released never changes; a change is a new step.
func steps() []string {
	return []string{`
CREATE TABLE records (
	kind     TEXT    NOT NULL,
	id       TEXT    NOT NULL,
	revision INTEGER NOT NULL,
	body     TEXT    NOT NULL,  -- JSON
	terms    TEXT    NOT NULL,  -- JSON array of the index terms, sorted
	sum      INTEGER NOT NULL,  -- CRC-32C of kind, id, revision, body, terms
	PRIMARY KEY (kind, id)
) STRICT;

-- Which records carry an index term.
CREATE TABLE record_index (
	kind TEXT NOT NULL,
	term TEXT NOT NULL,
	id   TEXT NOT NULL,
	PRIMARY KEY (kind, term, id)
) STRICT, WITHOUT ROWID;

-- How many records carry an index term.
CREATE TABLE index_terms (
	kind    TEXT    NOT NULL,
	term    TEXT    NOT NULL,
	records INTEGER NOT NULL,
	PRIMARY KEY (kind, term)
) STRICT, WITHOUT ROWID;

-- How many records a kind has, and the highest revision of a deleted one: a
-- record that is created starts above it.
CREATE TABLE kinds (
	kind    TEXT    NOT NULL PRIMARY KEY,
	floor   INTEGER NOT NULL,
	records INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE logs (
	log    TEXT    NOT NULL,
	number INTEGER NOT NULL,  -- from 1, without gaps
	body   TEXT    NOT NULL,  -- JSON
	sum    INTEGER NOT NULL,  -- CRC-32C of log, number, body
	PRIMARY KEY (log, number)
) STRICT;

-- A blob is there when its row is here; chunks without one are rests of a
-- write that did not end.
CREATE TABLE blobs (
	digest TEXT    NOT NULL PRIMARY KEY,  -- SHA-256 of the content, in hexadecimal
	size   INTEGER NOT NULL,              -- in bytes
	put    INTEGER NOT NULL               -- when it was put last, in nanoseconds since 1970
) STRICT, WITHOUT ROWID;

CREATE TABLE blob_chunks (
	digest  TEXT    NOT NULL,
	part    INTEGER NOT NULL,  -- from 0
	content BLOB    NOT NULL,
	PRIMARY KEY (digest, part)
) STRICT;
`}
}

// version reads the application id and schema version of a file.
func version(ctx context.Context, c *conn) (app, schema int, err error) {
	if _, err = c.row(ctx, "PRAGMA application_id", nil, &app); err == nil {
		_, err = c.row(ctx, "PRAGMA user_version", nil, &schema)
	}
	return app, schema, err
}

// upgrade brings the schema up to the newest of steps, each step in a
// transaction of its own. A newer schema than that is refused and not touched.
// It returns the version found.
func (f format) upgrade(ctx context.Context, path string, c *conn) (from int, err error) {
	steps := f.steps
	app, from, err := version(ctx, c)
	if err != nil {
		return 0, fault(path, "open", err)
	}
	if app != f.app {
		return 0, fmt.Errorf("open store %s: this SQLite file has application id %#x, a %s of Cellway has %#x; check the path: %w",
			path, app, f.name, f.app, cellway.ErrInvalid)
	}
	if from > len(steps) {
		return 0, fmt.Errorf("open store %s: it has schema version %d, this program knows up to %d; use the release that wrote it, or a later one: %w",
			path, from, len(steps), cellway.ErrInvalid)
	}
	for v := from; v < len(steps); v++ {
		if err := step(ctx, c, steps[v], v+1); err != nil {
			return 0, fault(path, fmt.Sprintf("upgrade to schema version %d the", v+1), err)
		}
	}
	return from, nil
}

func step(ctx context.Context, c *conn, sql string, to int) error {
	_, err := c.c.ExecContext(ctx, fmt.Sprintf("BEGIN IMMEDIATE; %s; PRAGMA user_version = %d; COMMIT", sql, to))
	if err != nil {
		_, _ = c.c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") // the first error says it all
	}
	return err
}
