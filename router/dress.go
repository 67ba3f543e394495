package router

import (
	"net/http"

	"github.com/cellway/cellway/internal/engine"
)

// VersionHeader tells clients which map version decided, if they may know.
const VersionHeader = "X-Cell-Map-Version"

// EditRequest makes h the header of the request to the cell. The engine has
// removed from it what speaks of the connection, every X-Cell-*, and what looks
// like a field of the router's to a server that keeps fields in environment
// variables.
func (x *exchange) EditRequest(h engine.Header) {
	// A key is read under one spelling. A cell that takes another one for the
	// same would read one that no extractor has seen.
	h.DelFunc(x.unlike)
	h.Set(CellHeader, string(x.out.Cell.ID))
	if !x.out.PassThrough {
		key := x.out.Route.Key
		x.text = x.out.Route.Epoch.Append(x.text[:0])
		h.SetBytes(EpochHeader, x.text)
		h.Set(KeyHeader, string(key))
		h.Set(TenantHeader, string(key.Tenant()))
	}
	x.forwarding(h)
	if len(x.parent) == 0 {
		x.parent = trace(h, x.parent, x.rt.cfg.TraceSampled)
	} else { // another try of the same request
		h.SetBytes(traceParent, x.parent)
	}
	x.text = append(x.text[:0], x.in.Via()...)
	x.text = append(x.text, ' ')
	x.text = append(x.text, x.st.d.settings.Fleet...)
	h.AddBytes("Via", x.text)
}

// deceives reports whether a field is spelt like one that an extractor reads.
func (x *exchange) deceives(name string) bool {
	for _, read := range x.st.d.headers {
		if engine.LooksLike(name, read) {
			return true
		}
	}
	return false
}

// InspectAnswer finds a guard's refusal, which no client sees.
func (x *exchange) InspectAnswer(status int, h engine.Header) (swallow bool) {
	x.no, swallow = refusalOf(status, h)
	return swallow
}

// EditAnswer edits the header of the cell's answer.
func (x *exchange) EditAnswer(status int, h engine.Header) {
	x.explainHeaders(h)
	switch {
	case status == http.StatusSwitchingProtocols:
		x.seat.Tunnel(x.in)
	case status >= 200 && x.in.HTTP1() && x.rt.desk.Stopping():
		h.Set("Connection", "close")
	}
}

// explainHeaders tells the client who decided what, where that is wanted. What
// the cell says of itself stays.
func (x *exchange) explainHeaders(h engine.Header) {
	if !x.rt.cfg.ExplainHeaders || x.st == nil {
		return
	}
	set := func(name, value string) {
		if value != "" && len(h.Values(name)) == 0 {
			h.Set(name, value)
		}
	}
	set(VersionHeader, x.st.d.m.Version().String())
	if owner := x.out.owner(x.st.d); owner != nil {
		set(CellHeader, string(owner.ID))
	}
	if x.out.Route.Key != "" {
		set(KeyHeader, string(x.out.Route.Key))
		set(EpochHeader, x.out.Route.Epoch.String())
	}
}
