package front

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
)

var full = Answer{Code: "full", Status: 503, Detail: "50 % more\nthan fits.", Fault: "connection_limit_reached", After: 3, GRPC: GRPCUnavailable}

// said returns what a client of net/http that sends r gets of a.
func said(a *Answer, r *http.Request) (*http.Response, int64) {
	rec := httptest.NewRecorder()
	in := &Served{Desk: new(Desk), W: rec, R: r}
	n := a.Say(in, in.Header(), "shop")
	return rec.Result(), n
}

func TestAnswerIsAProblemThatSaysWhoFailedAndHow(t *testing.T) {
	for method, body := range map[string]bool{"GET": true, "HEAD": false} {
		res, n := said(&full, httptest.NewRequest(method, "/", nil))
		for name, want := range map[string]string{
			"Content-Type": "application/problem+json", "Cache-Control": "no-store", "Retry-After": "3",
			"Proxy-Status": `shop; error=connection_limit_reached; details="full"`,
		} {
			if got := res.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", method, name, got, want)
			}
		}
		var got struct{ Code, Detail string }
		err := json.NewDecoder(res.Body).Decode(&got)
		if res.StatusCode != 503 || (err == nil) != body || (n > 0) != body || body && (got.Code != "full" || got.Detail != full.Detail || n != res.ContentLength) {
			t.Errorf("%s: %d, %d bytes, %+v, %v", method, res.StatusCode, n, got, err)
		}
	}
	soon := full
	soon.After = 0
	if res, _ := said(&soon, httptest.NewRequest("GET", "/", nil)); len(res.Header.Values("Retry-After")) > 0 {
		t.Errorf("a time to wait that nobody gave: %v", res.Header)
	}
}

func TestAnswerForGRPCIsTheHeadAlone(t *testing.T) {
	r := httptest.NewRequest("POST", "/orders.Orders/List", nil)
	r.ProtoMajor, r.ProtoMinor, r.Proto = 2, 0, "HTTP/2.0"
	r.Header.Set("Content-Type", "application/grpc+proto")
	res, n := said(&full, r)
	h := res.Header
	if res.StatusCode != 200 || n != 0 || h.Get("Content-Type") != "application/grpc" || h.Get("Content-Length") != "" {
		t.Errorf("%d, %d bytes, %v", res.StatusCode, n, h)
	}
	if h.Get("Grpc-Status") != "14" || h.Get("Grpc-Message") != "full: 50 %25 more%0Athan fits." || h.Get("Proxy-Status") == "" {
		t.Errorf("fields %v", h)
	}
}

// What every server says is not what it says of codes that it does not know.
func TestAnswersThatServersShare(t *testing.T) {
	other := AnswerOf("other")
	if other.Status != 503 || other.GRPC != GRPCInternal || other.After != 0 {
		t.Errorf("a code of nobody's: %+v", other)
	}
	for code, grpc := range map[cellway.Code]int{
		cellway.BadRequest: GRPCInternal, cellway.ClientTimeout: GRPCDeadlineExceeded,
		cellway.BodyTooLarge: GRPCResourceExhausted, cellway.HeadTooLarge: GRPCResourceExhausted, cellway.NotReady: GRPCUnavailable,
	} {
		a := AnswerOf(code)
		if a.Code != code || a.Status != code.Status() || a.GRPC != grpc || a.Detail == other.Detail || a.Fault == other.Fault || (a.After > 0) != code.Retryable() {
			t.Errorf("%s: %+v", code, a)
		}
	}
}

func TestAnswerComposedForNobodyIsWhole(t *testing.T) {
	h := http.Header{}
	body := full.Compose(engine.HTTPHeader(h), "shop", false)
	if want := engine.Problem(503, "full", full.Detail); string(body) != string(want) || h.Get("Content-Length") == "" {
		t.Errorf("%s, %v", body, h)
	}
}

func TestGRPCMessagesAreEscaped(t *testing.T) {
	for text, want := range map[string]string{"a b": "a b", "50 %": "50 %25", "\n\u00e9": "%0A%C3%A9", "": ""} {
		if got := grpcMessage(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzGRPCMessage(f *testing.F) {
	f.Add("50 %\x00\xff")
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := url.PathUnescape(grpcMessage(text)); err != nil || got != text {
			t.Errorf("%q became %q, %v", text, got, err)
		}
	})
}
