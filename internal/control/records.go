package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/plaintext"
	"github.com/cellway/cellway/internal/store"
	"github.com/cellway/cellway/routemap"
)

// The kinds of record.
const (
	kindFleet    = "fleet"
	kindCell     = "cell"
	kindTenant   = "tenant"
	kindOverride = "override"
	kindAlias    = "alias"
	kindRouter   = "router"
	kindToken    = "token"
	kindVersion  = "version"
	kindHead     = "head"
	kindWorkers  = "workers"
)

// The only id of a kind that has one record.
const only = "fleet"

// The logs.
const (
	logChanges = "changes"
	logJournal = "journal"
)

// Vector counts in named dimensions: "tenants", "rps", "storage" or any other.
type Vector map[string]float64

// A Fleet is the record of the fleet-wide settings.
type Fleet struct {
	Revision cellway.Revision `json:"-"`
	routemap.Settings
	CreatedAt time.Time `json:"created_at"`
}

// A Cell is the record of a cell: what the map says of it, and what placement
// needs to know.
type Cell struct {
	Revision cellway.Revision `json:"-"`
	cellway.Cell
	Cordoned  bool      `json:"cordoned,omitempty"` // by a person, apart from a drain
	Capacity  Vector    `json:"capacity,omitempty"` // limits; a dimension that is missing has none
	Headroom  float64   `json:"headroom,omitempty"` // percent of each limit that placement leaves free
	Tiers     []string  `json:"tiers,omitempty"`    // tiers it takes; empty: all
	CreatedAt time.Time `json:"created_at"`
}

// A Tenant is the record of a registered tenant.
type Tenant struct {
	Revision  cellway.Revision `json:"-"`
	ID        cellway.TenantID `json:"id"`
	Tier      string           `json:"tier,omitempty"`
	Weights   Vector           `json:"weights,omitempty"`   // what it takes of a cell; one of "tenants" always
	Residency string           `json:"residency,omitempty"` // the region it must stay in
	Dedicated bool             `json:"dedicated,omitempty"` // wants a cell of its own
	Cell      cellway.CellID   `json:"cell"`                // its home: where its data is
	Policy    string           `json:"policy,omitempty"`    // how it was placed: see PlacementPolicies
	Request   string           `json:"request,omitempty"`   // the idempotency key that created it
	Asked     string           `json:"asked,omitempty"`     // digest of what it was created with, if by such a key
	Placed    uint64           `json:"placed,omitempty"`    // the change that put it into the map; 0 if its bucket was enough
	Deleted   bool             `json:"deleted,omitempty"`
	CreatedAt time.Time        `json:"created_at"`
}

// An Override is the record of an entry that a person asked for.
type Override struct {
	Revision cellway.Revision `json:"-"`
	cellway.Entry
	Data      cellway.CellID `json:"data,omitempty"` // where the key's data is; the same as Cell, unless that is empty
	CreatedAt time.Time      `json:"created_at"`
}

// An Alias is the record of another name for a tenant.
type Alias struct {
	Revision cellway.Revision `json:"-"`
	cellway.Alias
	Retired   bool      `json:"retired,omitempty"` // a tombstone keeps the name
	CreatedAt time.Time `json:"created_at"`
}

// Read and written as JSON documents.

func decode[T any](r store.Record, set func(*T, cellway.Revision)) (T, error) {
	var v T
	if err := json.Unmarshal(r.Body, &v); err != nil {
		return v, fmt.Errorf("%s record %s: %w", r.Kind, r.ID, err)
	}
	set(&v, r.Revision)
	return v, nil
}

func get[T any](tx store.Tx, kind, id string, set func(*T, cellway.Revision)) (T, error) {
	r, err := tx.Get(kind, id)
	if err != nil {
		var zero T
		switch missing := errors.Is(err, cellway.ErrNotFound); {
		case missing && kind == kindFleet:
			return zero, fmt.Errorf("the fleet has no settings yet; create it first: cellway fleet create NAME: %w", cellway.ErrNotFound)
		case missing:
			return zero, fmt.Errorf("%s %s: %w", kind, id, cellway.ErrNotFound)
		}
		return zero, fmt.Errorf("read %s %s: %w", kind, id, err)
	}
	return decode(r, set)
}

func getFleet(tx store.Tx) (Fleet, error) {
	return get(tx, kindFleet, only, func(f *Fleet, r cellway.Revision) { f.Revision = r })
}

func getCell(tx store.Tx, id cellway.CellID) (Cell, error) {
	return get(tx, kindCell, string(id), func(c *Cell, r cellway.Revision) { c.Revision = r })
}

func getTenant(tx store.Tx, id cellway.TenantID) (Tenant, error) {
	return get(tx, kindTenant, string(id), func(t *Tenant, r cellway.Revision) { t.Revision = r })
}

func getOverride(tx store.Tx, key cellway.Key) (Override, error) {
	return get(tx, kindOverride, string(key), func(o *Override, r cellway.Revision) { o.Revision = r })
}

func getAlias(tx store.Tx, name cellway.TenantID) (Alias, error) {
	return get(tx, kindAlias, string(name), func(a *Alias, r cellway.Revision) { a.Revision = r })
}

// alike reports whether two records of one kind would be stored as the same.
func alike(a, b any) bool {
	x, err := json.Marshal(a)
	if err != nil {
		return false
	}
	y, err := json.Marshal(b)
	return err == nil && bytes.Equal(x, y)
}

// put writes a record and returns its new revision.
func put(tx store.Tx, kind, id string, at cellway.Revision, v any, index ...string) (cellway.Revision, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return 0, fmt.Errorf("%s record %s: %w", kind, id, err)
	}
	rev, err := tx.Put(store.Record{Kind: kind, ID: id, Revision: at, Body: body, Index: index})
	switch conflict := errors.Is(err, cellway.ErrConflict); {
	case conflict && kind == kindFleet:
		return 0, fmt.Errorf("the fleet's settings are not at revision %d: %w", at, cellway.ErrConflict)
	case conflict:
		return 0, err // which names record and revisions
	case err != nil:
		return 0, fmt.Errorf("write %s %s: %w", kind, id, err)
	}
	return rev, nil
}

// Bounds of what a record may name.
const (
	maxName       = 128 // bytes
	maxDimensions = 32
	maxAmount     = 1e15
	minAmount     = 1e-6 // smaller ones would count for nothing
)

// validName allows what can stand in an index and on one line.
func validName(what, s string) error {
	if err := plaintext.CheckName(what, s); err != nil {
		return err
	}
	if s == "" {
		return fmt.Errorf("%s %q must be 1 to %d bytes of plain text: %w", what, s, maxName, cellway.ErrInvalid)
	}
	return validText(what, s, maxName)
}

// validText allows what can stand on one line of a terminal; nothing, too.
func validText(what, s string, most int) error {
	odd := func(r rune) bool {
		return r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError || r == '\u2028' || r == '\u2029'
	}
	if len(s) > most || strings.ContainsFunc(s, odd) {
		return fmt.Errorf("%s %.40q must be at most %d bytes of plain text on one line: %w", what, s, most, cellway.ErrInvalid)
	}
	return plaintext.Check(what, s)
}

// validVector allows amounts from 0 to a bound, in a few dimensions.
func validVector(what string, v Vector) error {
	if len(v) > maxDimensions {
		return fmt.Errorf("%s has %d dimensions, the most is %d: %w", what, len(v), maxDimensions, cellway.ErrInvalid)
	}
	for dim, amount := range v {
		if err := validName(what, dim); err != nil {
			return err
		}
		if !(amount >= 0) || amount > maxAmount || amount > 0 && amount < minAmount {
			return fmt.Errorf("%s %q is %v; give 0 or a number from %g to %g: %w", what, dim, amount, float64(minAmount), float64(maxAmount), cellway.ErrInvalid)
		}
	}
	return nil
}

// unsigned returns v with 0 for what is -0, which is the same amount and another
// text.
func (v Vector) unsigned() Vector {
	v = maps.Clone(v)
	for dim, amount := range v {
		v[dim] = unsigned(amount)
	}
	return v
}

func unsigned(amount float64) float64 {
	if amount == 0 {
		return 0
	}
	return amount
}

// A Page is a stretch of a list. Next is the id to go on after, "" at the end.
type Page[T any] struct {
	Items []T
	Next  string
}

// pageLimit clamps what a caller asks for.
func pageLimit(limit int) int {
	switch {
	case limit <= 0:
		return 100
	case limit > 1000:
		return 1000
	}
	return limit
}

func page[T any](tx store.Tx, kind, index, after string, limit int, set func(*T, cellway.Revision)) (Page[T], error) {
	limit = pageLimit(limit)
	var recs []store.Record
	var err error
	if index == "" {
		recs, err = tx.List(kind, after, limit+1)
	} else {
		recs, err = tx.ListIndex(kind, index, after, limit+1)
	}
	var p Page[T]
	if err != nil {
		return p, err
	}
	if len(recs) > limit {
		recs = recs[:limit]
		p.Next = recs[limit-1].ID
	}
	for _, r := range recs {
		v, err := decode(r, set)
		if err != nil {
			return p, err
		}
		p.Items = append(p.Items, v)
	}
	return p, nil
}
