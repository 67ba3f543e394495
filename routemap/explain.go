package routemap

import (
	"github.com/cellway/cellway"
)

// An Explanation is a look-up told step by step.
type Explanation struct {
	Version   cellway.Version  `json:"map_version"`
	Asked     cellway.Key      `json:"asked"`
	Alias     cellway.TenantID `json:"alias,omitempty"` // resolved on the way
	Key       cellway.Key      `json:"key"`             // as the map knows it
	Rule      Rule             `json:"rule"`
	Entry     *cellway.Entry   `json:"entry,omitempty"`  // if the rule is key or tenant
	Bucket    *uint32          `json:"bucket,omitempty"` // of the tenant, in a fleet with buckets
	Cell      cellway.CellID   `json:"cell,omitempty"`   // the owner
	Title     string           `json:"title,omitempty"`
	State     string           `json:"state,omitempty"` // of the cell
	Epoch     cellway.Epoch    `json:"epoch"`
	Admission Admission        `json:"admission"`
}

// An Admission says whether a request for the key goes through now.
type Admission struct {
	Admitted bool          `json:"admitted"`
	Code     cellway.Code  `json:"code,omitempty"`   // why not
	Admit    uint8         `json:"admit"`            // of the cell, in percent
	Position uint8         `json:"position"`         // of the tenant, 1 to 100: the least admit that lets it through
	Exempt   bool          `json:"exempt,omitempty"` // a test entry ignores admit
	Hold     *cellway.Hold `json:"hold,omitempty"`   //
}

// Explain tells how Lookup and Admit answer key, which must be valid.
func (m *Map) Explain(key cellway.Key) Explanation {
	r := m.Lookup(key)
	e := Explanation{Version: m.Version(), Asked: key, Alias: r.Alias, Key: r.Key, Rule: r.Rule, Epoch: r.Epoch}
	if m.base.settings.Mapping == Buckets {
		e.Bucket = new(BucketOf(r.Key.Tenant(), m.base.settings.Buckets))
	}
	entryKey := r.Key
	if r.Rule == RuleTenant {
		entryKey = cellway.Key(r.Key.Tenant())
	}
	if r.Rule == RuleKey || r.Rule == RuleTenant {
		if entry, ok := m.Entry(entryKey); ok {
			e.Entry = &entry
			e.Admission.Exempt = entry.Kind == cellway.Test
		}
	}
	if r.Cell != nil {
		e.Cell, e.Title, e.State = r.Cell.ID, r.Cell.Title, r.Cell.State.String()
		e.Admission.Admit = r.Cell.Admit
	}
	e.Admission.Position = position(r.Key.Tenant())
	e.Admission.Code, e.Admission.Hold = m.Admit(&r)
	e.Admission.Admitted = e.Admission.Code == ""
	return e
}

// position returns the least admit that lets tenant through.
func position(tenant cellway.TenantID) uint8 {
	sum := sum16(string(tenant))[1]
	for p := uint8(1); p < 100; p++ {
		if admits(sum, p) {
			return p
		}
	}
	return 100
}
