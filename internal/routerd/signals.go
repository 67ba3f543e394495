package routerd

import (
	"context"

	"github.com/cellway/cellway/internal/boot"
)

// WithSignals returns a context that ends at the first interrupt or SIGTERM; a
// second one ends the process. See [boot.WithSignals].
func WithSignals(parent context.Context) (ctx context.Context, stop func()) {
	return boot.WithSignals(parent)
}
