package router

import (
	"time"
	"unsafe"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/front"
)

// log logs the request that has ended at now.
func (x *exchange) log(now time.Time, cell cellway.CellID, version cellway.Version) {
	var dotted [2*10 + 1]byte // of a version
	key := x.out.Route.Key
	x.text = front.Entry(x.text).Begin(now).
		Time("at", x.start).
		Text("cell_id", string(cell)).
		Text("tenant", string(key.Tenant())).
		Text("key", string(key)).
		Bytes("map_version", version.Append(dotted[:0])).
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
		Text("trace_id", x.traced()).
		TextIfAny("endpoint", x.report.Endpoint). // the last one tried
		AddrIfAny("client", x.rt.trusted.clientOf(x.head.Fields, x.peer)).
		ErrorIfAny("error", x.err).
		TrueIf("tunnel", x.report.Tunnel).
		TrueIf("pass_through", x.out.PassThrough).
		End()
	_, _ = x.rt.lines.Write(x.text) // it never fails
}

// traced returns the id of the trace that the request belongs to, or "". It is valid as
// long as x's memory is not used again.
func (x *exchange) traced() string {
	if len(x.parent) > 0 {
		return traceID(unsafe.String(unsafe.SliceData(x.parent), len(x.parent)))
	}
	// It was not sent to any cell.
	if v := x.head.Fields.Values(traceParent); len(v) == 1 {
		return traceID(v[0])
	}
	return ""
}
