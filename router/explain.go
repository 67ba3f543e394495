package router

import (
	"fmt"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// An Explanation is a decision told step by step. Its JSON is what the admin
// listener answers under /explain.
type Explanation struct {
	Version     cellway.Version       `json:"map_version"`
	Extractor   *Extraction           `json:"extractor,omitempty"`    // unless the key was given
	Lookup      *routemap.Explanation `json:"lookup,omitempty"`       // unless there is no key
	Cell        cellway.CellID        `json:"cell,omitempty"`         // where the request goes
	Forwarded   bool                  `json:"forwarded"`              //
	Code        cellway.Code          `json:"code,omitempty"`         // the answer, if it is not forwarded
	Status      int                   `json:"status,omitempty"`       // that goes with Code
	PassThrough bool                  `json:"pass_through,omitempty"` // forwarded, if at all, without a usable key
}

// An Extraction says what the extractors made of a request.
type Extraction struct {
	Index    int          `json:"index"`              // of the extractor that found or refused the key, from 0; -1 if none did
	Looked   string       `json:"looked"`             // where it looked; all of them if none found a key
	Key      cellway.Key  `json:"key,omitempty"`      // what it found
	Disagree string       `json:"disagree,omitempty"` // where the one looked that had to agree and did not
	Code     cellway.Code `json:"code,omitempty"`     //
	Why      string       `json:"why,omitempty"`      //
}

// Explain tells what becomes of a request for key, which must be valid: one
// that changes something, since a key in mid-move treats those apart.
func (d *Decider) Explain(key cellway.Key) Explanation {
	look := d.m.Explain(key)
	e := Explanation{Version: d.m.Version(), Lookup: &look}
	r := d.m.Lookup(key)
	out := Decision{Route: r}
	if out.Code, out.Hold = d.m.Admit(&r); out.Code == "" {
		out.Cell = r.Cell
	}
	e.outcome(&out)
	return e
}

// ExplainRequest tells what becomes of a request, and which extractor found
// its key.
func (d *Decider) ExplainRequest(h *Head) Explanation {
	out := d.Decide(h)
	e := Explanation{Version: d.m.Version(), Extractor: d.extraction(&out.Found), PassThrough: out.PassThrough}
	if out.Found.Code == "" {
		look := d.m.Explain(out.Found.Key)
		e.Lookup = &look
	}
	e.outcome(&out)
	return e
}

func (e *Explanation) outcome(out *Decision) {
	if out.Code != "" {
		e.Code, e.Status = out.Code, out.Code.Status()
		return
	}
	e.Forwarded, e.Cell = true, out.Cell.ID
}

func (d *Decider) extraction(f *Found) *Extraction {
	e := &Extraction{Index: f.By, Looked: d.looked, Key: f.Key, Code: f.Code, Why: f.Why}
	if f.By >= 0 {
		e.Looked = describeOne(d.settings.Extractors[f.By])
	}
	if f.And >= 0 {
		e.Disagree = describeOne(d.settings.Extractors[f.And])
	}
	return e
}

// A Sample is a request of a kind that a service gets, with the key that it
// must be routed by.
type Sample struct {
	Name string // in errors: "webhook", "upload token"
	Head Head
	Key  cellway.Key
}

// Check reports, all in one error, the samples that the extractors of d do not
// route by their keys. A service that keeps a sample of each kind of request,
// token or id that it hands out can hold them against its extractors in a
// test, and learns there of the one that nobody can route.
func (d *Decider) Check(samples []Sample) error {
	var bad []string
	for i := range samples {
		s := &samples[i]
		f := d.extract(&s.Head)
		switch {
		case f.Code != "":
			bad = append(bad, fmt.Sprintf("%s: %s: %s", s.Name, f.Code, f.Why))
		case f.Key != s.Key:
			bad = append(bad, fmt.Sprintf("%s: routed by %s (%s), want %s", s.Name, f.Key, describeOne(d.settings.Extractors[f.By]), s.Key))
		}
	}
	if bad == nil {
		return nil
	}
	return fmt.Errorf("%d of %d samples are not routed: %s: %w", len(bad), len(samples), strings.Join(bad, "; "), cellway.ErrInvalid)
}
