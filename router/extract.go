package router

import (
	"fmt"
	"net/textproto"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// A Found is what the extractors made of a request: a key, or the reason why
// there is none.
type Found struct {
	Key  cellway.Key
	By   int          // the extractor that found or refused the key, counted from 0; -1 if none did
	And  int          // the extractor that disagreed with it; -1 if none did
	Code cellway.Code // "", key_missing, key_conflict or key_invalid
	Why  string       // a constant phrase that goes with Code
}

// A finding is what one extractor made of a request. With neither a key nor a
// code, it does not match.
type finding struct {
	key  cellway.Key
	code cellway.Code
	why  string
}

func conflict(why string) finding { return finding{code: cellway.KeyConflict, why: why} }
func invalid(why string) finding  { return finding{code: cellway.KeyInvalid, why: why} }

// whole makes a finding of a value that may be a whole key.
func whole(value string) finding {
	if key := cellway.Key(value); key.Valid() {
		return finding{key: key}
	}
	return invalid("the value is not a key")
}

// An extractor is a cellway.Extractor made ready.
type extractor struct {
	kind    cellway.ExtractorKind
	agree   bool
	name    string      // header, parameter, cookie or claim
	pattern pattern     // host, path, fixed
	key     cellway.Key // fixed
	where   cellway.ExtractorKind
	source  string // jwt: the header or cookie that holds the token; "" for the bearer token
}

// compile makes extractors ready. They were validated when the map was made;
// one that is not valid is an error all the same.
func compile(all []cellway.Extractor) ([]extractor, error) {
	out := make([]extractor, 0, len(all))
	for i, x := range all {
		if err := x.Validate(); err != nil {
			return nil, fmt.Errorf("extractor %d: %w", i+1, err)
		}
		e := extractor{kind: x.Kind, agree: x.MustAgree, name: x.Name, key: x.Key}
		switch x.Kind {
		case cellway.FromHeader:
			e.name = textproto.CanonicalMIMEHeaderKey(x.Name)
		case cellway.FromHost:
			e.pattern = hostPattern(x.Pattern)
		case cellway.FromPath, cellway.FromFixed:
			e.pattern = pathPattern(x.Pattern)
		case cellway.FromQuery, cellway.FromCookie:
		case cellway.FromJWT:
			where, name, _ := strings.Cut(x.Source, ":")
			e.where, e.source = cellway.FromHeader, textproto.CanonicalMIMEHeaderKey(name)
			if where == "cookie" {
				e.where, e.source = cellway.FromCookie, name
			}
		default:
			return nil, fmt.Errorf("extractor %d: this router can't extract by %s: update it: %w", i+1, x.Kind, cellway.ErrInvalid)
		}
		out = append(out, e)
	}
	return out, nil
}

func (x *extractor) find(h *Head) finding {
	switch x.kind {
	case cellway.FromHeader:
		return fromHeader(h, x.name)
	case cellway.FromHost:
		return x.pattern.host(h.Host)
	case cellway.FromPath:
		return x.pattern.path(h.Path, "")
	case cellway.FromQuery:
		return fromQuery(h.Query, x.name)
	case cellway.FromCookie:
		return fromCookie(h.Fields.Values("Cookie"), x.name)
	case cellway.FromJWT:
		return x.fromToken(h)
	default:
		return x.pattern.path(h.Path, x.key)
	}
}

func fromHeader(h *Head, name string) finding {
	switch v := h.Fields.Values(name); {
	case len(v) == 0:
		return finding{}
	case len(v) > 1 || strings.IndexByte(v[0], ',') >= 0:
		return conflict("the header has two values")
	default:
		return whole(v[0])
	}
}

// extract runs the extractors in their order. Once one has found a key, only
// those that must agree are asked. Keys are compared as the map knows them,
// aliases resolved.
func (d *Decider) extract(h *Head) Found {
	f := Found{By: -1, And: -1}
	if len(h.Fields.Values(TenantHeader)) > 1 {
		// Whatever the extractors make of it: who sends two wants one of the
		// readers on the way to take the other one.
		f.Code, f.Why = cellway.KeyConflict, "there are two X-Tenant-Id headers"
		return f
	}
	for i := range d.extractors {
		x := &d.extractors[i]
		if f.By >= 0 && !x.agree {
			continue
		}
		switch got := x.find(h); {
		case got.code != "":
			if f.By < 0 {
				f.By = i
			} else {
				f.And = i
			}
			f.Key, f.Code, f.Why = "", got.code, got.why
			return f
		case got.key == "":
		case f.By < 0:
			f.Key, f.By = got.key, i
		case !agrees(d.m, f.Key, got.key):
			f.Key, f.And, f.Code, f.Why = "", i, cellway.KeyConflict, "two places name different keys"
			return f
		}
	}
	if f.By < 0 {
		f.Code, f.Why = cellway.KeyMissing, "the request names no key"
	}
	return f
}

// agrees reports whether other, found by an extractor that must agree, says
// nothing against key: it names the same key, or only its tenant.
func agrees(m *routemap.Map, key, other cellway.Key) bool {
	if key == other {
		return true
	}
	// Lookup leaves a key as it is if its alias and itself name a part.
	a, b := m.Lookup(key).Key, m.Lookup(other).Key
	return a == b || !b.IsComposite() && a.Tenant() == cellway.TenantID(b)
}
