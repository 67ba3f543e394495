package handhttp_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/cellway/cellway/client/handhttp"
)

func TestStatsTellHowCallsWentAndHowWeakHandsAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCell(t, 3, 3)
		rt := c.transport(handhttp.Config{})
		warm(t, rt, 3)
		s := rt.Stats()
		if s.Attempts[0] != s.Calls || s.Weak+s.Covered+s.Failures != 0 {
			t.Errorf("all is well: %+v", s)
		}
		c.workers["w01"].set(status(500))
		for i := range 60 {
			get(rt, fmt.Sprint("t", i%3))
		}
		s = rt.Stats()
		if s.Attempts[1] == 0 || s.Attempts[1] != s.Retries || s.Weak == 0 || s.Covered != 0 {
			t.Errorf("one member set aside: %+v", s)
		}
		c.all(status(500))
		for i := range 60 {
			get(rt, fmt.Sprint("t", i%3))
		}
		s = rt.Stats()
		if s.Attempts[2] == 0 || s.Covered == 0 {
			t.Errorf("all set aside: %+v", s)
		}
		var sum uint64
		for _, n := range s.Attempts {
			sum += n
		}
		if sum != s.Calls {
			t.Errorf("%d calls by attempts, %d altogether", sum, s.Calls)
		}
	})
}
