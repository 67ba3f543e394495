package looks

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestOnlyNewsIsNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Last
		began := time.Now()
		for i, look := range []struct {
			err  error
			news bool
		}{{nil, false}, {errors.New("a"), true}, {errors.New("a"), false}, {errors.New("b"), true}, {nil, true}, {nil, false}} {
			if got := l.Note(look.err); got != look.news {
				t.Errorf("look %d: news %v", i, got)
			}
			since, err := l.Failure()
			if err != look.err || l.Err() != err || since.IsZero() != (err == nil) || err != nil && since.Sub(began) != time.Second {
				t.Errorf("look %d: %v since %v", i, err, since)
			}
			time.Sleep(time.Second)
		}
	})
}
