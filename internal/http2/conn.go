package http2

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2/hpack"
)

// ErrReset says that the client has reset a stream, or that its connection has ended.
var ErrReset = errors.New("the client has reset the stream, or its connection has ended")

// preface is what a client sends first (RFC 9113, section 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// A Conn is a client's connection over HTTP/2.
type Conn struct {
	cfg  *Config
	conn net.Conn

	// These belong to the goroutine of Serve.
	in      *bufio.Reader
	lent    []byte // for the payload of a long frame
	open    uint32 // the stream whose head has not come whole; 0: there is none
	dec     *hpack.Decoder
	req     request
	began   *Stream   // whose head or trailers are being read; nil: they are of no stream
	refused bool      // and it has been refused
	block   int       // bytes of the head that is being read, as it is coded
	ending  bool      // the stream ends with it
	pending []*Stream // to be started
	reply   []byte    // frames that answer others, to be written before more is read
	score   score
	agreed  bool // the client has taken our settings in

	mu        sync.Mutex
	gave      []uint32 // the last streams that were ended here before the client did
	gaveAt    int
	streams   map[uint32]*Stream
	alive     int // streams of which something is to come, or to be sent (RFC 9113, section 5.1.2)
	running   int // those that are being served, also if they were reset or are answered
	last      uint32
	window    int64 // what may be sent
	first     int64 // the same of a new stream
	received  int64 // what the client may send
	owed      int64 // what was read of that since it was told
	leaving   bool  // the client was told to go
	final     bool  // and which streams are the last ones
	lastFinal uint32
	ended     bool
	since     time.Time // when the last stream ended, or the connection began
	blocked   time.Time // when a head began that is not whole
	begun     bool      // the client's settings have come
	timer     *time.Timer

	out      output
	writing  atomic.Int64 // since when something is being written, or 0
	idle     atomic.Bool  // there is no stream
	answered atomic.Int32 // streams, since the score was looked at
	told     atomic.Bool  // a part of a body was sent since a ping was answered
}

// NewConn returns a Conn over conn, of which begun was read already. It starts nothing.
func NewConn(conn net.Conn, begun []byte, cfg *Config) *Conn {
	c := &Conn{
		cfg: cfg, conn: conn,
		streams: make(map[uint32]*Stream),
		window:  65535, first: 65535, received: connWindow,
		since: time.Now(),
	}
	c.idle.Store(true)
	c.out.room.L = &c.mu
	c.req.most, c.req.fields = cfg.HeadBytes, cfg.HeadFields
	c.in = bufio.NewReaderSize(&source{c, begun}, readBuffer)
	c.dec = hpack.NewDecoder(4096, c.req.field)
	c.dec.SetMaxStringLength(2*cfg.HeadBytes + 32*cfg.HeadFields)
	return c
}

// Conn returns the connection itself.
func (c *Conn) Conn() net.Conn { return c.conn }

// Idle reports whether there is no stream.
func (c *Conn) Idle() bool { return c.idle.Load() }

// A source is what a connection brings. Before it is read, all is done that what
// came before asks for.
type source struct {
	c     *Conn
	begun []byte
}

func (s *source) Read(p []byte) (int, error) {
	if len(s.begun) > 0 {
		n := copy(p, s.begun)
		s.begun = s.begun[n:]
		return n, nil
	}
	s.begun = nil
	if err := s.c.flush(); err != nil { // the settings first, before any answer
		return 0, err
	}
	s.c.start()
	return s.c.conn.Read(p)
}

// Serve serves the connection until it has ended, and closes it. Streams may
// still be served then; they can neither read nor write.
func (c *Conn) Serve() {
	defer c.conn.Close() // nobody is left to tell
	defer c.end()        // in case that somebody panics
	c.mu.Lock()
	period := max(min(c.cfg.HeadTimeout, c.cfg.IdleTimeout, c.cfg.WriteTimeout)/4, 10*time.Millisecond)
	c.timer = time.AfterFunc(period, func() { c.look(period) })
	c.mu.Unlock()
	err := c.read()
	ce, wrong := err.(connError)
	if wrong {
		c.goAway(code(ce))
	} else if isTimeout(err) {
		c.goAway(codeNo)
	}
	c.end()
	if wrong || isTimeout(err) {
		c.linger()
	}
}

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// goAway says the last word.
func (c *Conn) goAway(why code) {
	c.mu.Lock()
	last := c.last
	if c.final {
		last = c.lastFinal
	}
	c.mu.Unlock()
	c.reply = appendGoAway(c.reply, last, why)
	c.conn.SetWriteDeadline(time.Now().Add(time.Second))
	_ = c.flush() // the connection ends anyway
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drainLocked()
}

// linger lets the client read the last words: closing with unread bytes would
// destroy them on their way.
func (c *Conn) linger() {
	if w, ok := c.conn.(interface{ CloseWrite() error }); ok && w.CloseWrite() == nil {
		c.conn.SetReadDeadline(time.Now().Add(250 * time.Millisecond))
		_, _ = io.CopyN(io.Discard, c.conn, 256<<10) // the client ends it, or the time does
	}
}

// end ends all streams.
func (c *Conn) end() {
	c.mu.Lock()
	c.ended = true
	c.timer.Stop()
	all := make([]*Stream, 0, len(c.streams))
	for _, s := range c.streams {
		all = append(all, s)
	}
	clear(c.streams)
	c.mu.Unlock()
	for _, s := range all {
		s.reset(ErrReset)
	}
	for _, s := range c.pending {
		s.drop()
	}
	c.pending = nil
}

// read reads frames until something ends that.
func (c *Conn) read() error {
	c.reply = appendFrameHeader(c.reply, 3*6, frameSettings, 0, 0)
	c.reply = appendSetting(c.reply, settingStreams, mostStreams)
	c.reply = appendSetting(c.reply, settingWindow, streamWindow)
	c.reply = appendSetting(c.reply, settingHeaderList, uint32(c.cfg.HeadBytes+32*c.cfg.HeadFields))
	c.reply = appendUpdate(c.reply, 0, connWindow-65535)
	var begun [len(preface)]byte
	if _, err := io.ReadFull(c.in, begun[:]); err != nil {
		return err
	}
	if string(begun[:]) != preface {
		return connError(codeProtocol)
	}
	var f frame
	for first := true; ; first = false {
		err := c.next(&f)
		if err == nil && first {
			if f.kind != frameSettings || f.has(flagAck) {
				return connError(codeProtocol)
			}
			c.mu.Lock()
			c.begun = true
			c.mu.Unlock()
		}
		if err == nil {
			err = c.take(&f)
		}
		if se, ok := err.(streamError); ok {
			err = c.fail(se.id, se.code)
		}
		if err != nil {
			return err
		}
		if len(c.reply) > 1<<10 {
			if err := c.flush(); err != nil {
				return err
			}
		}
	}
}

// flush has written what answers frames of the client's. It waits where more would be
// gathered than is good.
func (c *Conn) flush() error {
	if len(c.reply) == 0 {
		return nil
	}
	err := c.send(c.reply)
	c.reply = c.reply[:0]
	return err
}

// stuck reports whether the client has taken nothing for that long of what is being
// sent.
func (c *Conn) stuck(d time.Duration) bool {
	at := c.writing.Load()
	return at != 0 && time.Now().UnixNano()-at > int64(d)
}

// breakOff ends a connection that can't be written to any more.
func (c *Conn) breakOff() { c.conn.SetDeadline(time.Unix(1, 0)) }

// look ends what takes too long.
func (c *Conn) look(period time.Duration) {
	if c.stuck(c.cfg.WriteTimeout) {
		c.breakOff()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	limit, since := c.cfg.IdleTimeout, c.since
	if !c.begun {
		limit = c.cfg.HeadTimeout
	}
	if !c.blocked.IsZero() {
		limit, since = c.cfg.HeadTimeout, c.blocked
	}
	if (c.running == 0 || !c.blocked.IsZero()) && time.Since(since) > limit {
		if !c.final { // what comes at this moment is to be sent anew
			c.final, c.lastFinal = true, c.last
		}
		c.conn.SetReadDeadline(time.Unix(1, 0))
		return
	}
	c.timer.Reset(period)
}

// leaveTime is how long a client may take to learn that it shall go. Streams that it
// begins meanwhile are served.
const leaveTime = 300 * time.Millisecond

// Shutdown tells the client to go, and ends the connection after its last stream.
func (c *Conn) Shutdown() {
	c.mu.Lock()
	if c.leaving || c.ended {
		c.mu.Unlock()
		return
	}
	c.leaving = true
	c.mu.Unlock()
	time.AfterFunc(leaveTime, c.leave)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.postLocked(appendGoAway(nil, 1<<31-1, codeNo))
}

// leave lets no more streams begin.
func (c *Conn) leave() {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return
	}
	c.final, c.lastFinal = true, c.last
	defer c.mu.Unlock()
	if c.running == 0 {
		c.conn.SetReadDeadline(time.Unix(1, 0)) // which says so once more
		return
	}
	c.postLocked(appendGoAway(nil, c.lastFinal, codeNo))
}

// Close ends the connection at once.
func (c *Conn) Close() { c.breakOff() }
