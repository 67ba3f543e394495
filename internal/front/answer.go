package front

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
)

// The statuses of gRPC that answers have.
const (
	GRPCInvalidArgument    = 3
	GRPCDeadlineExceeded   = 4
	GRPCNotFound           = 5
	GRPCResourceExhausted  = 8
	GRPCFailedPrecondition = 9
	GRPCInternal           = 13
	GRPCUnavailable        = 14
)

// An Answer is what a program says in place of those behind it: problem+json (RFC
// 9457) with the stable code, beside a Proxy-Status field (RFC 9209) that says who
// failed, and how. Clients of gRPC get the same in their own form.
type Answer struct {
	Code   cellway.Code
	Status int
	Detail string // a sentence for people
	Fault  string // the error type of RFC 9209
	After  int    // seconds to wait before another try; 0 for nothing said
	GRPC   int    // status of gRPC
}

// Compose puts a's fields into h, and returns its body. name is what the program
// calls itself in Proxy-Status. A client of gRPC gets a header and nothing else,
// with status 200.
func (a *Answer) Compose(h engine.Header, name string, grpc bool) (body []byte) {
	// In alphabetical order, as net/http writes them: so the engine's are the same.
	h.Set("Cache-Control", "no-store")
	if !grpc {
		body = engine.Problem(a.Status, a.Code, a.Detail)
		h.Set("Content-Length", strconv.Itoa(len(body)))
		h.Set("Content-Type", "application/problem+json")
	}
	h.Set("Proxy-Status", name+"; error="+a.Fault+`; details="`+string(a.Code)+`"`)
	if a.After > 0 {
		h.Set("Retry-After", strconv.Itoa(a.After))
	}
	if grpc {
		// Beside status 200 and, in the same frame that ends the stream, the verdict.
		h.Set("Content-Type", "application/grpc")
		h.Set("Grpc-Status", strconv.Itoa(a.GRPC))
		h.Set("Grpc-Message", grpcMessage(string(a.Code)+": "+a.Detail))
	}
	return body
}

// Say answers by in. h is in's header, into which others may have put fields
// before; name is that of Compose. It returns how many bytes of the body went out.
func (a *Answer) Say(in Inbound, h engine.Header, name string) (sent int64) {
	grpc, status := in.GRPC(), a.Status
	body := a.Compose(h, name, grpc)
	if grpc {
		status = http.StatusOK
	}
	return in.Answer(status, body)
}

// grpcMessage escapes text as gRPC wants its messages.
func grpcMessage(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
