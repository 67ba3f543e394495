package gateway

import (
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/front"
)

// log logs the request that has ended at now.
func (x *exchange) log(now time.Time) {
	var key cellway.Key
	if x.verdict.Routed {
		key = x.verdict.Identity.Key
	}
	trace, hands, worker := "", "", ""
	if v := x.fields; v != nil {
		if all := v.Values("Traceparent"); len(all) == 1 {
			trace = all[0]
		}
	}
	if x.st != nil {
		hands = x.st.version
	}
	if x.worker != nil {
		worker = x.worker.ID
	}
	x.text = front.Entry(x.text).Begin(now).
		Time("at", x.start).
		Text("cell_id", string(x.gw.cfg.Cell)).
		Text("tenant", string(key.Tenant())).
		Text("key", string(key)).
		Text("hands", hands). // the version
		Text("code", string(x.code)).
		Int("status", int64(x.status)).
		Text("method", x.method).
		Text("host", x.host).
		Text("path", x.path). // without the query, where secrets stand
		Text("proto", x.in.Proto()).
		Int("bytes_in", x.bytesIn).
		Int("bytes_out", x.sent).
		Milliseconds("duration_ms", now.Sub(x.start)).
		Milliseconds("worker_ms", x.atWorker).
		Milliseconds("queued_ms", x.queued).
		Int("attempts", int64(x.attempts)).
		TextIfAny("worker", worker). // the last one tried
		TextIfAny("traceparent", trace).
		TextIfAny("reason", string(x.verdict.Refused)). // of a guard
		ErrorIfAny("stop", x.stop).
		ErrorIfAny("error", x.err).
		AddrIfAny("peer", x.in.Peer()).
		TrueIf("tunnel", x.report.Tunnel).
		TrueIf("canary", x.canary).
		End()
	_, _ = x.gw.lines.Write(x.text) // it never fails
}
