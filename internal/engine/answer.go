package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/http2"
)

// take deals with an answer whose head is there.
func (t *transfer) take(resp *http.Response) {
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		to := resp.Header["Upgrade"]
		if t.kind != upgrade || len(to) != 1 || !strings.EqualFold(to[0], t.in.Header.Get("Upgrade")) || announcesBody(resp) || !t.bodyEnded() {
			t.fail(cellway.CellProtocol, 502, errSwitch)
			return
		}
		t.tunnel(resp)
		return
	case resp.StatusCode < 200 || resp.StatusCode > 999:
		t.fail(cellway.CellProtocol, 502, fmt.Errorf("status %d: %w", resp.StatusCode, errStatus))
		return
	case unclearLength(resp):
		t.fail(cellway.CellProtocol, 502, errLength)
		return
	}
	if t.o.Edit != nil && t.o.Edit.InspectAnswer(resp.StatusCode, HTTPHeader(resp.Header)) {
		t.silence()
		t.rep.Swallowed = true
		t.discard(resp)
		t.closeAfter()
		return
	}
	if t.ctx.Err() != nil { // it would be broken off behind its head
		t.failStream(context.Cause(t.ctx), false)
		return
	}
	if t.o.Body != nil {
		t.o.Body.settle()
	}
	t.sendHead(resp)
	if t.sendBody(resp) {
		t.sendTrailers(resp)
	}
}

// announcesBody reports whether a 101 says that a body follows, which none can.
func announcesBody(resp *http.Response) bool {
	length := resp.Header.Get("Content-Length")
	return len(resp.TransferEncoding) > 0 || length != "" && length != "0"
}

// unclearLength reports whether an answer over HTTP/2 announces a length that can be read
// in two ways, or in none. Package http refuses such a one over HTTP/1, and hands it on
// over HTTP/2, where it has no need for it; a client over HTTP/1 has.
func unclearLength(resp *http.Response) bool {
	return resp.ProtoMajor == 2 && resp.ContentLength < 0 && len(resp.Header["Content-Length"]) > 0
}

// bodyless reports whether an answer has no body, whatever length it announces.
func bodyless(method string, status int) bool {
	return method == http.MethodHead || status == http.StatusNoContent || status == http.StatusNotModified
}

// discard reads a short body to its end, so that its connection can be used
// again. Others are cut off.
func (t *transfer) discard(resp *http.Response) {
	const most = 4 << 10
	if resp.ContentLength > most {
		return
	}
	stop := time.AfterFunc(100*time.Millisecond, func() { resp.Body.Close() })
	defer stop.Stop()
	io.CopyN(io.Discard, resp.Body, most)
}

// sendHead sends the answer's head.
func (t *transfer) sendHead(resp *http.Response) {
	t.silence()
	h := t.w.Header()
	t.answerHeader(h, resp.Header)
	if resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusNotModified && t.in.ProtoMajor != 1 {
		delete(h, "Content-Length") // clients of HTTP/2 would wait for what it announces
	}
	if resp.StatusCode == http.StatusUpgradeRequired && t.in.ProtoMajor == 1 && len(resp.Header["Upgrade"]) > 0 {
		h["Upgrade"] = resp.Header["Upgrade"] // a 426 must say to what
		h["Connection"] = []string{"Upgrade"}
	}
	if len(resp.Trailer) > 0 {
		names := make([]string, 0, len(resp.Trailer))
		for name := range resp.Trailer {
			if t.isTrailer(name) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		if len(names) > 0 {
			h["Trailer"] = []string{strings.Join(names, ", ")}
		}
	}
	if _, ok := h["Content-Type"]; !ok {
		h["Content-Type"] = nil // net/http would guess one
	}
	if t.o.Edit != nil {
		t.o.Edit.EditAnswer(resp.StatusCode, HTTPHeader(h))
	}
	t.closeAfter()
	t.rep.HeadSent = true
	t.w.WriteHeader(resp.StatusCode)
	t.streaming.Store(true)
	if t.ctx.Err() != nil {
		t.unblock() // it may have ended before streaming was set
	}
}

// isTrailer reports whether a trailer of the cell's answer may go on.
func (t *transfer) isTrailer(name string) bool {
	return !isHopByHop(name) && !framesMessage([]byte(name)) && (t.o.KeepCellHeaders || !isCellField(name))
}

// sendBody streams the answer's body and reports whether all of it went out.
// What was read is flushed at once, unless it is the end: nobody knows when
// the cell will send more.
func (t *transfer) sendBody(resp *http.Response) bool {
	if resp.Body == http.NoBody || bodyless(t.in.Method, resp.StatusCode) {
		return true
	}
	length := resp.ContentLength
	if length < 0 || len(resp.Trailer) > 0 {
		t.rc.Flush()
	}
	buf := lease{from: &t.pool.all.buffers}
	buf.take(length < 0 || length > smallBuffer)
	defer buf.giveBack()
	for {
		b := buf.bytes()
		n, err := resp.Body.Read(b)
		t.watch.move()
		if n > 0 {
			if werr := t.write(b[:n], length < 0 || t.rep.BytesOut+int64(n) < length); werr != nil {
				t.failStream(werr, true)
				return false
			}
		}
		if err == io.EOF {
			return true
		}
		if err != nil {
			t.failStream(err, false)
			return false
		}
		buf.fit(n)
	}
}

func (t *transfer) write(b []byte, flush bool) error {
	t.watch.writing.Store(true)
	defer t.watch.writing.Store(false)
	n, err := t.w.Write(b)
	t.rep.BytesOut += int64(n)
	if err == nil && flush {
		err = t.rc.Flush()
		if errors.Is(err, http.ErrNotSupported) {
			err = nil
		}
	}
	t.watch.move()
	return err
}

// sendTrailers adds the trailers, announced or not.
func (t *transfer) sendTrailers(resp *http.Response) {
	if len(resp.Trailer) == 0 {
		return
	}
	for name, v := range resp.Trailer {
		if v != nil && t.isTrailer(name) {
			t.addTrailer(name, v)
		}
	}
}

// addTrailer adds a trailer, announced or not.
func (t *transfer) addTrailer(name string, v []string) {
	h := t.w.Header()
	if !hasListToken([]byte(strings.Join(h["Trailer"], ", ")), strings.ToLower(name)) {
		name = http.TrailerPrefix + name
	}
	h[name] = v
}

// failStream sorts the error of an answer whose head is out.
func (t *transfer) failStream(err error, writing bool) {
	switch cause := context.Cause(t.ctx); cause {
	case errCellStalled:
		t.fail(cellway.CellTimeout, 504, cause)
		return
	case errClientStuck:
		t.fail(cellway.ClientTimeout, 408, cause)
		return
	default:
		if t.failClient(cause) {
			return
		}
	}
	if writing {
		t.fail(ClientGone, StatusClientGone, fmt.Errorf("write the answer: %w", err))
		return
	}
	if err = fmt.Errorf("read the answer: %w", err); !t.failDeadline(err) {
		t.fail(cellway.CellProtocol, 502, foreign{err})
	}
}

// isDeadline reports whether err is the end of a deadline.
func isDeadline(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// isGone reports whether err says that the other side left.
func isGone(err error) bool {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.ErrClosedPipe) || errors.Is(err, http2.ErrReset) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	// net/http has no names for these.
	s := err.Error()
	return strings.Contains(s, "client disconnected") || strings.Contains(s, "stream error") || strings.Contains(s, "EOF reading trailer")
}
