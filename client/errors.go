package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
)

// ErrUnanswered is the error of a write of which nobody knows whether it took
// effect: its answer was lost, or it was that something failed on the way, the
// store or a proxy. Read the record to find out.
var ErrUnanswered = errors.New("no answer came, so it may have taken effect or not")

// ErrUnreachable is the error of a request that never reached the control
// plane: nothing has happened.
var ErrUnreachable = errors.New("can't reach the control plane")

// ErrUnauthenticated is the error of a request whose token or certificate the
// server does not know.
var ErrUnauthenticated = errors.New("not authenticated")

// ErrForeign is the error of an answer that no control plane gives: a router, a
// cell or another program listens at that address. It may be a success that lacks
// what every answer of its kind has, as the revision of a record; of a write
// that was answered so, [ErrUnanswered] is true as well.
var ErrForeign = errors.New("not a control plane")

// ErrCleartext is the error of a request in cleartext to a server that speaks TLS:
// its address begins with https. [ErrForeign] is true of it as well, as the server
// has not said who it is.
var ErrCleartext = errors.New("it speaks TLS, and was asked in cleartext")

// An Error is an answer that is not a success. It unwraps to the sentinel that
// its code stands for, if there is one.
type Error struct {
	api.Problem
	Op string // as in "PUT /v1/cells/cell-001"

	unsure  bool // a write that may have taken effect all the same
	foreign bool // somebody else's answer
	clear   bool // of a server that speaks TLS, to a request in cleartext
}

// Is reports whether target is [ErrForeign] and somebody else answered,
// [ErrCleartext] and a server that speaks TLS answered a request in cleartext, or
// [ErrUnanswered] and e leaves open whether the write took effect: a store that
// failed may have kept it, and behind a proxy that failed the control plane may
// have gone on.
func (e *Error) Is(target error) bool {
	return target == ErrUnanswered && e.unsure || target == ErrForeign && e.foreign || target == ErrCleartext && e.clear
}

func (e *Error) Error() string {
	switch {
	case e.Detail != "":
		return e.Detail
	case e.Title != "":
		return e.Op + ": " + e.Title
	}
	return fmt.Sprintf("%s: the server answered %d", e.Op, e.Status)
}

func (e *Error) Unwrap() error { return sentinels[e.Code] }

// sentinels maps codes back to the errors that the server made them of.
var sentinels = map[string]error{
	api.CodeInvalid:              cellway.ErrInvalid,
	api.CodeBodyTooLarge:         cellway.ErrInvalid,
	api.CodeUnsupportedMedia:     cellway.ErrInvalid,
	api.CodeUnauthenticated:      ErrUnauthenticated,
	api.CodeForbidden:            cellway.ErrForbidden,
	api.CodeNotFound:             cellway.ErrNotFound,
	api.CodeConflict:             cellway.ErrConflict,
	api.CodePreconditionRequired: cellway.ErrConflict,
	api.CodeExists:               cellway.ErrExists,
	api.CodeNeedsMove:            cellway.ErrNeedsMove,
	api.CodeGate:                 cellway.ErrGate,
	api.CodeNoRoom:               cellway.ErrNoRoom,
	api.CodeInUse:                cellway.ErrInUse,
	api.CodeNotReady:             cellway.ErrNotReady,
	api.CodeStoreDown:            cellway.ErrStoreDown,
}

// answeredBy takes in an answer that is not a success. A router says who it is
// by its Proxy-Status; what else is no problem of ours is a proxy's page, if it
// says that those behind it fail, or another program's.
func (e *Error) answeredBy(url string, resp *http.Response, text []byte) {
	ours := json.Unmarshal(text, &e.Problem) == nil && e.Code != ""
	router := resp.Header.Get("Proxy-Status") != "" && resp.Header.Get("X-Request-Id") == ""
	switch {
	case ours && !router:
	case router:
		e.foreign = true
		e.Problem = api.Problem{Detail: fmt.Sprintf("%s is a router or another proxy, %v: it answers %s with %s %.200s", url, ErrForeign, e.Op, resp.Status, strings.TrimSpace(string(text)))}
	case resp.StatusCode >= 500:
		e.Problem = api.Problem{Detail: fmt.Sprintf("%s: %s, and the answer is not the control plane's: %.200q", e.Op, resp.Status, text)}
	default:
		e.foreign = true
		e.clear = resp.StatusCode == http.StatusBadRequest && strings.HasPrefix(url, "http://") && wantsTLS(text)
		e.Problem = api.Problem{Detail: fmt.Sprintf("%s is %v: it answers %s with %s, %.200q", url, ErrForeign, e.Op, resp.Status, text)}
	}
	e.Status = resp.StatusCode
}

// wantsTLS reports whether text, the body of a 400, is what servers that speak TLS say
// to a request in cleartext: those of package http, and nginx. There is nothing else in
// such an answer to tell it by.
func wantsTLS(text []byte) bool {
	return bytes.Contains(text, []byte("HTTP request to an HTTPS server")) || bytes.Contains(text, []byte("plain HTTP request was sent to HTTPS port"))
}

// unreachable says that no connection to the control plane came about.
func (c *Client) unreachable(err error) error {
	msg := err.Error()
	hint := "is it running, and is this its address?"
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		hint = "it speaks plain HTTP: use http://"
	case strings.Contains(msg, "certificate"):
		hint = "name the authority that signed its certificate, or give the certificate that it asks for"
	}
	return fmt.Errorf("%w at %s; %s (%w)", ErrUnreachable, c.URL(), hint, err)
}
