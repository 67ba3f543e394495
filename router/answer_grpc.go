package router

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/cellway/cellway"
)

// The statuses of gRPC that the router answers with.
const (
	grpcInvalidArgument    = 3
	grpcDeadlineExceeded   = 4
	grpcNotFound           = 5
	grpcResourceExhausted  = 8
	grpcFailedPrecondition = 9
	grpcInternal           = 13
	grpcUnavailable        = 14
)

// grpcStatus returns the status that goes with a code. UNAVAILABLE, on which
// clients call again, is for what certainly did not run and may succeed later.
func grpcStatus(code cellway.Code) int {
	switch code {
	case cellway.KeyMissing, cellway.KeyConflict, cellway.KeyInvalid:
		return grpcInvalidArgument
	case cellway.ClientTimeout, cellway.CellTimeout:
		return grpcDeadlineExceeded
	case cellway.KeyUnknown, cellway.KeyGone:
		return grpcNotFound
	case cellway.BodyTooLarge, cellway.HeadTooLarge:
		return grpcResourceExhausted
	case cellway.KeyQuarantined:
		return grpcFailedPrecondition
	}
	if code.Retryable() {
		return grpcUnavailable
	}
	return grpcInternal
}

// trailersOnly writes a as clients of gRPC have it: status 200 and, in the same
// frame that ends the stream, the verdict.
func (a answer) trailersOnly(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/grpc")
	h.Set("Grpc-Status", strconv.Itoa(grpcStatus(a.code)))
	h.Set("Grpc-Message", grpcMessage(string(a.code)+": "+a.detail))
	w.WriteHeader(http.StatusOK)
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
