package sim

import (
	"fmt"
	"math"

	"github.com/cellway/cellway"
)

// A Storm is a short outage after which callers' retries keep a cell down. It
// is played second by second, with the callers as a stream: a request that
// fails comes again after a back-off, until it was tried often enough.
type Storm struct {
	Load     float64 `json:"load"`     // requests over capacity, before
	Outage   int     `json:"outage"`   // seconds in which nothing is answered
	Attempts int     `json:"attempts"` // tries of a request, the first one included
	Backoff  int     `json:"backoff"`  // seconds before the first retry; twice as many before each further one
	Budget   float64 `json:"budget"`   // retries to first tries at most, where there is a budget
	Waste    float64 `json:"waste"`    // part of the excess that costs capacity: 0 turned away for nothing, 1 served too late
	Seconds  int     `json:"seconds"`  // how long it is played
}

func (s Storm) check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("retry storm: %s: %w", fmt.Sprintf(format, args...), cellway.ErrInvalid)
	}
	switch {
	case s.Seconds < 2 || s.Seconds > 86_400:
		return bad("%d s are played; give 2 to 86,400", s.Seconds)
	case s.Outage < 1 || s.Outage >= s.Seconds:
		return bad("the outage takes %d s; give 1 to %d, less than is played", s.Outage, s.Seconds-1)
	case s.Attempts < 1 || s.Attempts > 10:
		return bad("attempts is %d; give 1 to 10", s.Attempts)
	case s.Backoff < 1 || s.Backoff > 60:
		return bad("the back-off is %d s; give 1 to 60", s.Backoff)
	case !(s.Budget >= 0 && s.Budget <= 1):
		return bad("budget is %v; give a share from 0 to 1", s.Budget)
	case !(s.Waste >= 0 && s.Waste <= 1):
		return bad("waste is %v; give a share from 0 to 1", s.Waste)
	}
	return nil
}

// A Course is how a storm went.
type Course struct {
	Name          string    `json:"name"`
	Amplification float64   `json:"amplification"` // tries to first tries, at the most
	Minutes       float64   `json:"minutes"`       // from the beginning of the outage until 99 of 100 requests succeed again
	Recovers      bool      `json:"recovers"`      // within the time played
	Failed        float64   `json:"failed"`        // minutes of everybody's requests that were given up
	Offered       []float64 `json:"offered"`       // tries in each second, over capacity
	Served        []float64 `json:"served"`        // answers in time in each second, over capacity
}

// play runs the storm, with a budget for retries or without one.
func (s Storm) play(budget bool) Course {
	c := Course{Name: fmt.Sprintf("%d attempts", s.Attempts)}
	if budget {
		c.Name += fmt.Sprintf(", retries at most %s", Share(s.Budget))
	}
	// due[t][a] is what comes for its a-th retry in second t.
	due := make([][]float64, s.Seconds)
	for t := range due {
		due[t] = make([]float64, s.Attempts)
	}
	last := 0
	for t := range s.Seconds {
		tries := due[t]
		tries[0] = s.Load
		if budget {
			held := 0.0
			for _, n := range tries[1:] {
				held += n
			}
			if most := s.Budget * s.Load; held > most {
				c.Failed += (held - most) / s.Load / 60
				for a := 1; a < len(tries); a++ {
					tries[a] *= most / held
				}
			}
		}
		offered := 0.0
		for _, n := range tries {
			offered += n
		}
		served := s.serve(t, offered)
		c.Offered, c.Served = append(c.Offered, offered), append(c.Served, served)
		c.Amplification = max(c.Amplification, offered/s.Load)
		if served < 0.99*offered {
			last = t + 1
		}
		fails := 1 - served/offered
		for a, n := range tries {
			if n *= fails; n == 0 {
				continue
			}
			at := t + s.Backoff<<a
			if a+1 == s.Attempts {
				c.Failed += n / s.Load / 60
			} else if at < s.Seconds {
				due[at][a+1] += n
			}
		}
	}
	c.Minutes = float64(last) / 60
	c.Recovers = last < s.Seconds
	return c
}

// serve is how many of the tries offered in second t are answered in time.
func (s Storm) serve(t int, offered float64) float64 {
	switch {
	case t < s.Outage:
		return 0
	case offered <= 1:
		return offered
	}
	// Work on answers that nobody waits for any more takes its part.
	return math.Pow(offered, -s.Waste)
}
