package gateway

import (
	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/engine"
	"github.com/cellway/cellway/internal/front"
)

// The gateway's answers, beside those of a guard and [cellway.BadRequest],
// [cellway.ClientTimeout], [cellway.BodyTooLarge], [cellway.HeadTooLarge] and
// [cellway.NotReady].
const (
	TenantLimited   cellway.Code = "tenant_limited"      // 429: the tenant sends too many requests
	TenantBusy      cellway.Code = "tenant_busy"         // 429: too many of the tenant's requests run
	HandUnreachable cellway.Code = "hand_unreachable"    // 503: no member of the hand could be reached
	HandSaturated   cellway.Code = "hand_saturated"      // 503: the members of the hand have all that they may
	HandTimeout     cellway.Code = "hand_timeout"        // 504: no answer began in time
	HandProtocol    cellway.Code = "hand_protocol_error" // 502: the answer was malformed or broke off
	HandMismatch    cellway.Code = "hand_mismatch"       // 503: a worker goes by other hands than this gateway
	Saturated       cellway.Code = "gateway_saturated"   // 503: the gateway's own limit
	CanaryFailed    cellway.Code = "canary_failed"       // 503: the worker did not answer the canary well
	WorkerUnknown   cellway.Code = "worker_unknown"      // 404: the canary asks for a worker that is not in the list
)

// Outcomes that no client sees.
const (
	ClientGone              = engine.ClientGone // the client went away before it had its answer
	Stopped                 = engine.Stopped    // the gateway ended the request after its answer had begun
	Misrouted  cellway.Code = "misrouted"       // the guard refused it: see Stats.Misrouted
)

// answerOf returns what the gateway says with a code.
func answerOf(code cellway.Code) front.Answer {
	a := front.AnswerOf(code)
	say := func(status, grpc, after int, fault, detail string) {
		a.Status, a.GRPC, a.After, a.Fault, a.Detail = status, grpc, after, fault, detail
	}
	switch code {
	case TenantLimited:
		say(429, front.GRPCResourceExhausted, 1, "http_request_denied", "This tenant sends more requests than it may. Nothing was changed; try again.")
	case TenantBusy:
		say(429, front.GRPCResourceExhausted, 1, "http_request_denied", "This tenant has as many requests under way as it may. Nothing was changed; try again.")
	case HandUnreachable:
		say(503, front.GRPCUnavailable, 1, "destination_unavailable", "No worker that serves this tenant can be reached. The request was not carried out.")
	case HandSaturated:
		say(503, front.GRPCUnavailable, 1, "connection_limit_reached", "The workers that serve this tenant have as much to do as they may. The request was not carried out.")
	case HandTimeout:
		say(504, front.GRPCDeadlineExceeded, 0, "http_response_timeout", "There was no answer in time. The request may have been carried out.")
	case HandProtocol:
		say(502, front.GRPCInternal, 0, "http_protocol_error", "The answer was malformed or broke off. The request may have been carried out.")
	case WorkerUnknown:
		say(404, front.GRPCNotFound, 0, "destination_not_found", "No worker of that id is in the list.")
	case HandMismatch:
		say(503, front.GRPCUnavailable, 1, "destination_unavailable", "Which workers serve this tenant is unclear at the moment. The request was not carried out.")
	case Saturated:
		say(503, front.GRPCUnavailable, 1, "connection_limit_reached", "The service has as much to do as it may. The request was not carried out.")
	}
	return a
}
