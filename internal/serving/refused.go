package serving

import (
	"sync"

	"github.com/cellway/cellway/internal/engine"
)

// RefusedHeads counts the requests whose head or framing was refused, by
// reason. The zero value is ready to use.
type RefusedHeads struct {
	mu sync.Mutex
	m  map[engine.Reason]uint64
}

// Add counts one.
func (c *RefusedHeads) Add(r engine.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m = map[engine.Reason]uint64{}
	}
	c.m[r]++
}

// Each calls f for each reason that was met.
func (c *RefusedHeads) Each(f func(reason string, n uint64)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r, n := range c.m {
		f(r.String(), n)
	}
}
