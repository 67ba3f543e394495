package router

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/front"
)

// A line is one line of the access log. What comes from the client, or from an
// error, is clipped, and a copy: thousands of lines may wait, and each would
// keep a whole head in memory.
type line struct {
	at                                 time.Time
	method, host, path, proto, traceID string
	fault                              string // "" for none
	client                             netip.Addr
	cell                               cellway.CellID
	endpoint                           string
	key                                cellway.Key
	version                            cellway.Version
	code                               cellway.Code
	status, attempts                   int
	in, out                            int64
	whole, atCell, queued              time.Duration
	tunnel, passThrough                bool
}

// log logs the request that has ended.
func (x *exchange) log(cell cellway.CellID, version cellway.Version, whole time.Duration) {
	parent := string(x.parent)
	if v := x.head.Fields.Values(traceParent); parent == "" && len(v) == 1 {
		parent = v[0]
	}
	one := line{
		at: x.start, method: front.Clip(x.head.Method), host: front.Clip(x.head.Host), path: front.Clip(x.head.Path), proto: front.Clip(x.in.Proto()), traceID: front.Clip(traceID(parent)),
		client: x.rt.trusted.clientOf(x.head.Fields, x.peer), cell: cell, endpoint: x.report.Endpoint, key: cellway.Key(front.Clip(string(x.out.Route.Key))), version: version,
		code: x.code, status: x.status, attempts: x.attempts, in: x.bytesIn, out: x.sent,
		whole: whole, atCell: x.atCell, queued: x.queued, tunnel: x.report.Tunnel, passThrough: x.out.PassThrough,
	}
	if x.err != nil {
		one.fault = front.Clip(x.err.Error())
	}
	x.rt.lines.Put(one)
}

// printer writes lines to a log.
func printer(log *slog.Logger) func(line) {
	return func(one line) {
		attrs := []slog.Attr{
			slog.Time("at", one.at),
			slog.String("cell_id", string(one.cell)),
			slog.String("tenant", string(one.key.Tenant())),
			slog.String("key", string(one.key)),
			slog.String("map_version", one.version.String()),
			slog.String("code", string(one.code)),
			slog.Int("status", one.status),
			slog.String("method", one.method),
			slog.String("host", one.host),
			slog.String("path", one.path), // without the query, where secrets stand
			slog.String("proto", one.proto),
			slog.Int64("bytes_in", one.in),
			slog.Int64("bytes_out", one.out),
			slog.Float64("duration_ms", front.Milliseconds(one.whole)),
			slog.Float64("cell_ms", front.Milliseconds(one.atCell)),
			slog.Float64("queued_ms", front.Milliseconds(one.queued)),
			slog.Int("attempts", one.attempts),
			slog.String("trace_id", one.traceID),
		}
		if one.endpoint != "" {
			attrs = append(attrs, slog.String("endpoint", one.endpoint)) // the last one tried
		}
		if one.client.IsValid() {
			attrs = append(attrs, slog.String("client", one.client.String()))
		}
		if one.tunnel {
			attrs = append(attrs, slog.Bool("tunnel", true))
		}
		if one.passThrough {
			attrs = append(attrs, slog.Bool("pass_through", true))
		}
		if one.fault != "" {
			attrs = append(attrs, slog.String("error", one.fault))
		}
		log.LogAttrs(context.Background(), slog.LevelInfo, "request", attrs...)
	}
}
