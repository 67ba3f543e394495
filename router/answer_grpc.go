package router

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
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

// trailersOnly makes h what clients of gRPC expect: beside status 200 and, in the
// same frame that ends the stream, the verdict.
func (a answer) trailersOnly(h engine.Header) {
	h.Set("Content-Type", "application/grpc")
	h.Set("Grpc-Status", strconv.Itoa(grpcStatus(a.code)))
	h.Set("Grpc-Message", grpcMessage(string(a.code)+": "+a.detail))
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
