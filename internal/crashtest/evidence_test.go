package crashtest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/internal/store/sqlitestore"
	"github.com/cellway/cellway/routemap"
)

// Evidence is the control plane's file as it was left, read without the code
// that wrote it: records, journal, changes and versions.
type evidence struct {
	head     headRecord
	records  map[string]store.Record // by subject, as the journal names it
	usage    map[cellway.CellID]usageRecord
	journal  []journalLine
	changes  []changeLine // changes[0] has the number 1
	versions []versionLine
	newest   cellway.Version
	blobs    map[routemap.Digest][]byte
}

type headRecord struct {
	Seq       uint64        `json:"seq"`
	NextEpoch cellway.Epoch `json:"next_epoch"`
}

type usageRecord struct {
	Tenants  int                `json:"tenants"`
	Reserved map[string]float64 `json:"reserved"`
}

type tenantRecord struct {
	ID      cellway.TenantID   `json:"id"`
	Weights map[string]float64 `json:"weights"`
	Cell    cellway.CellID     `json:"cell"`
	Deleted bool               `json:"deleted"`
}

type journalLine struct {
	number  uint64
	Act     string          `json:"act"`
	Subject string          `json:"subject"`
	Reason  string          `json:"reason"`
	Before  json.RawMessage `json:"before"`
	After   json.RawMessage `json:"after"`
	Change  uint64          `json:"change"`
}

type changeLine struct {
	Act     string              `json:"act"`
	Content *routemap.Content   `json:"content"`
	Changes *routemap.ChangeSet `json:"changes"`
}

type versionLine struct {
	At       time.Time       `json:"at"`
	Seq      uint64          `json:"seq"`
	Encoded  []byte          `json:"manifest"`
	Base     routemap.Digest `json:"base"`
	Overlay  routemap.Digest `json:"overlay"`
	manifest *routemap.Manifest
}

// opOf returns the number of the write that a line of the journal is of, or 0.
func opOf(reason string, after json.RawMessage) uint64 {
	number := func(s string) uint64 {
		text, ok := strings.CutPrefix(s, "write ")
		n, err := strconv.ParseUint(text, 10, 64)
		if !ok || err != nil {
			return 0
		}
		return n
	}
	if n := number(reason); n > 0 || len(after) == 0 {
		return n
	}
	var r struct {
		Reason  string             `json:"reason"`
		Weights map[string]float64 `json:"weights"`
		Tags    map[string]string  `json:"tags"`
	}
	if json.Unmarshal(after, &r) != nil {
		return 0
	}
	if n := number(r.Reason); n > 0 {
		return n
	}
	if n, err := strconv.ParseUint(r.Tags["op"], 10, 64); err == nil {
		return n
	}
	return uint64(r.Weights["op"])
}

// readEvidence opens the file, which looks for damage, and reads all of it.
func readEvidence(t *testing.T, path string) *evidence {
	t.Helper()
	ctx := t.Context()
	st, err := sqlitestore.Open(ctx, path, sqlitestore.Options{})
	must(t, err)
	defer func() { must(t, st.Close()) }()
	e := &evidence{records: map[string]store.Record{}, usage: map[cellway.CellID]usageRecord{}, blobs: map[routemap.Digest][]byte{}}
	must(t, st.View(ctx, e.read))
	for i := range e.versions {
		v := &e.versions[i]
		v.manifest, err = routemap.DecodeManifest(v.Encoded)
		must(t, err)
		for _, d := range []routemap.Digest{v.Base, v.Overlay} {
			if e.blobs[d] == nil {
				e.blobs[d], err = st.Blob(ctx, d)
				must(t, err)
			}
		}
	}
	// They stand there with the newest first.
	slices.SortFunc(e.versions, func(a, b versionLine) int { return cmp.Compare(a.manifest.Version, b.manifest.Version) })
	return e
}

func (e *evidence) read(tx store.Tx) error {
	for _, kind := range []string{"tenant", "override", "cell"} {
		if err := each(tx, kind, func(r store.Record) error { e.records[kind+"/"+r.ID] = r; return nil }); err != nil {
			return err
		}
	}
	head, err := tx.Get("head", "fleet")
	if err != nil {
		return err
	}
	var pointer struct {
		Version cellway.Version `json:"version"`
	}
	newest, err := tx.Get("pointer", "newest")
	if err != nil {
		return err
	}
	return errors.Join(
		json.Unmarshal(head.Body, &e.head),
		json.Unmarshal(newest.Body, &pointer),
		each(tx, "usage", func(r store.Record) error {
			var u usageRecord
			err := json.Unmarshal(r.Body, &u)
			e.usage[cellway.CellID(r.ID)] = u
			return err
		}),
		each(tx, "version", func(r store.Record) error {
			var v versionLine
			err := json.Unmarshal(r.Body, &v)
			e.versions = append(e.versions, v)
			return err
		}),
		eachLine(tx, "journal", func(n uint64, l journalLine) {
			l.number = n
			e.journal = append(e.journal, l)
		}),
		eachLine(tx, "changes", func(_ uint64, l changeLine) { e.changes = append(e.changes, l) }),
		func() error { e.newest = pointer.Version; return nil }(),
	)
}

func each(tx store.Tx, kind string, f func(store.Record) error) error {
	for after := ""; ; {
		all, err := tx.List(kind, after, 500)
		if err != nil || len(all) == 0 {
			return err
		}
		for _, r := range all {
			if err := f(r); err != nil {
				return fmt.Errorf("%s %s: %w", kind, r.ID, err)
			}
			after = r.ID
		}
	}
}

func eachLine[T any](tx store.Tx, log string, f func(uint64, T)) error {
	for after := uint64(0); ; {
		lines, err := tx.Log(log, after, 500)
		if err != nil || len(lines) == 0 {
			return err
		}
		for _, l := range lines {
			var v T
			if err := json.Unmarshal(l.Body, &v); err != nil {
				return fmt.Errorf("%s %d: %w", log, l.Number, err)
			}
			if l.Number != after+1 {
				return fmt.Errorf("%s: %d follows %d", log, l.Number, after)
			}
			f(l.Number, v)
			after = l.Number
		}
	}
}

// replay applies one line of the log of changes.
func replay(m *routemap.Map, c changeLine) (*routemap.Map, error) {
	switch {
	case c.Content != nil:
		return routemap.Build(*c.Content, 1)
	case c.Changes == nil:
		return m, nil
	}
	out, err := m.Apply(*c.Changes)
	if errors.Is(err, routemap.ErrOverlayFull) {
		return m.ApplyToBase(*c.Changes)
	}
	return out, err
}

// open verifies a published version and returns its map.
func (e *evidence) open(v versionLine, ring routemap.Keyring) (*routemap.Map, error) {
	whole := routemap.Version{Manifest: v.manifest, Base: e.blobs[v.Base], Overlay: e.blobs[v.Overlay]}
	return whole.Open(ring, false)
}

// contentDigest names what a map says, however base and overlay share it.
func contentDigest(m *routemap.Map) (d [sha256.Size]byte, err error) {
	text, err := json.Marshal(m.Content())
	return sha256.Sum256(text), err
}

// sameJSON reports whether two documents are the same but for white space.
func sameJSON(a, b []byte) bool {
	var x, y bytes.Buffer
	return len(a) == 0 && len(b) == 0 || json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// settle waits until every change is published and every router serves it.
func (f *fleet) settle(ctx context.Context, w *watcher, last string) error {
	ctx, cancel := context.WithTimeout(ctx, settleIn)
	defer cancel()
	var err error
	for ; ctx.Err() == nil; pause(ctx, watchEvery) {
		c, asked := f.api.Change(ctx, last)
		if err = asked; err == nil && c.Version > 0 && w.reached(c.Version) {
			return nil
		}
	}
	return fmt.Errorf("the last change, %s, is not at every router within %v (%w)", last, settleIn, errors.Join(err, ctx.Err()))
}
