package router

import (
	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/front"
)

// answerOf returns what the router says with a code. For gRPC, UNAVAILABLE, on which
// clients call again, is for what certainly did not run and may succeed later.
func answerOf(code cellway.Code) front.Answer {
	a := front.AnswerOf(code)
	say := func(grpc, after int, fault, detail string) {
		a.GRPC, a.After, a.Fault, a.Detail = grpc, after, fault, detail
	}
	switch code {
	case cellway.Loop:
		say(front.GRPCInternal, 0, "proxy_loop_detected", "The request has been through this fleet twice already.")
	case cellway.KeyMissing, cellway.KeyConflict, cellway.KeyInvalid:
		say(front.GRPCInvalidArgument, 0, "http_request_error", "The request does not say clearly whom it is for.")
	case cellway.KeyUnknown:
		say(front.GRPCNotFound, 0, "destination_not_found", "Nobody of that name is served here.")
	case cellway.KeyGone:
		say(front.GRPCNotFound, 0, "destination_not_found", "What the request is for was deleted.")
	case cellway.KeyQuarantined:
		say(front.GRPCFailedPrecondition, 0, "http_request_denied", "Requests for this tenant are stopped by its operator.")
	case cellway.CellDrained:
		say(front.GRPCUnavailable, 10, "destination_unavailable", "This tenant is not served at the moment.")
	case cellway.KeyHeld:
		say(front.GRPCUnavailable, 1, "destination_unavailable", "This tenant is being moved. Nothing was changed; try again.")
	case cellway.CellSaturated:
		say(front.GRPCUnavailable, 1, "connection_limit_reached", "There are too many requests at the moment. This one was not forwarded.")
	case cellway.RouterSaturated:
		say(front.GRPCUnavailable, 1, "proxy_internal_response", "There are too many requests at the moment. This one was not forwarded.")
	case cellway.CellUnreachable:
		say(front.GRPCUnavailable, 2, "destination_unavailable", "This tenant can't be reached at the moment.")
	case cellway.CellTimeout:
		say(front.GRPCDeadlineExceeded, 0, "http_response_timeout", "There was no answer in time. The request may have been carried out.")
	case cellway.CellProtocol:
		say(front.GRPCInternal, 0, "http_protocol_error", "The answer was malformed or broke off. The request may have been carried out.")
	case cellway.CellMismatch:
		say(front.GRPCUnavailable, 1, "destination_unavailable", "Where this tenant is served is unclear at the moment. The request was not carried out.")
	}
	return a
}
