package router

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/cellway/cellway/internal/engine"
)

// VersionHeader tells clients which map version decided, if they may know.
const VersionHeader = "X-Cell-Map-Version"

// dress makes h the header of the request to the cell. The engine has removed
// from it what speaks of the connection, every X-Cell-*, and what looks like a
// field of the router's to a server that keeps fields in environment variables.
func (x *exchange) dress(h http.Header) {
	for name := range h {
		// A key is read under one spelling. A cell that takes another one for the
		// same would read one that no extractor has seen.
		if slices.ContainsFunc(x.st.d.headers, func(read string) bool { return engine.LooksLike(name, read) }) {
			delete(h, name)
		}
	}
	h[CellHeader] = []string{string(x.out.Cell.ID)}
	if !x.out.PassThrough {
		key := x.out.Route.Key
		h[EpochHeader] = []string{x.out.Route.Epoch.String()}
		h[KeyHeader] = []string{string(key)}
		h[TenantHeader] = []string{string(key.Tenant())}
	}
	x.rt.trusted.forward(h, x.r, x.peer)
	if x.parent == "" {
		x.parent = trace(h, x.rt.cfg.TraceSampled)
	} else { // another try of the same request
		h[traceParent] = []string{x.parent}
	}
	// The values are shared with the client's header.
	h["Via"] = slices.Concat(h["Via"], []string{viaVersion(x.r) + " " + x.st.d.settings.Fleet})
}

func viaVersion(r *http.Request) string {
	if r.ProtoMajor >= 2 {
		return strconv.Itoa(r.ProtoMajor)
	}
	return strconv.Itoa(r.ProtoMajor) + "." + strconv.Itoa(r.ProtoMinor)
}

// dressAnswer edits the header of the cell's answer.
func (x *exchange) dressAnswer(status int, h http.Header) {
	x.explainHeaders(h)
	switch {
	case status == http.StatusSwitchingProtocols:
		// From here on it is a tunnel, and may last for days.
		x.leave()
		x.tunnel = true
		x.flight.Move(&x.rt.upgraded)
		x.rt.tunnels.Add(1)
	case status >= 200 && x.r.ProtoMajor == 1 && x.rt.phase.Load() == stopping:
		h.Set("Connection", "close")
	}
}

// explainHeaders tells the client who decided what, where that is wanted. What
// the cell says of itself stays.
func (x *exchange) explainHeaders(h http.Header) {
	if !x.rt.cfg.ExplainHeaders || x.st == nil {
		return
	}
	set := func(name, value string) {
		if len(h[name]) == 0 && value != "" {
			h[name] = []string{value}
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
