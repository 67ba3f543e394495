package router

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/front"
)

// call returns a gRPC call of tenant.
func call(tenant string, fields ...string) *http.Request {
	r := request("POST", "/orders.Orders/List", tenant, append(fields, "Content-Type", "application/grpc+proto", "Te", "trailers")...)
	r.ProtoMajor, r.ProtoMinor, r.Proto = 2, 0, "HTTP/2.0"
	return r
}

// Clients of gRPC are told in their own words, by the head alone, and the code
// stays where all others find it. The figures have the status of the table.
func TestGRPCIsAnsweredByTrailersOnly(t *testing.T) {
	b := newBench(t, 4, nil, everything)
	for tenant, tt := range map[string]struct {
		code   cellway.Code
		status string
	}{
		"": {cellway.KeyMissing, "3"}, "a b": {cellway.KeyInvalid, "3"}, "gone": {cellway.KeyGone, "5"}, "poison": {cellway.KeyQuarantined, "9"},
		"drained": {cellway.CellDrained, "14"}, "held": {cellway.KeyHeld, "14"},
	} {
		rec := b.ask(call(tenant))
		h := rec.Header()
		if rec.Code != 200 || rec.Body.Len() > 0 || h.Get("Content-Type") != "application/grpc" || h.Get("Grpc-Status") != tt.status {
			t.Errorf("%s: %d %v %q", tt.code, rec.Code, h, rec.Body)
		}
		if !strings.HasSuffix(h.Get("Proxy-Status"), `details="`+string(tt.code)+`"`) || !strings.HasPrefix(h.Get("Grpc-Message"), string(tt.code)+": ") {
			t.Errorf("%s: it is not named: %v", tt.code, h)
		}
	}
	none := figures(t, b.rt, "")
	if none.Statuses[2] != 0 || none.Statuses[4] == 0 || none.Statuses[5]+figures(t, b.rt, "cell-002").Statuses[5]+figures(t, b.rt, "cell-003").Statuses[5]+figures(t, b.rt, "cell-004").Statuses[5] == 0 {
		t.Errorf("counted: %v", none.Statuses)
	}
}

// What only looks like gRPC gets the problem that browsers and proxies know.
func TestWhatIsNotGRPCGetsAProblem(t *testing.T) {
	b := newBench(t, 4, nil, everything)
	for _, contentType := range []string{"application/grpc-web", "application/grpc-web+proto", "application/grpcx", "application/json"} {
		r := call("drained")
		r.Header.Set("Content-Type", contentType)
		wantProblem(t, b.ask(r).Result(), cellway.CellDrained)
	}
	r := request("POST", "/", "drained", "Content-Type", "application/grpc") // over HTTP/1.1 it can't be
	wantProblem(t, b.ask(r).Result(), cellway.CellDrained)
}

// No status that clients call again on, and no time to do so, is given to what may
// have run, or will not succeed later.
func TestGRPCStatusOfEachCode(t *testing.T) {
	for _, code := range outcomes {
		if code == "" || code == ClientGone || code == Stopped || code == "other" {
			continue
		}
		a := answerOf(code)
		if (a.GRPC == front.GRPCUnavailable) != code.Retryable() || (a.After > 0) != code.Retryable() || a.GRPC == 0 {
			t.Errorf("%s: %d, after %d s", code, a.GRPC, a.After)
		}
		if other := answerOf("other"); a.Detail == other.Detail || a.Fault == other.Fault {
			t.Errorf("%s has no words of its own: %+v", code, a)
		}
	}
}

// A cell ends a call whose deadline has passed by itself, before or after its
// answer began, and the client that has not looked at its own clock yet hears of
// the deadline. The cell has not failed by that.
func TestDeadlineThatPassesInTheCellIsTheClients(t *testing.T) {
	r := newReal(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "Begun") {
			w.Header().Set("Content-Type", "application/grpc")
			http.NewResponseController(w).Flush()
		}
		if !strings.HasPrefix(r.URL.Path, "/early") {
			time.Sleep(20 * time.Millisecond)
		}
		panic(http.ErrAbortHandler) // resets the stream
	}))
	for _, tt := range []struct{ path, timeout, status string }{
		{"/late.Late/Begun", "10m", "4"},
		{"/late.Late/Not", "10m", "4"},
		{"/early.Early/Not", "10S", "13"},
		{"/late.Late/Not", "", "13"},
		{"/late.Late/Not", "nonsense", "13"},
	} {
		res := r.do(t, "POST", "https://tenant-1.example.com"+tt.path, strings.NewReader("\x00\x00\x00\x00\x00"), "Content-Type", "application/grpc", "Te", "trailers", "Grpc-Timeout", tt.timeout)
		_, err := io.ReadAll(res.Body)
		got := res.Header.Get("Grpc-Status") + res.Trailer.Get("Grpc-Status")
		if err != nil || res.StatusCode != 200 || got != tt.status {
			t.Errorf("%s within %q: %d, status %q, %v", tt.path, tt.timeout, res.StatusCode, got, err)
		}
	}
	f := figures(t, r.rt, "cell-001")
	if b := f.Bulkhead; b.Timeouts != 0 || b.ProtocolErrors != 3 || b.ClientGone != 2 || f.counted(cellway.CellTimeout) != 2 {
		t.Errorf("figures %+v", f)
	}
}
