package fleet

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"

	"github.com/cellway/cellway"
)

// The ports that the fleet's processes listen on. They are below those that
// systems give to outgoing connections, as otherwise such a connection could
// take the port of a process that is down for a while.
const (
	lowPort  = 20_000
	highPort = 30_000
)

// freeAddresses returns n loopback addresses where nobody listens now.
func freeAddresses(n int) ([]string, error) {
	var found []string
	taken := make(map[int]bool)
	for range 50 * n {
		port := lowPort + rand.IntN(highPort-lowPort)
		if taken[port] {
			continue
		}
		taken[port] = true
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue // it is in use
		}
		if err := l.Close(); err != nil {
			continue
		}
		if found = append(found, addr); len(found) == n {
			return found, nil
		}
	}
	return nil, fmt.Errorf("found %d free ports from %d to %d, of %d needed: %w", len(found), lowPort, highPort, n, cellway.ErrNotReady)
}
