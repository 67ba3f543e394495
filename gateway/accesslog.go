package gateway

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/front"
)

// A line is one line of the access log.
type line struct {
	at                        time.Time
	cell                      cellway.CellID
	method, host, path, proto string
	traceparent               string
	peer                      netip.Addr
	key                       cellway.Key
	worker                    string // the last one tried
	hands                     string // the version
	reason                    string // of a guard
	stop, fault               string
	code                      cellway.Code
	status, attempts          int
	in, out                   int64
	whole, atWorker, queued   time.Duration
	tunnel, canary            bool
}

// log logs the request that has ended.
func (x *exchange) log(whole time.Duration) {
	one := line{
		at: x.start, cell: x.gw.cfg.Cell, method: front.Clip(x.method), host: front.Clip(x.host), path: front.Clip(x.path), proto: front.Clip(x.in.Proto()),
		peer: x.in.Peer(), reason: string(x.verdict.Refused), code: x.code, status: x.status, attempts: x.attempts, in: x.bytesIn, out: x.sent,
		whole: whole, atWorker: x.atWorker, queued: x.queued, tunnel: x.report.Tunnel, canary: x.canary,
	}
	if x.verdict.Routed {
		one.key = cellway.Key(front.Clip(string(x.verdict.Identity.Key)))
	}
	if v := x.fields; v != nil {
		if trace := v.Values("Traceparent"); len(trace) == 1 {
			one.traceparent = front.Clip(trace[0])
		}
	}
	if x.st != nil {
		one.hands = x.st.version
	}
	if x.worker != nil {
		one.worker = x.worker.ID
	}
	if x.stop != nil {
		one.stop = front.Clip(x.stop.Error())
	}
	if x.err != nil {
		one.fault = front.Clip(x.err.Error())
	}
	x.gw.lines.Put(one)
}

// printer writes lines to a log.
func printer(log *slog.Logger) func(line) {
	return func(one line) {
		attrs := []slog.Attr{
			slog.Time("at", one.at),
			slog.String("cell_id", string(one.cell)),
			slog.String("tenant", string(one.key.Tenant())),
			slog.String("key", string(one.key)),
			slog.String("hands", one.hands),
			slog.String("code", string(one.code)),
			slog.Int("status", one.status),
			slog.String("method", one.method),
			slog.String("host", one.host),
			slog.String("path", one.path), // without the query, where secrets stand
			slog.String("proto", one.proto),
			slog.Int64("bytes_in", one.in),
			slog.Int64("bytes_out", one.out),
			slog.Float64("duration_ms", front.Milliseconds(one.whole)),
			slog.Float64("worker_ms", front.Milliseconds(one.atWorker)),
			slog.Float64("queued_ms", front.Milliseconds(one.queued)),
			slog.Int("attempts", one.attempts),
		}
		for _, s := range []struct{ name, value string }{
			{"worker", one.worker}, {"traceparent", one.traceparent}, {"reason", one.reason}, {"stop", one.stop}, {"error", one.fault},
		} {
			if s.value != "" {
				attrs = append(attrs, slog.String(s.name, s.value))
			}
		}
		if one.peer.IsValid() {
			attrs = append(attrs, slog.String("peer", one.peer.String()))
		}
		if one.tunnel {
			attrs = append(attrs, slog.Bool("tunnel", true))
		}
		if one.canary {
			attrs = append(attrs, slog.Bool("canary", true))
		}
		log.LogAttrs(context.Background(), slog.LevelInfo, "request", attrs...)
	}
}
