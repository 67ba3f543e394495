package control

import (
	"testing"
	"time"
)

// However many versions there are, the store does not grow with them: beyond a
// number, one of each hour stays for a month.
func TestManyVersionsAreThinnedToOneAnHour(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	const every = 10 * time.Second
	age := ageing{now: now}
	kept, hours := 0, 0
	var last time.Time
	for i := range int(40*24*time.Hour/every) + 1 {
		at := now.Add(-time.Duration(i) * every)
		if !age.keeps(at) {
			continue
		}
		kept++
		switch {
		case now.Sub(at) >= keepFor:
			t.Fatalf("one of %v ago is kept", now.Sub(at))
		case i >= keepDense:
			if hours++; !at.Truncate(time.Hour).Before(last.Truncate(time.Hour)) {
				t.Errorf("two of one hour are kept: %v and %v", at, last)
			}
			if next := at.Add(every); !next.Truncate(time.Hour).After(at.Truncate(time.Hour)) {
				t.Errorf("%v is not the last one of its hour", at)
			}
		}
		last = at
	}
	if dense := time.Duration(keepDense) * every; hours < int((keepFor-dense)/time.Hour)-1 || hours > int(keepFor/time.Hour) {
		t.Errorf("%d hours of a month are kept beside the newest", hours)
	}
	if kept != keepDense+hours {
		t.Errorf("%d are kept, of them %d one an hour", kept, hours)
	}
}
