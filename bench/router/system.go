//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// cpuTime returns the CPU time, of user and kernel together, that the kernel has
// charged to processes so far, with that of their threads that have ended. It
// counts nanoseconds, where /proc/PID/stat counts hundredths of a second.
func cpuTime(pids []int) (sum time.Duration, err error) {
	for _, pid := range pids {
		const schedulersClock = 2
		var t syscall.Timespec
		_, _, e := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, uintptr(^pid<<3|schedulersClock), uintptr(unsafe.Pointer(&t)), 0)
		if e != 0 {
			return 0, fmt.Errorf("the CPU time of process %d: %w", pid, e)
		}
		sum += time.Duration(t.Nano())
	}
	return sum, nil
}

// coreTime returns how long a core has been at work so far, for whomever, with what
// the host of a virtual machine took of it. A core below 0 is all of them together.
func coreTime(core int) (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return workOf(string(text), core)
}

// workOf takes coreTime from /proc/stat. Interrupts are left out: many kernels charge
// them to no process, so those of the proxy's own requests would count as others'.
// Where a kernel does charge them to processes, a little of what others ran is missed.
func workOf(stat string, core int) (time.Duration, error) {
	name := "cpu"
	if core >= 0 {
		name += strconv.Itoa(core)
	}
	for line := range strings.Lines(stat) {
		f := strings.Fields(line)
		if len(f) < 9 || f[0] != name {
			continue
		}
		var sum time.Duration
		for i, field := range f[1:9] {
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("/proc/stat: %w", err)
			}
			switch [8]string{"user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"}[i] {
			case "user", "nice", "system", "steal":
				sum += time.Duration(n) * 10 * time.Millisecond
			}
		}
		return sum, nil
	}
	return 0, fmt.Errorf("/proc/stat has no %s", name)
}

// peakMemory returns the bytes that processes had in memory at most, each by
// itself: pages that they share count for each.
func peakMemory(pids []int) (sum int64, err error) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return 0, err
		}
		_, rest, _ := strings.Cut(string(text), "\nVmHWM:")
		rest, _, ok := strings.Cut(rest, " kB\n")
		n, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
		if !ok || err != nil {
			return 0, fmt.Errorf("/proc/%d/status has no VmHWM", pid)
		}
		sum += n << 10
	}
	return sum, nil
}

// family returns pid and the processes that descend from it.
func family(pid int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	parents := map[int]int{}
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			return nil, err
		}
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(stat)))
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) > 1 {
			parents[child], _ = strconv.Atoi(fields[1])
		}
	}
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		for child, parent := range parents {
			if parent == all[i] {
				all = append(all, child)
			}
		}
	}
	slices.Sort(all)
	return all, nil
}

// A place is where a process runs.
type place struct {
	cores []int
	nice  int // how ready it is to let others go first; negative: not at all
}

// take has the calling thread, and the processes that it starts, run there.
func (p place) take() error {
	if p.nice != 0 {
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, p.nice); err != nil { // of the thread, on Linux
			return fmt.Errorf("run at nice %d: %w", p.nice, err)
		}
	}
	var mask [16]uint64
	for _, c := range p.cores {
		if c < 0 || c >= len(mask)*64 {
			return fmt.Errorf("core %d is none", c)
		}
		mask[c/64] |= 1 << (c % 64)
	}
	_, _, e := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
	if e != 0 {
		return fmt.Errorf("run on cores %v: %w", p.cores, e)
	}
	return nil
}

// start starts a command there, in a session and process group of its own, so
// that Control-C is for us alone.
func (p place) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if err := p.take(); err != nil {
			ended <- err
			return
		}
		ended <- cmd.Start()
	}()
	if err := <-ended; err != nil || p.nice == 0 {
		return err
	}
	// Where the kernel shares cores out between sessions, a nice value counts
	// within one only, and the session has one too.
	err := os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", cmd.Process.Pid), []byte(strconv.Itoa(p.nice)), 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// processor returns what the machine's processor calls itself.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), "model name\t: ")
	name, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(name)
}
