package routerd

import (
	"sync"

	"github.com/cellway/cellway/internal/engine"
)

// counts counts what is refused, by reason. The zero counts is ready to use.
type counts struct {
	mu sync.Mutex
	m  map[engine.Reason]uint64
}

func (c *counts) add(r engine.Reason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m = map[engine.Reason]uint64{}
	}
	c.m[r]++
}

func (c *counts) each(f func(reason string, n uint64)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r, n := range c.m {
		f(r.String(), n)
	}
}
