package engine

import (
	"net/http"
	"time"

	"github.com/cellway/cellway"
)

// Outcomes that no client sees, beside those of the vocabulary.
const (
	// ClientGone means that the client went away before it had its answer.
	ClientGone cellway.Code = "client_gone"
	// Stopped means that the router ended the request: its context ended with
	// a cause of the caller's.
	Stopped cellway.Code = "stopped"
)

// StatusClientGone is what logs say of a client that went away.
const StatusClientGone = 499

// Options say how one request is forwarded.
type Options struct {
	// Tenant is whom the request is for. It is used only to tell tenants
	// apart: see [Breaker].
	Tenant cellway.TenantID

	// Edit edits the messages on their way. If nil, they go as they are.
	Edit Editor

	// KeepCellHeaders lets the X-Cell-* fields of the cell's answer through.
	KeepCellHeaders bool

	// Body is the body of a request of net/http if it may have to be sent once
	// more: see [NewReplay]. If nil, the request's own Body is sent and can't be
	// again. For a [Call], see [Call.KeepBody].
	Body *Replay

	// MaxBody is the size in bytes that the request's body may not exceed.
	// If zero, there is no limit.
	MaxBody int64

	// QueueWait is how long to wait for a place, if that is less than
	// Limits.QueueWait. If zero, that counts.
	QueueWait time.Duration

	// Patience may end the wait for an answer's head before Timeouts.FirstByte
	// does. If nil, nothing does.
	Patience Patience

	// Once has a request that was sent in part never sent again, not even over
	// another connection in place of a used one that broke before any answer.
	Once bool
}

// Patience says how long it is worth to wait for an answer's head, as there may be
// something better to do.
type Patience interface {
	// Limit returns how long to wait before GiveUp is asked, counted as
	// Timeouts.FirstByte is; if not positive, for ever. It is called for each
	// endpoint that the request is sent to, and again when GiveUp has said no: then
	// what is no longer than before counts as for ever.
	Limit() time.Duration
	// GiveUp reports whether to wait no longer: then the request ends as one whose
	// answer came too late. It is called by any goroutine, and must not
	// block, nor call anything of the engine; nor must Limit.
	GiveUp() bool
}

// A Report says what became of a forwarded request.
type Report struct {
	// Code says what went wrong, or "" if the cell's answer went out whole or
	// was swallowed.
	Code cellway.Code
	// Status is the answer's status once a head was received from the cell;
	// otherwise the one that goes with Code in this case.
	Status int
	// Err has the details of Code for a log. It may name addresses.
	Err error
	// HeadSent says that the client has the head of an answer, so that no
	// other can be written.
	HeadSent bool
	// Swallowed says that the Editor swallowed the answer.
	Swallowed bool
	// Tunnel says that the connection was upgraded. It is closed by now.
	Tunnel bool
	// Deadline says that the deadline of a gRPC call had passed when the cell
	// broke off. The deadline is the client's, so Code is [cellway.CellTimeout]
	// and no failure of the cell is counted; if HeadSent, trailers have told the
	// client.
	Deadline bool

	Endpoint  string        // the last one tried; "" if none was
	Attempts  int           // endpoints that it was tried at, each over as many connections as it took
	BytesIn   int64         // of the request's body, or from the tunnel's client
	BytesOut  int64         // of the answer's body, or to the tunnel's client
	Queued    time.Duration // waiting for a place
	FirstByte time.Duration // from the choice of the last endpoint to the answer's head; 0 without one
	AtCell    time.Duration // from the choice of the first endpoint to the end
}

// Abort ends the handler with [http.ErrAbortHandler] if the answer broke off
// after its head was out, so that the client sees that it is not whole. Call
// it last, when the report has been logged and counted.
func (r *Report) Abort() {
	if r.HeadSent && r.Code != "" && !r.Tunnel && !r.Deadline {
		panic(http.ErrAbortHandler)
	}
}

// Forward sends r to the cell and streams the answer to w. If the report has
// a Code and no HeadSent, nothing was written and the caller answers; over
// HTTP/1 Forward has then set Connection: close where part of the request is
// still unread. Otherwise call [Report.Abort] when done.
//
// It returns when the answer has ended, or the tunnel. The end of r's context
// ends it early, and its cause is in the report; so a caller closes a request
// whose key changed owner by cancelling a context of its own: see [Flights].
func (p *Pool) Forward(w http.ResponseWriter, r *http.Request, o Options) Report {
	t := newTransfer(p, w, r, o)
	t.run()
	p.count(&t.rep)
	return t.rep
}

// count counts a finished request.
func (p *Pool) count(r *Report) {
	if r.Deadline {
		p.clientGone.Add(1)
		return
	}
	switch r.Code {
	case cellway.CellUnreachable:
		if r.Attempts == 0 {
			p.open.Add(1)
		} else {
			p.connects.Add(1)
		}
	case cellway.CellSaturated:
		p.saturated.Add(1)
	case cellway.CellTimeout:
		p.timeouts.Add(1)
	case cellway.CellProtocol:
		p.protocol.Add(1)
	case Stopped:
		p.stopped.Add(1)
	case ClientGone, cellway.ClientTimeout, cellway.BadRequest, cellway.BodyTooLarge:
		p.clientGone.Add(1)
	}
}
