package routemap

import (
	"math/bits"

	"github.com/cellway/cellway"
)

// An Explanation is a look-up told step by step.
type Explanation struct {
	Version   cellway.Version  `json:"map_version"`
	Asked     cellway.Key      `json:"asked"`
	Alias     cellway.TenantID `json:"alias,omitempty"` // resolved on the way, or in conflict with the part asked for
	Key       cellway.Key      `json:"key"`             // as the map knows it
	Rule      Rule             `json:"rule"`
	Entry     *cellway.Entry   `json:"entry,omitempty"`  // if the rule is key or tenant; nil for a tombstone
	Bucket    *uint32          `json:"bucket,omitempty"` // of the tenant, in a fleet with buckets, whatever the rule
	Cell      cellway.CellID   `json:"cell,omitempty"`   // the owner
	Title     string           `json:"title,omitempty"`
	State     string           `json:"state,omitempty"` // of the cell
	Epoch     cellway.Epoch    `json:"epoch"`           // of the owner, or of the deletion
	Admission Admission        `json:"admission"`
}

// An Admission says whether a request for the key goes through now.
type Admission struct {
	Admitted bool          `json:"admitted"`
	Code     cellway.Code  `json:"code,omitempty"`   // why not
	Admit    uint8         `json:"admit"`            // of the cell, in percent; 0 without one
	Position uint8         `json:"position"`         // of the tenant, 1 to 100: the least admit that lets it through; 0 without one
	Exempt   bool          `json:"exempt,omitempty"` // a test entry ignores admit
	Hold     *cellway.Hold `json:"hold,omitempty"`   // if the code is key_held
}

// Explain tells how Lookup and Admit answer key, which must be valid.
func (m *Map) Explain(key cellway.Key) Explanation {
	r := m.Lookup(key)
	e := Explanation{Version: m.Version(), Asked: key, Alias: r.Alias, Key: r.Key, Rule: r.Rule, Epoch: r.Epoch}
	if r.Code != cellway.KeyConflict { // else there is no one tenant to tell of
		tenant := r.Key.Tenant()
		if m.base.settings.Mapping == Buckets {
			e.Bucket = new(BucketOf(tenant, m.base.settings.Buckets))
		}
		e.Admission.Position = position(tenant)
		switch r.Rule {
		case RuleKey:
			e.Entry = m.entryOf(r.Key)
		case RuleTenant:
			e.Entry = m.entryOf(cellway.Key(tenant))
		}
	}
	e.Admission.Exempt = e.Entry != nil && e.Entry.Kind == cellway.Test
	if r.Cell != nil {
		e.Cell, e.Title, e.State = r.Cell.ID, r.Cell.Title, r.Cell.State.String()
		e.Admission.Admit = r.Cell.Admit
	}
	code, hold := m.Admit(&r)
	e.Admission.Code, e.Admission.Admitted = code, code == ""
	if hold != nil {
		e.Admission.Hold = new(*hold)
	}
	return e
}

func (m *Map) entryOf(key cellway.Key) *cellway.Entry {
	if e, ok := m.Entry(key); ok {
		return &e
	}
	return nil
}

// position returns the least admit that lets tenant through.
func position(tenant cellway.TenantID) uint8 {
	hi, _ := bits.Mul64(sum16(string(tenant))[1], 100)
	return uint8(hi) + 1
}
