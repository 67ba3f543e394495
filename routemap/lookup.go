package routemap

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"strings"
	"unsafe"

	"github.com/cellway/cellway"
)

// A Rule says by what a key found its owner.
type Rule uint8

// The rules, in the order in which they are tried.
const (
	RuleNone     Rule = iota // nothing owns the key
	RuleKey                  // an entry for the whole key
	RuleTenant               // an entry for the tenant of a composite key
	RuleBucket               // the bucket of the tenant
	RuleCatchAll             // the cell that the settings name for the rest
)

func (r Rule) String() string {
	if int(r) < len(ruleNames) {
		return ruleNames[r]
	}
	return "unknown"
}

// MarshalText writes the name of r.
func (r Rule) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

var ruleNames = [...]string{"none", "key", "tenant", "bucket", "catch_all"}

// A Route is the answer of a look-up. Cell is nil unless something owns the
// key; Code says why when the router must not even ask for admission.
type Route struct {
	Key    cellway.Key       // as the map knows it, aliases resolved
	Alias  cellway.TenantID  // the alias that was resolved, or ""
	Rule   Rule              //
	Kind   cellway.EntryKind // of the entry, if Rule is RuleKey or RuleTenant
	Cell   *cellway.Cell     // the owner, shared with the map: not to be changed
	Epoch  cellway.Epoch     // of the owner; of a tombstone: of the deletion
	Bucket uint32            // if Rule is RuleBucket
	Code   cellway.Code      // "", key_unknown, key_gone, key_conflict or key_quarantined

	sum    [2]uint64 // bytes 0 to 16 of the tenant's SHA-256, if hashed
	hashed bool
}

// Lookup finds the owner of key, which must be valid. It resolves an alias
// first, then asks the entry for the whole key, the entry for the tenant, and
// the bucket; each step asks the overlay, then the base. It allocates only to
// write out a composite key whose tenant was an alias.
func (m *Map) Lookup(key cellway.Key) (r Route) {
	r.Key = key
	tenant, part := string(key), ""
	if i := strings.IndexByte(tenant, '/'); i >= 0 {
		tenant, part = tenant[:i], tenant[i+1:]
	}
	rec, found := m.find(tenant)
	if found && rec.kind == recAlias {
		r.Alias = cellway.TenantID(tenant)
		to, toPart, _ := strings.Cut(string(rec.target), "/")
		switch {
		case part != "" && toPart != "":
			r.Code = cellway.KeyConflict
			return r
		case part != "":
			r.Key = rec.target + "/" + cellway.Key(part)
		default:
			r.Key, part = rec.target, toPart
		}
		tenant = to
		rec, found = m.find(tenant)
	}
	if part != "" && m.hasComposites() {
		if whole, ok := m.find(string(r.Key)); ok {
			m.answer(&r, whole, RuleKey)
			return r
		}
	}
	switch {
	case found && part != "":
		m.answer(&r, rec, RuleTenant)
	case found:
		m.answer(&r, rec, RuleKey)
	case m.base.settings.Mapping == Buckets && !m.base.settings.Strict:
		r.hash(tenant)
		r.Bucket = uint32(r.sum[0] % uint64(m.base.settings.Buckets))
		b := m.bucket(r.Bucket)
		r.Rule, r.Cell, r.Epoch = RuleBucket, m.cells[b.cell], b.epoch
	case m.catchAll >= 0:
		r.Rule, r.Cell, r.Epoch = RuleCatchAll, m.cells[m.catchAll], m.base.settings.CatchAllEpoch
	default:
		r.Code = cellway.KeyUnknown
	}
	return r
}

func (m *Map) answer(r *Route, rec record, rule Rule) {
	r.Rule, r.Epoch = rule, rec.epoch
	switch {
	case rec.kind == recTombstone:
		r.Code = cellway.KeyGone
	case !rec.kind.isEntry(): // an alias to an alias: the checks let none in
		r.Rule, r.Code = RuleNone, cellway.KeyUnknown
	default:
		r.Kind = cellway.EntryKind(rec.kind)
		if rec.cell == noCell {
			r.Code = cellway.KeyQuarantined
		} else {
			r.Cell = m.cells[rec.cell]
		}
	}
}

// find returns the record of key. A record of the base comes without the note
// of an override.
func (m *Map) find(key string) (record, bool) {
	hash := m.base.hash(key)
	if len(m.over.recs) > 0 {
		if rec := m.over.find(hash, key); rec != nil {
			return *rec, rec.kind != recAbsence
		}
	}
	rec := m.base.find(hash, key)
	return rec, rec.kind != recAbsence
}

// find returns the base's record of a key with that hash, without the note of
// an override.
func (b *Base) find(hash uint64, key string) record {
	if rest := b.tab.find(hash, key); rest >= 0 {
		return b.tab.short(rest)
	}
	return absent
}

// whole is find with the note of an override.
func (m *Map) whole(key string) record {
	hash := m.base.hash(key)
	if rec := m.over.find(hash, key); rec != nil {
		return *rec
	}
	if rest := m.base.tab.find(hash, key); rest >= 0 {
		return m.base.tab.full(rest)
	}
	return absent
}

// hasComposites reports whether looking for a whole composite key can find
// anything.
func (m *Map) hasComposites() bool { return m.base.tab.composites > 0 || len(m.over.recs) > 0 }

// sum16 returns the first sixteen bytes of the SHA-256 of tenant, as two
// big-endian numbers.
func sum16(tenant string) [2]uint64 {
	sum := sha256.Sum256(unsafe.Slice(unsafe.StringData(tenant), len(tenant)))
	return [2]uint64{binary.BigEndian.Uint64(sum[:8]), binary.BigEndian.Uint64(sum[8:16])}
}

func (r *Route) hash(tenant string) {
	if !r.hashed {
		r.sum, r.hashed = sum16(tenant), true
	}
}

// BucketOf returns the bucket of tenant among count, which is not 0: the first
// eight bytes of its SHA-256, big-endian, modulo count.
func BucketOf(tenant cellway.TenantID, count uint32) uint32 {
	return uint32(sum16(string(tenant))[0] % uint64(count))
}

// Admits reports whether a cell that admits percent of its keys lets tenant's
// through: bytes 8 to 16 of the tenant's SHA-256, big-endian, are below
// percent x 2^64 / 100. So steps nest: who is in at 5 is in at 25, and the
// same tenants always come back first. 100 admits all, 0 none.
func Admits(tenant cellway.TenantID, percent uint8) bool {
	return admits(sum16(string(tenant))[1], percent)
}

func admits(sum uint64, percent uint8) bool {
	if percent >= 100 {
		return true
	}
	// sum < percent * 2^64 / 100, compared without rounding.
	hi, _ := bits.Mul64(sum, 100)
	return hi < uint64(percent)
}

// Admit says whether the router may send the request of route r to its cell
// now, in the order tombstone, quarantine, state of the cell, admit, hold.
// The answer is "" for yes. A held key answers key_held with its hold, which is
// shared with the map and not to be changed: what that means for a safe request
// is the router's to know.
func (m *Map) Admit(r *Route) (cellway.Code, *cellway.Hold) {
	if r.Code != "" {
		return r.Code, nil
	}
	c := r.Cell
	if c.State != cellway.CellActive && c.State != cellway.CellCordoned {
		return cellway.CellDrained, nil
	}
	if c.Admit < 100 && !(r.Kind == cellway.Test && (r.Rule == RuleKey || r.Rule == RuleTenant)) {
		r.hash(string(r.Key.Tenant()))
		if !admits(r.sum[1], c.Admit) {
			return cellway.CellDrained, nil
		}
	}
	if len(m.over.holds) > 0 {
		if h := m.hold(r.Key); h != nil {
			return cellway.KeyHeld, h
		}
	}
	return "", nil
}

// hold returns the hold of key or of its tenant, or nil.
func (m *Map) hold(key cellway.Key) *cellway.Hold {
	if h := m.over.hold(string(key)); h != nil || !key.IsComposite() {
		return h
	}
	return m.over.hold(string(key.Tenant()))
}
