package router

import (
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cellway/cellway"
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

// An accessLog writes lines beside the requests, never in their way: a slow
// disk costs lines, not latency. write sends, run receives.
type accessLog struct {
	log     *slog.Logger // nil: none
	lines   chan line
	dropped atomic.Uint64
}

const accessLogLines = 4096

func newAccessLog(log *slog.Logger) *accessLog {
	l := &accessLog{log: log}
	if log != nil {
		l.lines = make(chan line, accessLogLines)
	}
	return l
}

func (l *accessLog) write(one line) {
	select {
	case l.lines <- one:
	default:
		l.dropped.Add(1)
	}
}

// run writes lines until ctx ends, and then those that are there.
func (l *accessLog) run(ctx context.Context) {
	for {
		select {
		case one := <-l.lines:
			l.print(one)
		case <-ctx.Done():
			for {
				select {
				case one := <-l.lines:
					l.print(one)
				default:
					return
				}
			}
		}
	}
}

// maxLogged bounds what a client may write into one field.
const maxLogged = 512

// clip returns a copy of the start of s.
func clip(s string) string { return strings.Clone(s[:min(len(s), maxLogged)]) }

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (l *accessLog) print(one line) {
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
		slog.Float64("duration_ms", ms(one.whole)),
		slog.Float64("cell_ms", ms(one.atCell)),
		slog.Float64("queued_ms", ms(one.queued)),
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
	l.log.LogAttrs(context.Background(), slog.LevelInfo, "request", attrs...)
}
