//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// A holding is what a process holds.
type holding struct {
	MiB         float64 `json:"rss_mib"`
	Descriptors int     `json:"descriptors"`
}

// held returns what a process holds now.
func held(pid int) (h holding, err error) {
	kib, err := statusOf(pid, "VmRSS")
	if err != nil {
		return h, err
	}
	open, err := openIn(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return h, err
	}
	return holding{float64(kib) / 1024, open}, nil
}

// openIn returns how many descriptors a folder of a process in /proc names. Linux
// says that as the folder's size, from 6.2 on. To list thousands of them takes
// milliseconds, of which the requests under way would have their share.
func openIn(dir string) (int, error) {
	f, err := os.Open(dir)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if s, err := f.Stat(); err == nil && s.Size() > 0 {
		return int(s.Size()), nil
	}
	names, err := f.Readdirnames(-1)
	return len(names), err
}

// statusOf returns a number of a process's status, in KiB.
func statusOf(pid int, name string) (kib int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := bytes.Cut(text, []byte("\n"+name+":"))
	value, _, ok := strings.Cut(string(rest), " kB\n")
	n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
	if !ok || err != nil {
		return 0, fmt.Errorf("/proc/%d/status has no %s", pid, name)
	}
	return n, nil
}

// raiseDescriptors raises the limit of open files as far as it goes, and returns
// it.
func raiseDescriptors() (int, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, err
	}
	if l.Cur < l.Max {
		l.Cur = l.Max
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
			return 0, err
		}
	}
	return int(min(l.Cur, 1<<30)), nil
}

// How a process runs, beside nice values.
const (
	// idly is with a processor only where nobody else wants it, which it gives up
	// at once. One with the highest nice value keeps it for some milliseconds.
	idly = "idle"
	// first is before all that is not, whatever else the machine does. It needs
	// the rights of root.
	first = "first"
)

// runAs becomes the program args[0], with so many descriptors at most if that is
// not 0. It runs idly, first, with a nice value, or if how is "" as this does.
func runAs(descriptors, how string, args []string) error {
	n, err := strconv.ParseUint(descriptors, 10, 31)
	if err != nil {
		return err
	}
	if n > 0 {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
			return fmt.Errorf("limit descriptors to %d: %w", n, err)
		}
	}
	// How it runs is of a thread, on Linux: that which becomes the program's first.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	switch how {
	case "":
	case idly:
		err = schedule(5, 0) // SCHED_IDLE
	case first:
		err = schedule(2, 1) // SCHED_RR
	default:
		var value int
		if value, err = strconv.Atoi(how); err == nil {
			err = errors.Join(schedule(0, 0), syscall.Setpriority(syscall.PRIO_PROCESS, 0, value))
		}
	}
	if err != nil {
		return fmt.Errorf("run as %q: %w", how, err)
	}
	return syscall.Exec(args[0], args, os.Environ())
}

// schedule has the thread scheduled by a policy of the kernel.
func schedule(policy uintptr, priority int32) error {
	_, _, errno := syscall.Syscall(syscall.SYS_SCHED_SETSCHEDULER, 0, policy, uintptr(unsafe.Pointer(&priority)))
	if errno != 0 {
		return os.NewSyscallError("sched_setscheduler", errno)
	}
	return nil
}

// cpuTime returns the CPU time, of user and kernel together, that a process and
// its children have taken so far.
func cpuTime(pid int) (sum time.Duration, err error) {
	all := []int{pid}
	if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid)); err == nil {
		for field := range strings.FieldsSeq(string(text)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				return 0, fmt.Errorf("children of process %d: %w", pid, err)
			}
			all = append(all, child)
		}
	}
	for _, one := range all {
		const schedulersClock = 2
		var t syscall.Timespec
		if _, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, uintptr(^one<<3|schedulersClock), uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
			return 0, fmt.Errorf("the CPU time of process %d: %w", one, errno)
		}
		sum += time.Duration(t.Nano())
	}
	return sum, nil
}
