package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/internal/plaintext"
	"github.com/cellway/cellway/internal/shell"
	"github.com/cellway/cellway/routemap"
)

// The refusals that are HTTP's own and no use case's.
var (
	errUnauthenticated = errors.New("no token or client certificate that is known here")
	errPrecondition    = errors.New("a revision is needed")
	errTooLarge        = errors.New("the body is too large")
	errMedia           = errors.New("the body must be JSON")
	errNoRoute         = errors.New("no such route")
	errMethod          = errors.New("no such method here")
	errCrossOrigin     = errors.New("refused: a browser sent it for another site")
)

// statuses is the one place where an error becomes a status. The first row
// that matches counts.
var statuses = []struct {
	err    error
	status int
	code   string
	title  string
}{
	{errUnauthenticated, http.StatusUnauthorized, api.CodeUnauthenticated, "who are you?"},
	{errCrossOrigin, http.StatusForbidden, api.CodeForbidden, "not permitted"},
	{errNoRoute, http.StatusNotFound, api.CodeNotFound, "not found"},
	{errMethod, http.StatusMethodNotAllowed, api.CodeMethodNotAllowed, "method not allowed"},
	{errPrecondition, http.StatusPreconditionRequired, api.CodePreconditionRequired, "name the revision that you read"},
	{errTooLarge, http.StatusRequestEntityTooLarge, api.CodeBodyTooLarge, "body too large"},
	{errMedia, http.StatusUnsupportedMediaType, api.CodeUnsupportedMedia, "not JSON"},
	{cellway.ErrGate, http.StatusConflict, api.CodeGate, "a person must confirm this"},
	{cellway.ErrNeedsMove, http.StatusConflict, api.CodeNeedsMove, "needs a move"},
	{cellway.ErrNoRoom, http.StatusConflict, api.CodeNoRoom, "no cell has room"},
	{cellway.ErrInUse, http.StatusConflict, api.CodeInUse, "still in use"},
	{cellway.ErrExists, http.StatusConflict, api.CodeExists, "exists already"},
	{cellway.ErrConflict, http.StatusPreconditionFailed, api.CodeConflict, "changed since it was read"},
	{cellway.ErrForbidden, http.StatusForbidden, api.CodeForbidden, "not permitted"},
	{cellway.ErrStoreDown, http.StatusServiceUnavailable, api.CodeStoreDown, "store not usable"},
	{cellway.ErrNotReady, http.StatusServiceUnavailable, api.CodeNotReady, "not ready"},
	{routemap.ErrOverlayFull, http.StatusServiceUnavailable, api.CodeNotReady, "not ready"},
	{cellway.ErrNotFound, http.StatusNotFound, api.CodeNotFound, "not found"},
	{cellway.ErrInvalid, http.StatusBadRequest, api.CodeInvalid, "invalid"},
	{routemap.ErrCheck, http.StatusBadRequest, api.CodeInvalid, "invalid"},
}

// internal is the answer to a fault. What went wrong is in the log, under the
// request id.
var internal = api.Problem{Code: api.CodeInternal, Title: "internal error", Status: http.StatusInternalServerError,
	Detail: "something went wrong here; the log of the control plane says what, under this request id"}

// problem returns what the caller is told of err, and whether it is a fault.
func problem(err error) (p api.Problem, fault bool) {
	for _, row := range statuses {
		if !errors.Is(err, row.err) {
			continue
		}
		p = api.Problem{Code: row.code, Title: row.title, Status: row.status, Detail: boot.PlainText(err.Error())}
		if gate, ok := errors.AsType[*control.GateError](err); ok {
			p.Causes, p.Counts, p.Digest = causes(gate.Causes), counts(gate.Counts), gate.Digest.String()
		}
		return p, false
	}
	return internal, true
}

// refuse answers with err, and logs it if it is a fault.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	s.refuseWith(w, r, err, nil)
}

// refuseWith is refuse with the command that asks the same again, for a refusal
// that can be confirmed.
func (s *Server) refuseWith(w http.ResponseWriter, r *http.Request, err error, command []string) {
	p, fault := problem(err)
	p.RequestID = requestID(r.Context())
	switch {
	case r.Context().Err() != nil && errors.Is(err, context.Cause(r.Context())):
		return // nobody is there to read it
	case fault:
		s.log.ErrorContext(r.Context(), "request failed", "route", r.Pattern, "request_id", p.RequestID, "error", err)
	case p.Status >= 500 && p.Code != api.CodeNotReady:
		s.log.WarnContext(r.Context(), "request refused", "route", r.Pattern, "request_id", p.RequestID, "error", err)
	}
	if p.Digest != "" && command != nil {
		p.Command = shell.Join(append(command, "--confirm", p.Digest))
	}
	switch p.Status {
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="cellway"`)
	}
	writeJSON(w, s.log, api.ProblemType, p.Status, p)
}

func writeJSON(w http.ResponseWriter, log *slog.Logger, media string, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		// Only a value that the store must not hold can't be written.
		log.Error("answer can't be written as JSON", "error", err)
		media, status, body = api.ProblemType, internal.Status, []byte(`{"code":"internal","title":"internal error","status":500}`)
	}
	w.Header().Set("Content-Type", media)
	w.WriteHeader(status)
	io.WriteString(w, plaintext.EscapeJSON(string(body))+"\n") // the client is gone if this fails
}
