package serving

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// A Supervisor is told how the program fares, if it asked for it: systemd's
// Type=notify and WatchdogSec. The zero Supervisor is told nothing.
type Supervisor struct {
	socket   string
	Watchdog time.Duration // how often it must hear from us; 0: need not
}

// supervisorFrom reads what systemd put into the environment.
func supervisorFrom(getenv func(string) string) Supervisor {
	s := Supervisor{socket: getenv("NOTIFY_SOCKET")}
	if s.socket == "" {
		return s
	}
	if pid := getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return s
	}
	if us, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64); err == nil && us > 0 {
		s.Watchdog = time.Duration(us) * time.Microsecond
	}
	return s
}

// Tell sends state, such as READY=1, in lines.
func (s Supervisor) Tell(state ...string) error {
	if s.socket == "" {
		return nil
	}
	// A name that starts with @ is abstract; package net knows.
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: s.socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("tell the supervisor: %w", err)
	}
	_, err = c.Write([]byte(strings.Join(state, "\n")))
	if cerr := c.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("tell the supervisor: %w", err)
	}
	return nil
}
