package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/api"
)

func TestWhoIsWaitedForIsNamed(t *testing.T) {
	for want, tt := range map[string]struct {
		reach api.Waited
		err   error
	}{
		"waiting for router-2, router-3, 12s of 45s":             {api.Waited{Behind: []string{"router-2", "router-3"}}, nil},
		"waiting for router-2 and router-9 (silent), 12s of 45s": {api.Waited{Behind: []string{"router-2"}, Missing: []string{"router-9"}}, nil},
		"waiting for the routers: no router is live, 12s of 45s": {api.Waited{Why: "no router is live"}, nil},
		"waiting for the routers, 12s of 45s":                    {api.Waited{Reached: true}, nil},
	} {
		if got := tellWaiting(tt.reach, tt.err, 12*time.Second, 45*time.Second); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := tellWaiting(api.Waited{Why: "x"}, errors.New("not answered"), time.Second, 45*time.Second); got != "waiting for the routers, 1s of 45s" {
		t.Error(got)
	}
}

func TestTheLineOfAWaitComesLateAndLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		w := waiter{&out, 30, time.Minute, func(context.Context) (api.Waited, error) {
			return api.Waited{Behind: []string{"a-router-with-a-long-name"}}, nil
		}}
		for _, tt := range []struct {
			wait  time.Duration
			drawn int
		}{{100 * time.Millisecond, 0}, {2 * time.Second, 2}} {
			out.Reset()
			ctx, cancel := context.WithTimeout(t.Context(), tt.wait)
			w.run(ctx)
			cancel()
			line := "\rwaiting for a-router-with-a-…"
			if got := strings.Count(out.String(), line); got != tt.drawn {
				t.Errorf("after %v: %q", tt.wait, out.String())
			}
			if end := "\r" + strings.Repeat(" ", 29) + "\r"; tt.drawn > 0 && !strings.HasSuffix(out.String(), end) {
				t.Errorf("it leaves %q", out.String())
			}
		}
	})
}
