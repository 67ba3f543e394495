package engine

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A bridge is the far end of a link to an endpoint that does not speak HTTP/1.1. It
// takes the one request that is sent over the link to the endpoint's transport, and
// writes the answer as HTTP/1.1. So a call that goes over it is one like any
// other, with the same limits and the same ends.
type bridge struct {
	e      *endpoint
	link   *link
	of     *client  // whose call goes over the link
	conn   net.Conn // the other end is the link's
	cancel context.CancelFunc
	failed atomic.Pointer[error] // why there is no answer, or no whole one
	hints  chan hint
	once   bool // what was sent in part is not sent again

	mu       sync.Mutex
	answered bool         // the transport has returned, with an answer's head or without
	body     *bridgedBody // which the transport has, and does not want to end; or nil
}

// bridge returns a link over which the call may go to e as net/http sends it.
func (k *Call) bridge(e *endpoint) *link {
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	l := &link{e: e}
	b := &bridge{e: e, link: l, of: k.c, conn: theirs, cancel: cancel, hints: make(chan hint, maxInterim+1), once: k.o.Once}
	l.init(&bridged{ours, b})
	go b.serve(ctx)
	return l
}

// enter says what the call is doing, as long as it goes over the bridge. The time that
// it takes to connect is not the cell's for an answer.
func (b *bridge) enter(s stage) {
	c := b.of
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link == b.link {
		c.enter(s, c.srv.now())
	}
}

// A bridged is the near end of a bridge.
type bridged struct {
	net.Conn
	far *bridge
}

// Read says at the end why the answer has none, if that is so.
func (c *bridged) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if f := c.far.failed.Load(); err == io.EOF && f != nil {
		err = *f
	}
	return n, err
}

// Write hides that the answer has ended: that is what counts.
func (c *bridged) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if !errors.Is(err, io.ErrClosedPipe) {
		return n, err
	}
	if f := c.far.failed.Load(); f != nil {
		return n, *f
	}
	return len(p), nil
}

// Close ends the request, if it has not ended.
func (c *bridged) Close() error {
	c.far.cancel()
	return c.Conn.Close()
}

// serve serves the request. It ends with it, or when the near end is closed.
func (b *bridge) serve(ctx context.Context) {
	defer b.cancel()
	defer b.conn.Close()
	if err := b.forward(ctx); err != nil {
		if _, ok := errors.AsType[*connectError](err); !ok {
			err = foreign{err}
		}
		b.failed.Store(&err)
	}
}

func (b *bridge) forward(ctx context.Context) error {
	req, src, err := b.readRequest()
	if err != nil {
		return err
	}
	var again *Replay
	if src != nil {
		again = NewReplay(req, 0)
		defer again.Close()
		req.Body = b.begin(again)
		req.GetBody = func() (io.ReadCloser, error) {
			if !again.Rewind() {
				return nil, errBodyClosed
			}
			return b.begin(again), nil
		}
	}
	resp, err := b.reach(ctx, req, again)
	if err != nil {
		if ce, ok := errors.AsType[*connectError](err); ok {
			b.e.spoken.forget() // it may be another server that is there next
			return ce
		}
		return err
	}
	defer resp.Body.Close()
	if resp.ProtoMajor == 1 {
		b.e.spoken.forget()
	}
	return b.answer(req.Method, resp)
}

// reach sends the request and returns the final answer. It sends a safe one again if
// that is how it looks that the connection had been closed meanwhile.
func (b *bridge) reach(ctx context.Context, req *http.Request, again *Replay) (*http.Response, error) {
	for fresh := 0; ; fresh++ {
		var used, heard atomic.Bool
		began := time.Now()
		trying, end := context.WithCancelCause(ctx) // which its answer needs until ctx ends
		a := &try{end: end}
		trace := &httptrace.ClientTrace{
			GotConn: func(i httptrace.GotConnInfo) {
				if !followed(i.Conn, req.Method) {
					a.mistrust()
					return
				}
				used.Store(madeBefore(i, began))
				b.enter(atCell)
			},
			GotFirstResponseByte: func() { heard.Store(!a.unsound.Load()) },
			Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
				if a.unsound.Load() {
					return errStale
				}
				return b.hint(code, h)
			},
		}
		resp, err := b.attempt(req.WithContext(httptrace.WithClientTrace(trying, trace)), fresh == maxFresh)
		stale := a.unsound.Load()
		if stale && err == nil {
			resp.Body.Close()
			resp, err = nil, errStale
		}
		stale = stale || err != nil && used.Load() && !b.once && !heard.Load() && !endsStream(err) && isSafe([]byte(req.Method))
		switch {
		case !stale, fresh == maxFresh, ctx.Err() != nil, again != nil && !again.Rewind():
			b.conclude(req)
			return resp, err
		case again != nil:
			req.Body = b.begin(again)
		}
	}
}

// attempt sends the request once, the last time over a connection of its own. It writes
// what comes before the final answer: the transport calls hint where other requests'
// answers are read as well.
func (b *bridge) attempt(req *http.Request, last bool) (resp *http.Response, err error) {
	b.enter(atWork) // until there is a connection
	done := make(chan struct{})
	go func() {
		defer close(done)
		tr := b.e.plain
		if last || b.e.alone(plain, req.Trailer) {
			tr = b.e.anew(plain)
		}
		resp, err = tr.RoundTrip(req)
	}()
	for {
		select {
		case h := <-b.hints:
			if err := b.writeHint(h); err != nil {
				b.cancel()
			}
			continue
		case <-done:
		}
		break
	}
	for err == nil && len(b.hints) > 0 {
		if err = b.writeHint(<-b.hints); err != nil {
			resp.Body.Close()
		}
	}
	return resp, err
}

// conclude says that the transport has returned.
func (b *bridge) conclude(req *http.Request) {
	if req.Body == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answered = true
	b.drainLocked()
}

// hint takes in an interim answer.
func (b *bridge) hint(status int, h textproto.MIMEHeader) error {
	if status == http.StatusSwitchingProtocols {
		return errSwitch
	}
	select {
	case b.hints <- hint{status, http.Header(h)}:
		return nil
	default:
		return errInterim
	}
}

// readRequest reads the head that the engine has written, and returns the request
// as it goes to the endpoint, with its body.
func (b *bridge) readRequest() (*http.Request, *sentPart, error) {
	buf, scanned, length := make([]byte, 0, 2*smallBuffer), 0, 0
	for length == 0 {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, len(buf))
		}
		n, err := b.conn.Read(buf[len(buf):cap(buf)])
		if err != nil {
			return nil, nil, err
		}
		buf = buf[:len(buf)+n]
		var r Reason
		if length, scanned, r = ScanHead(buf, scanned); r != OK {
			return nil, nil, &Refusal{r}
		}
	}
	var h Head
	if r := h.Parse(buf[:length], HeadLimits{}); r != OK {
		return nil, nil, &Refusal{r}
	}
	req := b.request(&h)
	if h.Length <= 0 && !h.Chunked {
		return req, nil, nil
	}
	src := &sentPart{conn: b.conn, buf: buf, at: length, end: len(buf), left: h.Length, chunked: h.Chunked, req: req}
	src.dec.reset()
	req.Body, req.ContentLength = io.NopCloser(src), h.Length
	if h.Chunked {
		req.TransferEncoding = []string{"chunked"} // else a GET's body is waited for
	}
	return req, src, nil
}

// request returns the request that has the head.
func (b *bridge) request(h *Head) *http.Request {
	req := &http.Request{
		Method: string(h.Method), Host: string(h.Host), Header: make(http.Header, len(h.Fields)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		URL: &url.URL{Scheme: b.e.scheme, Host: b.e.authority},
	}
	setTarget(req.URL, &http.Request{Method: req.Method, RequestURI: string(h.Target)}, req.Host)
	for _, f := range h.Fields {
		name := http.CanonicalHeaderKey(string(f.Name))
		switch {
		case name == "Trailer":
			for e := range strings.SplitSeq(string(f.Value), ",") {
				if req.Trailer == nil {
					req.Trailer = make(http.Header)
				}
				req.Trailer[http.CanonicalHeaderKey(strings.TrimSpace(e))] = nil
			}
		case name == "Te" || !isHopByHop(name) && !isFramingField(f.Name):
			req.Header[name] = append(req.Header[name], string(f.Value))
		}
	}
	onlyOwnWords(req.Header)
	return req
}
