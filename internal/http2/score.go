package http2

import "time"

// A score says how much a client has asked for that came to nothing: streams that it
// reset before their answers, and frames that only ask for an answer. It falls with
// time, so that who does so now and then is never ended for it.
type score struct {
	points int
	at     time.Time
}

const (
	mostPoints   = 4000
	pointsSecond = 2000 // how many are forgiven each second
	resetPoints  = 4

	// patience is how long a client waits for an answer that does not ask for it only to
	// give it up.
	patience = 250 * time.Millisecond
)

// add adds points, and reports whether there are too many.
func (s *score) add(n int) (tooMany bool) {
	if s.points = max(0, s.points+n); s.points < mostPoints/2 {
		if s.at.IsZero() {
			s.at = time.Now()
		}
		return false
	}
	now := time.Now()
	if past := now.Sub(s.at); past >= 10*time.Millisecond {
		s.points = max(0, s.points-int(min(past, time.Minute)*pointsSecond/time.Second))
		s.at = now
	}
	return s.points > mostPoints
}
