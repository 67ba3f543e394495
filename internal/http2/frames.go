package http2

import (
	"math"
	"slices"
	"time"
)

// take takes a frame in.
func (c *Conn) take(f *frame) error {
	switch f.kind {
	case frameData:
		return c.takeData(f)
	case frameHeaders:
		return c.takeHeaders(f)
	case frameContinuation:
		return c.takeBlock(f.payload, f.has(flagEndHeaders))
	case frameUpdate:
		return c.takeUpdate(f.id, int64(number(f.payload)&math.MaxInt32))
	case frameReset:
		return c.takeReset(f.id)
	case frameSettings:
		return c.takeSettings(f)
	case framePing:
		if f.has(flagAck) {
			return nil
		}
		c.reply = appendFrameHeader(c.reply, 8, framePing, flagAck, 0)
		c.reply = append(c.reply, f.payload...)
		if c.told.Swap(false) {
			return nil // some ask, for all that they get, how long it took
		}
		return c.idly(1)
	case framePriority:
		if number(f.payload)&math.MaxInt32 == f.id {
			return streamError{f.id, codeProtocol}
		}
		return c.idly(1)
	case frameGoAway:
		return nil // who sends it closes when it is served
	}
	return c.idly(1)
}

// idly counts what the client has sent to no purpose.
func (c *Conn) idly(points int) error {
	points -= resetPoints * int(c.answered.Swap(0)) // who gets answers may give some up
	if c.score.add(points) {
		return connError(codeCalm)
	}
	return nil
}

// fail ends a stream for a mistake of the client's.
func (c *Conn) fail(id uint32, why code) error {
	c.mu.Lock()
	s := c.streams[id]
	if s == nil && id > c.last {
		c.last = id // it was to begin with what was wrong
	}
	c.gaveUpLocked(id)
	c.mu.Unlock()
	if s != nil {
		s.reset(ErrReset)
		c.forget(s)
	}
	c.reply = appendReset(c.reply, id, why)
	return c.idly(resetPoints)
}

// gaveUpLocked keeps in mind that a stream was ended here, so that what its client
// has sent of it meanwhile is no mistake.
func (c *Conn) gaveUpLocked(id uint32) {
	if len(c.gave) <= mostStreams {
		c.gave = append(c.gave, id)
		return
	}
	c.gave[c.gaveAt] = id
	c.gaveAt = (c.gaveAt + 1) % len(c.gave)
}

func (c *Conn) hasGivenUpLocked(id uint32) bool { return slices.Contains(c.gave, id) }

// takeHeaders begins a head or trailers.
func (c *Conn) takeHeaders(f *frame) error {
	id, end := f.id, f.has(flagEndHeaders)
	if id%2 == 0 {
		return connError(codeProtocol)
	}
	c.began, c.refused, c.block, c.ending = nil, false, 0, f.has(flagEndStream)
	wrong := codeNo
	block := f.payload
	if f.has(flagPriority) {
		if len(block) < 5 {
			return connError(codeFrameSize)
		}
		if number(block)&math.MaxInt32 == id {
			wrong = codeProtocol
		}
		block = block[5:]
	}
	c.mu.Lock()
	s := c.streams[id]
	switch {
	case s != nil:
		c.began = s
		if s.inEnded {
			wrong = codeStreamClosed
		} else if !c.ending {
			wrong = codeProtocol
		}
	case id <= c.last:
		if c.refused = true; !c.hasGivenUpLocked(id) {
			c.mu.Unlock()
			return connError(codeProtocol)
		}
	default:
		c.last = id
		if c.final && id > c.lastFinal {
			c.refused = true // it has been told, and may not have heard it
			c.gaveUpLocked(id)
			c.reply = appendReset(c.reply, id, codeRefused)
			break
		}
		c.began = &Stream{c: c, id: id}
		c.began.init(c.first)
	}
	if !end {
		c.open = id
		c.blocked = time.Now()
	}
	c.mu.Unlock()
	c.req.begin(s != nil || c.refused)
	if wrong != codeNo && c.began != nil {
		c.req.malformed = true
		c.began.fault = wrong
	}
	return c.takeBlock(block, end)
}

// takeBlock takes in a part of a head or of trailers.
func (c *Conn) takeBlock(b []byte, end bool) error {
	if c.block += len(b); c.block > 2*c.cfg.HeadBytes+32*c.cfg.HeadFields {
		return connError(codeCalm)
	}
	if len(b) == 0 && !end {
		if err := c.idly(10); err != nil {
			return err
		}
	}
	if _, err := c.dec.Write(b); err != nil {
		return connError(codeCompression)
	}
	if !end {
		return nil
	}
	if c.dec.Close() != nil {
		return connError(codeCompression)
	}
	s := c.began
	c.began, c.open = nil, 0
	if !c.blocked.IsZero() {
		c.mu.Lock()
		c.blocked = time.Time{}
		c.mu.Unlock()
	}
	switch {
	case s == nil:
		return nil
	case s.fault != 0:
		return streamError{s.id, s.fault}
	case c.req.trailing:
		return c.trail(s)
	}
	return c.beginStream(s)
}

// beginStream takes in a stream whose head is there.
func (c *Conn) beginStream(s *Stream) error {
	r := &c.req
	if !r.whole() || c.ending && r.length > 0 {
		c.cfg.Malformed()
		return streamError{s.id, codeProtocol}
	}
	s.text = r.appendHead(getText())
	s.length, s.left = r.length, r.length
	s.trailers = r.announced
	s.inEnded = c.ending
	s.gRPC = r.grpc
	s.isHead = r.method == "HEAD"
	s.since = time.Now()
	c.mu.Lock()
	if c.alive >= mostStreams || c.running >= 2*mostStreams {
		c.gaveUpLocked(s.id)
		c.mu.Unlock()
		s.drop()
		c.reply = appendReset(c.reply, s.id, codeRefused)
		if !c.agreed { // it does not know better yet
			return c.idly(1)
		}
		return c.idly(resetPoints)
	}
	c.running++
	c.alive++
	s.alive = true
	c.streams[s.id] = s
	c.idle.Store(false)
	c.mu.Unlock()
	c.pending = append(c.pending, s)
	return nil
}

// start starts the streams whose heads have come.
func (c *Conn) start() {
	for i, s := range c.pending {
		c.pending[i] = nil
		c.mu.Lock()
		gone := s.err != nil
		if !gone {
			s.frameBody()
		}
		if gone {
			s.drop()
			c.stoppedLocked()
		}
		c.mu.Unlock()
		if gone {
			continue
		}
		go c.cfg.Serve(s)
	}
	c.pending = c.pending[:0]
}

// trail takes in trailers.
func (c *Conn) trail(s *Stream) error {
	if c.req.malformed {
		c.cfg.Malformed()
		return streamError{s.id, codeProtocol}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.err != nil {
		return nil
	}
	if s.left > 0 {
		return streamError{s.id, codeProtocol}
	}
	s.tail = append(s.tail, c.req.lines...)
	s.trailers = s.trailers || len(s.tail) > 0
	s.inEnded = true
	s.settleLocked()
	s.cond.Broadcast()
	return nil
}

// takeData takes in a part of a body.
func (c *Conn) takeData(f *frame) error {
	id, n, data, end := f.id, int64(f.length), f.payload, f.has(flagEndStream)
	c.mu.Lock()
	defer c.mu.Unlock()
	if id > c.last {
		return connError(codeProtocol) // it is idle
	}
	if c.received -= n; c.received < 0 {
		return connError(codeFlowControl)
	}
	s := c.streams[id]
	if s == nil || s.inEnded || s.err != nil {
		c.giveLocked(n)
		if s == nil && c.hasGivenUpLocked(id) {
			return nil
		}
		return streamError{id, codeStreamClosed}
	}
	if s.received -= n; s.received < 0 {
		c.giveLocked(n)
		return streamError{id, codeFlowControl}
	}
	if s.length >= 0 {
		if s.left -= int64(len(data)); s.left < 0 || end && s.left != 0 {
			c.giveLocked(n)
			return streamError{id, codeProtocol}
		}
	}
	if padding := n - int64(len(data)); padding > 0 {
		s.owed += padding
		c.owed += padding
	}
	s.add(data)
	s.inEnded = end
	s.settleLocked()
	s.cond.Broadcast()
	if len(data) == 0 && !s.inEnded {
		return c.idly(2)
	}
	return nil
}

// giveLocked lets the client send n bytes more, in whatever stream.
func (c *Conn) giveLocked(n int64) {
	if c.owed += n; c.owed >= connWindow/4 {
		c.reply = appendUpdate(c.reply, 0, uint32(c.owed))
		c.received += c.owed
		c.owed = 0
	}
}

// takeUpdate takes in that more may be sent.
func (c *Conn) takeUpdate(id uint32, more int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if more == 0 && (id == 0 || id > c.last) {
		return connError(codeProtocol)
	}
	if id == 0 {
		if c.window += more; c.window > math.MaxInt32 {
			return connError(codeFlowControl)
		}
		for _, s := range c.streams {
			if s.waits {
				s.cond.Broadcast()
			}
		}
		return nil
	}
	if id > c.last {
		return connError(codeProtocol)
	}
	if more == 0 {
		return streamError{id, codeProtocol}
	}
	if s := c.streams[id]; s != nil {
		if s.window += more; s.window > math.MaxInt32 {
			return streamError{id, codeFlowControl}
		}
		if s.waits {
			s.cond.Broadcast()
		}
	}
	return nil
}

// takeReset takes in that the client has given a stream up.
func (c *Conn) takeReset(id uint32) error {
	c.mu.Lock()
	if id > c.last {
		c.mu.Unlock()
		return connError(codeProtocol)
	}
	s := c.streams[id]
	patient := s != nil && (s.answer.state != atHead || time.Since(s.since) >= patience)
	c.mu.Unlock()
	if s == nil {
		return c.idly(1)
	}
	s.reset(ErrReset)
	c.forget(s)
	if patient {
		return nil // so many of these are no more than of requests
	}
	return c.idly(resetPoints)
}

// forget takes a stream out of the table.
func (c *Conn) forget(s *Stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.streams[s.id] == s {
		delete(c.streams, s.id)
	}
}

// takeSettings takes settings in, and says so.
func (c *Conn) takeSettings(f *frame) error {
	if f.has(flagAck) {
		c.agreed = true
		return nil
	}
	c.mu.Lock()
	err := c.settleLocked(f.payload)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	c.reply = appendFrameHeader(c.reply, 0, frameSettings, flagAck, 0)
	return c.idly(5)
}

// settleLocked takes settings in. Tables of fields are not used, and frames never larger
// than any client takes.
func (c *Conn) settleLocked(p []byte) error {
	if len(p) > 6*mostSettings {
		return connError(codeCalm)
	}
	window := c.first
	for ; len(p) > 0; p = p[6:] {
		v := number(p[2:])
		switch uint16(p[0])<<8 | uint16(p[1]) {
		case settingPush:
			if v > 1 {
				return connError(codeProtocol)
			}
		case settingFrame:
			if v < maxFrame || v > 1<<24-1 {
				return connError(codeProtocol)
			}
		case settingWindow:
			if v > math.MaxInt32 {
				return connError(codeFlowControl)
			}
			window = int64(v)
		}
	}
	more := window - c.first
	if c.first = window; more == 0 {
		return nil
	}
	for _, s := range c.streams {
		if s.window += more; s.window > math.MaxInt32 {
			return connError(codeFlowControl)
		}
		s.cond.Broadcast()
	}
	return nil
}
