package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
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

func TestSilentCellsAreFoundAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cells := map[string]string{"cell-011": "http://10.0.1.1:9000"}
		var want []string
		for i := range 10 {
			id := fmt.Sprintf("cell-%03d", i)
			cells[id] = fmt.Sprintf("http://10.0.0.%d:9000", i)
			want = append(want, id)
		}
		began := time.Now()
		got := silent(cells, func(host string) error {
			if host == "10.0.1.1:9000" {
				return nil
			}
			time.Sleep(time.Second)
			return errors.New("nobody answers")
		})
		if took := time.Since(began); !slices.Equal(got, want) || took != time.Second {
			t.Errorf("%q after %v, want %q after a second", got, took, want)
		}
	})
}

func TestWhoListensEverywhereIsReachedHere(t *testing.T) {
	for addr, want := range map[string]string{
		":8080": "127.0.0.1:8080", "0.0.0.0:8080": "127.0.0.1:8080", "[::]:8080": "127.0.0.1:8080", ":http": "127.0.0.1:80",
		"127.0.0.1:8080": "127.0.0.1:8080", "[::1]:8080": "[::1]:8080", "10.0.0.1:80": "10.0.0.1:80", "localhost:8080": "localhost:8080",
	} {
		if got := reachable(addr); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
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
	for started := time.Now(); ; {
		if time.Since(started) > time.Minute {
			t.Fatal("no router reports within a minute")
		}
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
