package engine

import "time"

// A flight is how far a loop has come with forwarding a call.
type flight struct {
	stage   flightStage
	l       *link
	nothing bool  // nothing was sent over it
	err     error // what a read has met, or why the link is lost
}

type flightStage uint8

const (
	flightNone    flightStage = iota
	flightLost                // the link is of no use, and there is no answer
	flightHead                // the loop waits for the answer's head
	flightAwait               // there is a head, which is not a final one
	flightSwallow             // the answer is to be swallowed
	flightBody                // the head has been sent on, and the body is being
	flightEnded               // all is done
)

// resume goes on with what a loop has begun, and may wait. It returns nil if
// that is nothing.
func (k *Call) resume() *Report {
	f := k.flight
	k.flight = flight{}
	switch f.stage {
	case flightNone:
		return nil
	case flightEnded:
		return &k.rep
	}
	defer k.leaveGate()
	defer k.leaveEndpoint()
	l := f.l
	switch f.stage {
	case flightLost:
		l = k.reach(k.since, &lost{f.l, f.nothing, f.err})
	case flightAwait:
		err := f.err
		if err == nil {
			if len(l.left) > 0 {
				_, _ = l.conn.Write(l.left) // the cell may have answered early
				l.left = nil
			}
			err = k.await(l)
		}
		if err != nil {
			l = k.reach(k.since, &lost{l, false, err})
		} else {
			k.heads(l.e, k.since)
		}
	case flightSwallow:
		k.swallow(l)
	case flightBody:
		left := k.sendLeft(l)
		k.sendRest(l, f.err)
		left()
		k.release(l)
	}
	if l != nil && (f.stage == flightLost || f.stage == flightAwait) {
		k.take(l)
	}
	k.finish()
	k.pool.count(&k.rep)
	return &k.rep
}

// sendLeft sends the end of a request whose answer has begun, while that is
// passed on. The function that it returns ends that.
func (k *Call) sendLeft(l *link) (end func()) {
	if len(l.left) == 0 {
		return func() {}
	}
	left, done := l.left, make(chan struct{})
	go func() {
		defer close(done)
		if _, err := l.conn.Write(left); err == nil {
			l.left = nil
		}
	}()
	return func() {
		select {
		case <-done:
		default:
			l.conn.SetWriteDeadline(past) // nobody waits for it
			<-done
			if l.left == nil { // it had gone out by then, and the link goes on
				l.conn.SetWriteDeadline(time.Time{})
			}
		}
	}
}
