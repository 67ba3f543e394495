package cellway

// A Code is the stable name of an answer that a router gives itself instead of
// forwarding, or of what went wrong while it forwarded. "" means no complaint.
type Code string

// The router's answers. Their statuses are in [Code.Status].
const (
	BadRequest      Code = "bad_request"         // framing or head can't be read one way only
	ClientTimeout   Code = "client_timeout"      // the client was too slow
	BodyTooLarge    Code = "body_too_large"      //
	HeadTooLarge    Code = "head_too_large"      //
	Loop            Code = "loop"                // the request came round again
	KeyMissing      Code = "key_missing"         // no extractor found a key
	KeyConflict     Code = "key_conflict"        // two places disagree, or one has two values
	KeyInvalid      Code = "key_invalid"         // the value found is not a key
	KeyUnknown      Code = "key_unknown"         // the map has no owner for it
	KeyGone         Code = "key_gone"            // deleted
	KeyQuarantined  Code = "key_quarantined"     // quarantined without a cell
	CellDrained     Code = "cell_drained"        // the cell does not admit this key now
	KeyHeld         Code = "key_held"            // in mid-move for too long, or too many wait
	CellSaturated   Code = "cell_saturated"      // the cell's own limit in this router
	RouterSaturated Code = "router_saturated"    // the router's own limit
	CellUnreachable Code = "cell_unreachable"    // breaker open or nothing connects
	CellTimeout     Code = "cell_timeout"        // no answer head in time
	CellProtocol    Code = "cell_protocol_error" // the answer is malformed or broke off
	CellMismatch    Code = "cell_mismatch"       // the cell's guard says "not mine", twice
	NotReady        Code = "not_ready"           // no map yet
)

// Status returns the HTTP status that goes with c: 503 for an unknown code,
// 200 for "". The numbers are written out so that the vocabulary needs no HTTP.
func (c Code) Status() int {
	switch c {
	case "":
		return 200
	case BadRequest, KeyMissing, KeyConflict, KeyInvalid:
		return 400
	case ClientTimeout:
		return 408
	case BodyTooLarge:
		return 413
	case HeadTooLarge:
		return 431
	case Loop:
		return 508
	case KeyUnknown:
		return 404
	case KeyGone:
		return 410
	case CellTimeout:
		return 504
	case CellProtocol:
		return 502
	default:
		return 503
	}
}

// Retryable reports whether the same request may succeed a little later, so
// that the answer carries Retry-After.
func (c Code) Retryable() bool {
	switch c {
	case CellDrained, KeyHeld, CellSaturated, RouterSaturated, CellUnreachable, CellMismatch, NotReady:
		return true
	}
	return false
}
