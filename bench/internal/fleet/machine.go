package fleet

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
)

// FreeAddresses returns n loopback addresses where nobody listens, with ports
// below those of outgoing connections: one of these could otherwise take the
// port of a cell that is down.
func FreeAddresses(n int) (found []string, err error) {
	const low, high = 10_000, 20_000
	for _, offset := range rand.Perm(high - low) {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(low+offset))
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue // in use
		}
		if err := l.Close(); err != nil {
			return nil, err
		}
		if found = append(found, addr); len(found) == n {
			return found, nil
		}
	}
	return nil, fmt.Errorf("found %d free ports from %d to %d, of %d needed", len(found), low, high, n)
}

// LoadAverage returns the machine's, "" where it does not tell.
func LoadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	if f := strings.Fields(string(text)); len(f) >= 3 {
		return strings.Join(f[:3], " ")
	}
	return ""
}
