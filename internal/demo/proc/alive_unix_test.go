//go:build unix

package proc

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// alive reports whether a process runs: neither gone nor a zombie that nobody
// has waited for yet.
func alive(pid int) bool {
	if b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil {
		_, rest, _ := strings.Cut(string(b), ") ")
		return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
	}
	return syscall.Kill(pid, 0) == nil
}
