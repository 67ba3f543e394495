package engine

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/cellway/cellway"
)

// tunnel answers an upgrade and relays bytes both ways until both directions
// have ended, one fails, all is silent for too long, or the context ends.
func (t *transfer) tunnel(resp *http.Response) {
	cell, ok := resp.Body.(io.ReadWriteCloser)
	if !ok {
		t.fail(cellway.CellProtocol, 502, fmt.Errorf("a %T can't be written to: %w", resp.Body, errSwitch))
		return
	}
	t.silence()
	t.leaveGate()
	t.pool.upgraded.Add(1)
	defer t.pool.upgraded.Add(-1)
	head := t.switchHead(resp)
	client, rw, err := t.rc.Hijack()
	if err != nil {
		t.fail(cellway.CellProtocol, 502, fmt.Errorf("take the connection over: %w", err))
		return
	}
	defer client.Close()
	t.rep.HeadSent, t.rep.Tunnel = true, true
	if c := checkedConn(client); c != nil && !c.raw() {
		t.fail(cellway.BadRequest, 400, &Refusal{c.refused()})
		return
	}
	t.watch.enter(tunnelling)
	shut := func() { client.Close(); cell.Close() }
	stop := context.AfterFunc(t.ctx, shut)
	defer stop()
	if _, err := client.Write(head); err != nil {
		t.fail(ClientGone, StatusClientGone, fmt.Errorf("write the answer: %w", err))
		return
	}

	var in, out atomic.Int64
	var once sync.Once
	var late *fuse
	ended := func(dst any, err error) {
		// A direction that ended well leaves the other one some time.
		if w, ok := dst.(interface{ CloseWrite() error }); ok && err == nil && w.CloseWrite() == nil {
			once.Do(func() { late = newFuse(t.watch.silent, shut) })
			return
		}
		shut()
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		ended(cell, t.relay(cell, early(rw.Reader, client), &in))
	})
	err = t.relay(client, cell, &out)
	ended(client, err)
	wg.Wait()
	late.putOut()
	shut()
	t.rep.BytesIn, t.rep.BytesOut = in.Load(), out.Load()
	switch cause := context.Cause(t.ctx); {
	case cause == errTunnelSilent:
		t.rep.Code, t.rep.Err = Stopped, cause
	case cause != nil:
		t.failGone()
	}
}

// switchHead returns the 101 as it goes to the client.
func (t *transfer) switchHead(resp *http.Response) []byte {
	h := make(http.Header)
	t.answerHeader(h, resp.Header)
	if t.o.Edit != nil {
		t.o.Edit.EditAnswer(resp.StatusCode, HTTPHeader(h))
	}
	h["Connection"] = []string{"Upgrade"}
	h["Upgrade"] = resp.Header["Upgrade"]
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	h.Write(&b)
	b.WriteString("\r\n")
	return b.Bytes()
}

// early returns a reader of what net/http had read already, and then of c.
func early(r *bufio.Reader, c net.Conn) io.Reader {
	n := r.Buffered()
	if n == 0 {
		return c
	}
	b, _ := r.Peek(n)
	return io.MultiReader(bytes.NewReader(bytes.Clone(b)), c)
}

// relay copies src to dst until src ends.
func (t *transfer) relay(dst io.Writer, src io.Reader, count *atomic.Int64) error {
	buf := lease{from: &t.pool.all.buffers}
	buf.take(false)
	defer buf.giveBack()
	for {
		b := buf.bytes()
		n, err := src.Read(b)
		t.watch.move()
		if n > 0 {
			if _, werr := dst.Write(b[:n]); werr != nil {
				return werr
			}
			count.Add(int64(n))
			t.watch.move()
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		buf.fit(n)
	}
}

// A lease is a buffer that is small for streams that trickle and large for
// those that flow. Most open streams trickle.
type lease struct {
	from  *buffers
	p     *[]byte
	large bool
}

func (l *lease) bytes() []byte { return *l.p }

func (l *lease) take(large bool) {
	if l.large = large; large {
		l.p = l.from.get()
	} else {
		l.p = l.from.getSmall()
	}
}

func (l *lease) giveBack() {
	if l.large {
		l.from.put(l.p)
	} else {
		l.from.putSmall(l.p)
	}
}

// fit takes the other size if the last read, of n bytes, asks for it.
func (l *lease) fit(n int) {
	if full := n == len(*l.p); !l.large && full || l.large && n <= smallBuffer/4 {
		l.giveBack()
		l.take(!l.large)
	}
}
