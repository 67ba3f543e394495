package serving

import "runtime"

// Loops returns how many event loops serve clients, as a setting says (0: one for each
// core; below 0: none), and what makes room for them while they have any: a loop that is
// busy keeps one of the runtime's processors for itself, and what has goroutines needs
// as many as there were. Without loops that are busy, more processors than cores would
// only take turns. There are none but on Linux.
func Loops(setting int) (n int, looping func(on bool)) {
	if setting < 0 || runtime.GOOS != "linux" {
		return 0, nil
	}
	cores := min(runtime.GOMAXPROCS(0), runtime.NumCPU()) // another program in this process may have made room
	if n = setting; n == 0 {
		n = cores
	}
	return n, func(on bool) {
		if on {
			runtime.GOMAXPROCS(cores + n)
		} else {
			runtime.GOMAXPROCS(cores)
		}
	}
}
