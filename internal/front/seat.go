package front

// A Seat is a request's place at a [Desk]: among those in flight, and then perhaps
// among the tunnels. The zero Seat is none.
type Seat struct {
	desk   *Desk
	tunnel bool
}

// Sit gives s a place among the requests in flight, and returns how many there are
// with it.
func (d *Desk) Sit(s *Seat) (inFlight int64) {
	*s = Seat{desk: d}
	return d.InFlight.Add(1)
}

// Tunnel makes the request a tunnel, which may last for days. in is the request.
func (s *Seat) Tunnel(in Inbound) {
	s.tunnel = true
	s.desk.Tunnels.Add(1)
	in.Upgraded()
	s.desk.InFlight.Add(-1) // last, so that it is always under way
}

// Leave gives the place up, if there is one.
func (s *Seat) Leave() {
	switch {
	case s.desk == nil:
		return
	case s.tunnel:
		s.desk.Tunnels.Add(-1)
	default:
		s.desk.InFlight.Add(-1)
	}
	*s = Seat{}
}
