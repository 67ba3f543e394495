package engine

// replyRoom is how much room is left in front of an answer, so that the head
// that the client gets can be put there, right before the body.
const replyRoom = 1 << 10

// maxAnswerFields is how many fields an answer's head, or its trailers, may have.
const maxAnswerFields = 1024

// A reply reads the heads of a cell's answer, with whatever comes behind them.
type reply struct {
	c    *Call
	from *buffers
	mem  *[]byte // what buf was lent as; nil if it has grown beyond what is lent, or there is none
	buf  []byte
	at   int // the head, or what follows it, is buf[at:end]
	end  int

	scanned int
	size    int // of the head, once it is there
	head    AnswerHead
	bad     Reason
	heard   bool // something came
}

// begin makes r ready for the answer to another request.
func (r *reply) begin(from *buffers) {
	r.from = from
	r.drop()
	r.heard, r.bad = false, OK
}

// drop gives the memory back.
func (r *reply) drop() {
	if r.mem != nil {
		r.from.putAny(r.mem)
		r.mem = nil
	}
	r.buf = nil
	r.at, r.end, r.scanned, r.size = replyRoom, replyRoom, 0, 0
}

func (r *reply) space() []byte {
	switch {
	case r.buf == nil:
		r.mem = r.from.get()
		r.buf = *r.mem
	case r.end == len(r.buf):
		mem, buf := r.from.getBeyond(len(r.buf))
		n := copy(buf[replyRoom:], r.buf[r.at:r.end])
		if r.mem != nil {
			r.from.putAny(r.mem)
		}
		r.mem, r.buf, r.at, r.end = mem, buf, replyRoom, replyRoom+n
	}
	return r.buf[r.end:]
}

func (r *reply) took(n int) (more bool) {
	r.end += n
	r.heard = true
	return !r.parse()
}

func (r *reply) quiet() {
	if r.buf != nil && r.at == r.end {
		r.drop()
	}
}

// parse reads the head, and reports whether there is no more to wait for: it is
// whole, or bad.
func (r *reply) parse() bool {
	b := r.buf[r.at:r.end]
	if len(b) == 0 {
		return false
	}
	limits := HeadLimits{Bytes: int(r.c.pool.all.cfg.MaxAnswerHead), Fields: maxAnswerFields}
	length, next, bad := ScanHead(b, r.scanned)
	switch {
	case bad != OK:
		r.bad = bad
		return true
	case length == 0:
		if r.scanned = next; limits.Bytes > 0 && len(b) > limits.Bytes {
			r.bad = ReasonTooLarge
			return true
		}
		return false
	}
	r.scanned, r.size = 0, length
	r.bad = r.head.Parse(b[:length], r.c.head.Method, limits)
	return true
}

// next goes on to what follows an interim head.
func (r *reply) next() {
	r.at += r.size
	r.size = 0
}

// rest returns what came behind the head.
func (r *reply) rest() []byte {
	if r.buf == nil {
		return nil
	}
	return r.buf[r.at+r.size : r.end]
}
