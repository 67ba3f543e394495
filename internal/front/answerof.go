package front

import "github.com/cellway/cellway"

// AnswerOf returns what every server says with a code: in full what it has to say
// of requests that can't be read and of its own beginning and end, and little with
// any other.
func AnswerOf(code cellway.Code) Answer {
	a := Answer{Code: code, Status: code.Status(), GRPC: GRPCInternal, Fault: "http_request_error"}
	switch code {
	case cellway.BadRequest:
		a.Detail = "The request can't be read in one way only."
	case cellway.ClientTimeout:
		a.Detail, a.GRPC = "The request did not arrive in time.", GRPCDeadlineExceeded
	case cellway.BodyTooLarge:
		a.Detail, a.GRPC = "The body is larger than is allowed here.", GRPCResourceExhausted
	case cellway.HeadTooLarge:
		a.Detail, a.GRPC = "The head is larger than is allowed here.", GRPCResourceExhausted
	case cellway.NotReady:
		a.Detail, a.GRPC = "The service is starting or stopping.", GRPCUnavailable
		a.Fault, a.After = "proxy_configuration_error", 1
	default:
		a.Detail, a.Fault = "The request could not be forwarded.", "proxy_internal_error"
	}
	return a
}
