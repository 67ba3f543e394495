package engine

import (
	"fmt"

	"github.com/cellway/cellway"
)

// A Reason says why the head, body framing or trailers of a request, or of a
// cell's answer, were refused.
// Its String is short, constant and fit for a metric's label.
type Reason uint8

// The reasons. The zero Reason is no complaint.
const (
	OK                Reason = iota
	ReasonBareLF             // a line feed without its carriage return
	ReasonBareCR             // a carriage return without its line feed
	ReasonControl            // NUL or another control character
	ReasonBlankLine          // an empty line where a request should start
	ReasonLine               // the first line is not "method target version"
	ReasonMethod             // the method is no token
	ReasonTarget             // the target has a form or byte that is not allowed
	ReasonVersion            // neither HTTP/1.0 nor HTTP/1.1
	ReasonConnect            // CONNECT: the router is no tunnel to anywhere
	ReasonName               // a field's name is empty or no token
	ReasonNameSpace          // a space before a field's colon
	ReasonFold               // a field continued on a second line
	ReasonLookalike          // a name that some servers read as a framing field, such as Content_Length
	ReasonHostMissing        // HTTP/1.1 without a Host
	ReasonHostTwice          // more than one Host
	ReasonHost               // a Host that is no host and port
	ReasonHostDiffers        // the Host is not the target's
	ReasonLengthTwice        // more than one Content-Length, or a list
	ReasonLength             // a Content-Length that is no plain number
	ReasonLengthAndTE        // both Content-Length and Transfer-Encoding
	ReasonTE                 // a Transfer-Encoding other than chunked, or two
	ReasonTEOld              // a Transfer-Encoding in HTTP/1.0
	ReasonTrailerName        // a trailer that may not be one
	ReasonChunkSize          // a chunk's size is no plain hexadecimal number
	ReasonChunkExt           // chunk extensions that are malformed or too long
	ReasonChunkEnd           // a chunk without its line end
	ReasonTrailers           // malformed or too long trailers
	ReasonH2                 // cleartext HTTP/2 is not spoken here, or its preface is wrong
	ReasonField              // a field that HTTP/2 forbids
	ReasonTooLarge           // the head is over its limit in bytes
	ReasonTooMany            // the head has too many fields
	ReasonSlow               // the head did not arrive in time
	ReasonExpect             // an Expect other than 100-continue
	ReasonCleartext          // HTTP where TLS is spoken
	ReasonStatus             // an answer's status is not three digits
	ReasonNoBody             // an answer announces a body where none may be
	numReasons               // not a reason
)

var reasonNames = [numReasons]string{
	"ok", "bare_lf", "bare_cr", "control", "blank_line", "line", "method", "target", "version", "connect",
	"name", "name_space", "fold", "lookalike", "host_missing", "host_twice", "host", "host_differs",
	"length_twice", "length", "length_and_te", "te", "te_old", "trailer_name",
	"chunk_size", "chunk_ext", "chunk_end", "trailers", "h2", "field", "too_large", "too_many", "slow", "expect", "cleartext",
	"status", "no_body",
}

var reasonDetails = [numReasons]string{
	"", "a line ends with a bare line feed", "a carriage return stands alone", "there is a control character",
	"an empty line stands where a request should start", "the first line is not \"method target version\"",
	"the method is no token", "the target has a form or a byte that is not allowed", "the version is neither HTTP/1.0 nor HTTP/1.1",
	"CONNECT is not served here", "a field's name is no token", "a space stands before a field's colon",
	"a field goes on in a second line", "a field's name looks like one that frames the message", "the Host is missing",
	"there is more than one Host", "the Host is not a host and a port", "the Host is not the target's",
	"there is more than one Content-Length", "the Content-Length is no plain number",
	"there are both Content-Length and Transfer-Encoding", "the Transfer-Encoding is not chunked",
	"HTTP/1.0 has no Transfer-Encoding", "a field may not be a trailer", "a chunk's size is no plain hexadecimal number",
	"a chunk's extensions are malformed or too long", "a chunk does not end where its size says",
	"the trailers are malformed or too long", "cleartext HTTP/2 is not served here, or its preface is wrong",
	"a field is not allowed in HTTP/2", "the head is too large", "the head has too many fields", "the head did not arrive in time",
	"the Expect is not 100-continue", "this port speaks HTTPS",
	"the status is not three digits", "the answer announces a body where none may be",
}

func (r Reason) String() string {
	if r < numReasons {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// Detail returns a sentence for people, without its capital and full stop.
func (r Reason) Detail() string {
	if r < numReasons {
		return reasonDetails[r]
	}
	return r.String()
}

// Code returns the answer that goes with r.
func (r Reason) Code() cellway.Code {
	switch r {
	case OK:
		return ""
	case ReasonTooLarge, ReasonTooMany:
		return cellway.HeadTooLarge
	case ReasonSlow:
		return cellway.ClientTimeout
	}
	return cellway.BadRequest
}

// A Refusal is the error of a request that the checker refused. A body that
// breaks its framing makes reads from it fail with one.
type Refusal struct{ Reason Reason }

func (r *Refusal) Error() string { return "request refused: " + r.Reason.Detail() }

// Unwrap makes a Refusal an [cellway.ErrInvalid].
func (r *Refusal) Unwrap() error { return cellway.ErrInvalid }
