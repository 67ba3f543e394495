package routemap

import (
	"syscall"
	"unsafe"
)

const (
	hugePage = 2 << 20

	// adviceCollapse is MADV_COLLAPSE of Linux 6.1, which package syscall has no
	// name for.
	adviceCollapse = 25
)

// collapse has the kernel hold what it can of s in huge pages, now. Look-ups in a
// large map go all over it, and with small pages each of them misses the
// processor's memory of where pages are. Nothing depends on it: an older kernel
// knows no such advice, and one without free memory does not take it.
func collapse[E any](s []E) {
	if len(s) == 0 {
		return
	}
	at := uintptr(unsafe.Pointer(unsafe.SliceData(s)))
	size := uintptr(len(s)) * unsafe.Sizeof(s[0])
	from := -at & (hugePage - 1) // to the first huge page that is all of s
	if size < from+hugePage {
		return
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), size)
	_ = syscall.Madvise(b[from:from+(size-from)&^(hugePage-1)], adviceCollapse)
}
