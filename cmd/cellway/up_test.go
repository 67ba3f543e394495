package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
)

func TestUpConfirmsWhatItWasToldAndNothingElse(t *testing.T) {
	gate := &client.Error{Problem: api.Problem{Code: api.CodeGate, Digest: "d1", Status: 409}}
	for name, tt := range map[string]struct {
		answers []error
		want    []string
		err     error
	}{
		"a write that passes":     {[]error{nil}, []string{""}, nil},
		"a write that is asked":   {[]error{gate, nil}, []string{"", "d1"}, nil},
		"a write that is refused": {[]error{cellway.ErrConflict}, []string{""}, cellway.ErrConflict},
		"asked about another":     {[]error{gate, gate}, []string{"", "d1"}, cellway.ErrGate},
	} {
		var got []string
		err := confirmed(func(w client.Write) error {
			got = append(got, w.Confirm)
			return tt.answers[len(got)-1]
		})
		if !slices.Equal(got, tt.want) || !errors.Is(err, tt.err) {
			t.Errorf("%s: confirms %q, %v", name, got, err)
		}
	}
}

// Like the daemons, what up runs serves on while nobody reads what it says, and
// ends when it is told to.
func TestUpWaitsForNobodyWhoReadsIt(t *testing.T) {
	var addr [3]string
	for i := range addr {
		var err error
		if addr[i], err = settled("127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	stuck, free := make(stuckWriter), make(chan struct{})
	defer func() { close(stuck); <-free }()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan int, 1)
	go func() {
		defer close(free)
		ended <- run(ctx, []string{"cellway", "up", "--control", addr[0], "--listen", addr[1], "--admin", addr[2], "--log-level", "debug"}, strings.NewReader(""), stuck, stuck)
	}()
	cl, err := client.New(client.Config{URL: "http://" + addr[0], Retries: 100})
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for {
		if routers, err := client.All(cl.Routers(ctx)); err == nil && len(routers) == 1 {
			break
		}
		select {
		case code := <-ended:
			t.Fatalf("it ended with %d", code)
		case <-time.After(20 * time.Millisecond):
		}
	}
	stop()
	select {
	case code := <-ended:
		if code != exitOK {
			t.Errorf("it ended with %d", code)
		}
	case <-time.After(20 * time.Second):
		t.Error("it waits for who does not read")
	}
}

// A stuckWriter takes nothing until it is closed.
type stuckWriter chan struct{}

func (w stuckWriter) Write(b []byte) (int, error) { <-w; return len(b), nil }
