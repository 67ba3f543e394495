package serving

import "syscall"

// unsentMost is how many bytes of an answer the kernel takes beyond those that
// are on their way: enough to keep a fast client busy while the next are fetched.
// Without it, it takes as much as a fast client could ever need, some megabytes of
// each one that does not read.
const unsentMost = 256 << 10

// notSentLowAt is TCP_NOTSENT_LOWAT, which package syscall does not have.
const notSentLowAt = 25

// limitUnsent has the connections of a listener take no more of what clients
// don't read. Connections have this from their listener.
func limitUnsent(_, _ string, raw syscall.RawConn) error {
	return raw.Control(func(fd uintptr) {
		_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, notSentLowAt, unsentMost) // without it, they cost more
	})
}
