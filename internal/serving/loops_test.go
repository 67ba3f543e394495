package serving

import (
	"runtime"
	"testing"
)

func TestLoopsHaveRoomWhileTheyServe(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there are none")
	}
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	cores := min(before, runtime.NumCPU())
	for setting, want := range map[int]int{-1: 0, 0: cores, 3: 3} {
		n, looping := Loops(setting)
		if n != want || (looping == nil) != (want == 0) {
			t.Errorf("%d: %d loops, want %d", setting, n, want)
		}
		if n == 0 {
			continue
		}
		looping(true)
		if got := runtime.GOMAXPROCS(0); got != cores+n {
			t.Errorf("%d: %d processors with loops that serve, want %d", setting, got, cores+n)
		}
		looping(false)
		if got := runtime.GOMAXPROCS(0); got != cores {
			t.Errorf("%d: %d processors afterwards, want %d", setting, got, cores)
		}
	}
}
