package router

import (
	"strconv"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
)

// An answer is what the router says by itself: problem+json (RFC 9457) with
// the stable code, beside a Proxy-Status field (RFC 9209) that says that it
// was the router, and how it failed.
//
// Clients of gRPC get the same answers in their own form: see grpcStatus. The
// log and the figures have the status of the table for them too.
type answer struct {
	code   cellway.Code
	status int    // if zero, the code's own
	detail string // if empty, the code's own
}

// A saying is what the router says with a code.
type saying struct {
	detail string
	fault  string // the error type of RFC 9209
	after  int    // seconds to wait before another try, if the code is retryable
}

func sayingOf(code cellway.Code) saying {
	switch code {
	case cellway.BadRequest:
		return saying{"The request can't be read in one way only.", "http_request_error", 0}
	case cellway.ClientTimeout:
		return saying{"The request did not arrive in time.", "http_request_error", 0}
	case cellway.BodyTooLarge:
		return saying{"The body is larger than is allowed here.", "http_request_error", 0}
	case cellway.HeadTooLarge:
		return saying{"The head is larger than is allowed here.", "http_request_error", 0}
	case cellway.Loop:
		return saying{"The request has been through this fleet twice already.", "proxy_loop_detected", 0}
	case cellway.KeyMissing, cellway.KeyConflict, cellway.KeyInvalid:
		return saying{"The request does not say clearly whom it is for.", "http_request_error", 0}
	case cellway.KeyUnknown:
		return saying{"Nobody of that name is served here.", "destination_not_found", 0}
	case cellway.KeyGone:
		return saying{"What the request is for was deleted.", "destination_not_found", 0}
	case cellway.KeyQuarantined:
		return saying{"Requests for this tenant are stopped by its operator.", "http_request_denied", 0}
	case cellway.CellDrained:
		return saying{"This tenant is not served at the moment.", "destination_unavailable", 10}
	case cellway.KeyHeld:
		return saying{"This tenant is being moved. Nothing was changed; try again.", "destination_unavailable", 1}
	case cellway.CellSaturated:
		return saying{"There are too many requests at the moment. This one was not forwarded.", "connection_limit_reached", 1}
	case cellway.RouterSaturated:
		return saying{"There are too many requests at the moment. This one was not forwarded.", "proxy_internal_response", 1}
	case cellway.CellUnreachable:
		return saying{"This tenant can't be reached at the moment.", "destination_unavailable", 2}
	case cellway.CellTimeout:
		return saying{"There was no answer in time. The request may have been carried out.", "http_response_timeout", 0}
	case cellway.CellProtocol:
		return saying{"The answer was malformed or broke off. The request may have been carried out.", "http_protocol_error", 0}
	case cellway.CellMismatch:
		return saying{"Where this tenant is served is unclear at the moment. The request was not carried out.", "destination_unavailable", 1}
	case cellway.NotReady:
		return saying{"The service is starting or stopping.", "proxy_configuration_error", 1}
	default:
		return saying{"The request could not be forwarded.", "proxy_internal_error", 0}
	}
}

// compose puts a's fields into h, and returns its status and its body. name is
// what the router calls itself in Proxy-Status. A client of gRPC gets a header
// and nothing else, with status 200.
func (a answer) compose(h engine.Header, name string, grpc bool) (status int, body []byte) {
	say := sayingOf(a.code)
	if a.status == 0 {
		a.status = a.code.Status()
	}
	if a.detail == "" {
		a.detail = say.detail
	}
	h.Set("Cache-Control", "no-store")
	h.Set("Proxy-Status", name+"; error="+say.fault+`; details="`+string(a.code)+`"`)
	if a.code.Retryable() && say.after > 0 {
		h.Set("Retry-After", strconv.Itoa(say.after))
	}
	if grpc {
		a.trailersOnly(h)
		return a.status, nil
	}
	body = engine.Problem(a.status, a.code, a.detail)
	h.Set("Content-Type", "application/problem+json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	return a.status, body
}
