//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"net"
	"net/http"
	"time"
)

// answered is what a cell that is well answers.
const answered = "an answer of some hundred bytes, as services give them when all is well and there is not much to say\n"

// serveCell answers all requests alike until ctx ends.
func serveCell(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("cell", flag.ContinueOnError)
	addr := fs.String("listen", "", "`address`")
	if err := fs.Parse(args); err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", *addr)
	if err != nil {
		return err
	}
	return serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(answered)) // a client that is gone needs none
	}))
}

// serve serves h until ctx ends.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: h}
	defer context.AfterFunc(ctx, func() { _ = s.Close() })()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
