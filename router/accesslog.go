package router

import (
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/front"
)

// log logs the request that has ended at now.
func (x *exchange) log(now time.Time, cell cellway.CellID, version cellway.Version) {
	parent := string(x.parent)
	if v := x.head.Fields.Values(traceParent); parent == "" && len(v) == 1 {
		parent = v[0]
	}
	fault := ""
	if x.err != nil {
		fault = x.err.Error()
	}
	key := x.out.Route.Key
	x.text = front.Entry(x.text).Begin(now).
		Time("at", x.start).
		Text("cell_id", string(cell)).
		Text("tenant", string(key.Tenant())).
		Text("key", string(key)).
		Text("map_version", version.String()).
		Text("code", string(x.code)).
		Int("status", int64(x.status)).
		Text("method", x.head.Method).
		Text("host", x.head.Host).
		Text("path", x.head.Path). // without the query, where secrets stand
		Text("proto", x.in.Proto()).
		Int("bytes_in", x.bytesIn).
		Int("bytes_out", x.sent).
		Milliseconds("duration_ms", now.Sub(x.start)).
		Milliseconds("cell_ms", x.atCell).
		Milliseconds("queued_ms", x.queued).
		Int("attempts", int64(x.attempts)).
		Text("trace_id", traceID(parent)).
		TextIfAny("endpoint", x.report.Endpoint). // the last one tried
		AddrIfAny("client", x.rt.trusted.clientOf(x.head.Fields, x.peer)).
		TextIfAny("error", fault).
		TrueIf("tunnel", x.report.Tunnel).
		TrueIf("pass_through", x.out.PassThrough).
		End()
	_, _ = x.rt.lines.Write(x.text) // it never fails
}
