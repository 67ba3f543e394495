package engine

import "time"

const (
	// swallowMost is how many bytes the body of an answer has at most that is read to
	// its end only so that its link can be used again, and swallowTime how long that
	// may take.
	swallowMost = 4 << 10
	swallowTime = 100 * time.Millisecond
)

// swallow throws a short answer away so that its link can be used again. Others
// are cut off.
func (k *Call) swallow(l *link) {
	b := &k.answer
	k.body.halt(l)
	defer k.release(l)
	if b.mode != modeSized && b.mode != modeNone || b.left > swallowMost {
		b.bad = ReasonLength // where it ends is not looked for
		return
	}
	left := int(b.left) - len(k.reply.rest())
	switch {
	case left < 0:
		b.bad = ReasonLength
		l.e.strayed(k.Now(), k.Now())
	case left == 0:
		b.done = true
	default:
		l.conn.SetReadDeadline(time.Now().Add(swallowTime))
		b.done = l.run(&swallower{left: left}) == nil
		l.conn.SetReadDeadline(time.Time{})
	}
}

// A swallower reads so many bytes and forgets them.
type swallower struct {
	left int
	buf  [512]byte
}

func (s *swallower) space() []byte { return s.buf[:min(len(s.buf), s.left)] }

func (s *swallower) took(n int) bool {
	s.left -= n
	return s.left > 0
}

func (s *swallower) quiet() {}
