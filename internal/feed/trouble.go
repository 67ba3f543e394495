package feed

import (
	"log/slog"
	"sync"
	"time"
)

// A trouble counts errors that are logged and lived with.
type trouble struct {
	mu    sync.Mutex
	count uint64
	last  string
	at    time.Time
}

// note logs and counts an error.
func (t *trouble) note(log *slog.Logger, what string, err error) {
	log.Error("disk trouble: the router serves on, but may not start from its disk", "action", what, "error", err)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count++
	t.last, t.at = what+": "+err.Error(), time.Now()
}

// A Trouble is a kind of error that the router lives with.
type Trouble struct {
	Count  uint64    `json:"count"` // since the process started
	Last   string    `json:"last,omitempty"`
	LastAt time.Time `json:"last_at,omitzero"`
}

func (t *trouble) status() Trouble {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Trouble{t.count, t.last, t.at}
}
