package engine

import (
	"io"
	"net"
	"net/http"
)

// begin returns the body for an attempt of the transport.
func (b *bridge) begin(body *Replay) *bridgedBody {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.body = &bridgedBody{body.view(), b}
	return b.body
}

// drainLocked throws away what is still sent of a request that is answered and whose
// body the transport has closed: nobody else will read it.
func (b *bridge) drainLocked() {
	if b.answered && b.body == nil {
		go io.Copy(io.Discard, b.conn)
	}
}

// A sentPart reads the body of the request that is sent over a bridge.
type sentPart struct {
	conn    net.Conn
	buf     []byte // what was read and not taken in yet is buf[at:end]
	at, end int
	left    int64 // of a body that has a length
	chunked bool
	dec     chunkDecoder
	data    []byte        // of a chunk, not given yet
	req     *http.Request // gets the trailers
}

func (s *sentPart) Read(p []byte) (int, error) {
	if !s.chunked {
		return s.readSized(p)
	}
	for {
		if len(s.data) > 0 {
			n := copy(p, s.data)
			s.data = s.data[n:]
			return n, nil
		}
		if s.dec.done() {
			return 0, io.EOF
		}
		data, n, r := s.dec.advance(s.buf[s.at:s.end])
		s.at += n
		switch s.data = data; {
		case r != OK:
			return 0, &Refusal{r}
		case s.dec.done():
			s.takeTrailers()
		case n == 0:
			if err := s.fill(); err != nil {
				return 0, err
			}
		}
	}
}

func (s *sentPart) readSized(p []byte) (n int, err error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), s.left)]
	if n = copy(p, s.buf[s.at:s.end]); n > 0 {
		s.at += n
	} else if n, err = s.conn.Read(p); err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	s.left -= int64(n)
	return n, err
}

// fill reads more behind what was not taken in.
func (s *sentPart) fill() error {
	s.end = copy(s.buf[:cap(s.buf)], s.buf[s.at:s.end])
	s.at, s.buf = 0, s.buf[:cap(s.buf)]
	if s.end == len(s.buf) {
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	n, err := s.conn.Read(s.buf[s.end:])
	s.end += n
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func (s *sentPart) takeTrailers() {
	for _, f := range s.dec.trailers {
		if s.req.Trailer != nil { // else none were announced, and HTTP/2 sends none
			name := http.CanonicalHeaderKey(string(f.Name))
			s.req.Trailer[name] = append(s.req.Trailer[name], string(f.Value))
		}
	}
}

// A bridgedBody is the body for one attempt of the transport.
type bridgedBody struct {
	io.Reader
	b *bridge
}

// Close says that the transport reads no more of it.
func (r *bridgedBody) Close() error {
	b := r.b
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.body == r { // else there is another attempt by now
		b.body = nil
		b.drainLocked()
	}
	return nil
}
