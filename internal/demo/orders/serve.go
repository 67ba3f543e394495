package orders

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// drainTime is how long a stopping cell lets its open requests finish.
const drainTime = 2 * time.Second

// Serve answers requests on l with h until ctx ends, lets open requests finish
// and returns nil. It closes l.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	err := srv.Shutdown(last)
	if err != nil {
		err = errors.Join(fmt.Errorf("requests were cut off on %s: %w", l.Addr(), err), srv.Close())
	}
	<-failed
	return err
}
