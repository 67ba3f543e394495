package engine

import (
	"syscall"
	"time"
	"unsafe"
)

// poll asks the poller for events, and waits so long for them. The runtime is not
// told of a short wait, if it has a processor to spare for the loop: to take it
// back, and to find one again when the wait is over, costs more than many a request,
// and so does its monitor, which has to look on.
func (l *loop) poll(events []syscall.EpollEvent, wait time.Duration) int {
	if wait <= 0 {
		return l.pollBriefly(events, 0)
	}
	if l.srv.cfg.Looping != nil && l.srv.inLoops.Load() > 0 {
		short := min(wait, shortWait)
		if n := l.pollBriefly(events, short); n > 0 || wait == short {
			return n
		}
		wait -= short
	}
	n, _, errno := syscall.Syscall6(syscall.SYS_EPOLL_PWAIT, uintptr(l.ep), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), milliseconds(wait), 0, 0)
	return eventsOf(n, errno)
}

// shortWait is less than the runtime lets anybody run before it wants to have others
// run, which is 10 ms.
const shortWait = 8 * time.Millisecond

// pollBriefly is poll without a word to the runtime.
func (l *loop) pollBriefly(events []syscall.EpollEvent, wait time.Duration) int {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(l.ep), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)), milliseconds(wait), 0, 0)
	return eventsOf(n, errno)
}

// milliseconds are those of a wait, up to the next whole one.
func milliseconds(wait time.Duration) uintptr {
	return uintptr((wait + time.Millisecond - 1) / time.Millisecond)
}

func eventsOf(n uintptr, errno syscall.Errno) int {
	if errno != 0 { // a signal has come
		return 0
	}
	return int(n)
}
