package router

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// The fields that the router sets on a request for a cell.
const (
	CellHeader   = "X-Cell-Id"    // the cell that the request was sent to
	EpochHeader  = "X-Cell-Epoch" // the epoch of the key's owner in the router's map
	KeyHeader    = "X-Cell-Key"   // the key, aliases resolved
	TenantHeader = "X-Tenant-Id"  // the key's tenant
)

// ErrUnusable is wrapped by the errors of [NewDecider] and [Router.Swap] for a
// map that can't be used for requests, though its bytes may be in order.
var ErrUnusable = errors.New("map not usable")

// A Decider is a map made ready for requests. It is immutable and safe for
// concurrent use.
type Decider struct {
	m          *routemap.Map
	settings   routemap.Settings
	extractors []extractor
	looked     string        // where the extractors look, for people
	headers    []string      // those that extractors read, in canonical form
	through    *cellway.Cell // where requests without a usable key go; nil: nowhere
}

// A Decision is what a router does with a request, and why.
type Decision struct {
	Found Found
	Route routemap.Route // zero without a key
	Code  cellway.Code   // "" if the request goes to Cell; otherwise the answer
	Cell  *cellway.Cell  // where it goes, shared with the map: not to be changed; nil if it is refused
	Hold  *cellway.Hold  // of a key in mid-move, even if the request goes through

	// PassThrough says that the request goes to the fleet's only cell although
	// it has no usable key. Why not is in Found and Route.
	PassThrough bool
}

// NewDecider makes m ready. It tries m out, so that a map that makes the
// router panic is an error, and is no other request's concern. The error wraps
// [ErrUnusable].
func NewDecider(m *routemap.Map) (_ *Decider, err error) {
	if m == nil {
		return nil, fmt.Errorf("there is no map: %w", ErrUnusable)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the map panics: %v: %w", p, ErrUnusable)
		}
	}()
	d := &Decider{m: m, settings: m.Settings()}
	if d.extractors, err = compile(d.settings.Extractors); err != nil {
		return nil, fmt.Errorf("map %v: %w: %w", m.Version(), err, ErrUnusable)
	}
	d.looked = describe(d.settings.Extractors)
	for _, x := range d.extractors {
		switch {
		case x.kind == cellway.FromHeader:
			d.headers = append(d.headers, x.name)
		case x.kind == cellway.FromJWT && x.where == cellway.FromHeader && x.source != "":
			d.headers = append(d.headers, x.source)
		}
	}
	if d.settings.PassThrough {
		for _, c := range m.Cells() {
			if c.State == cellway.CellActive || c.State == cellway.CellCordoned {
				d.through = c
			}
		}
	}
	d.tryOut()
	return d, nil
}

// tryOut looks a few keys up by every way there is. It is here for its panics.
func (d *Decider) tryOut() {
	for i := range 64 {
		for _, key := range []string{"tenant-%d", "tenant-%d/part"} {
			d.Explain(cellway.Key(fmt.Sprintf(key, i)))
		}
	}
	for _, x := range d.settings.Extractors {
		if x.Key != "" {
			d.Explain(x.Key)
		}
	}
	d.Decide(&Head{Method: "GET", Host: "a.example", Path: "/a/b", Query: "a=b", Fields: noFields{}})
}

type noFields struct{}

func (noFields) Values(string) []string { return nil }

// Map returns the map that d decides by.
func (d *Decider) Map() *routemap.Map { return d.m }

// Decide says what happens to a request. It reads no clock and keeps nothing;
// a key from a header costs no allocation.
func (d *Decider) Decide(h *Head) (out Decision) {
	out.Found = d.extract(h)
	if out.Code = out.Found.Code; out.Code == "" {
		out.Route = d.m.Lookup(out.Found.Key)
		out.Code, out.Hold = d.m.Admit(&out.Route)
	}
	switch out.Code {
	case "":
		out.Cell = out.Route.Cell
	case cellway.KeyHeld:
		// The source still serves what changes nothing.
		if h.isSafe() && !h.Upgrade && !h.isGRPC() {
			out.Code, out.Cell = "", out.Route.Cell
		}
	case cellway.KeyMissing, cellway.KeyConflict, cellway.KeyInvalid, cellway.KeyUnknown:
		if d.through == nil {
			break
		}
		if out.PassThrough = true; d.through.Admit == 0 {
			out.Code = cellway.CellDrained
		} else {
			out.Code, out.Cell = "", d.through
		}
	}
	return out
}

// owner returns the cell that the decision is about: where the request goes,
// or the one that does not take it. It is nil if there is none.
func (out *Decision) owner(d *Decider) *cellway.Cell {
	switch {
	case out.Cell != nil:
		return out.Cell
	case out.PassThrough:
		return d.through
	}
	return out.Route.Cell
}

// keeps reports whether requests for key that went to cell may go on there;
// those that went there without a usable key, if key is "". A hold ends none:
// the source serves until the key has another owner.
func (d *Decider) keeps(key cellway.Key, cell cellway.CellID) bool {
	if key == "" {
		return d.through != nil && d.through.ID == cell && d.through.Admit > 0
	}
	r := d.m.Lookup(key)
	code, _ := d.m.Admit(&r)
	return r.Cell != nil && r.Cell.ID == cell && (code == "" || code == cellway.KeyHeld)
}

// describe lists where extractors look, for people.
func describe(all []cellway.Extractor) string {
	var b strings.Builder
	for i, x := range all {
		if i > 0 {
			b.WriteString(", then ")
		}
		b.WriteString(describeOne(x))
	}
	if b.Len() == 0 {
		return "nowhere: the map has no extractors"
	}
	return b.String()
}

func describeOne(x cellway.Extractor) string {
	switch x.Kind {
	case cellway.FromHost, cellway.FromPath:
		return fmt.Sprintf("%s %s", x.Kind, x.Pattern)
	case cellway.FromFixed:
		return fmt.Sprintf("path %s (always %s)", x.Pattern, x.Key)
	case cellway.FromJWT:
		if x.Source == "" {
			return "claim " + x.Name + " of the bearer token"
		}
		return "claim " + x.Name + " of the token in " + x.Source
	case cellway.FromQuery:
		return "query parameter " + x.Name
	default:
		return fmt.Sprintf("%s %s", x.Kind, x.Name)
	}
}
