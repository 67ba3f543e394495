package main

import (
	"context"
	"errors"
	"regexp"
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
		"waiting for router-2, router-3; at most 33s more":             {api.Waited{Behind: []string{"router-2", "router-3"}}, nil},
		"waiting for router-2 and router-9 (silent); at most 33s more": {api.Waited{Behind: []string{"router-2"}, Missing: []string{"router-9"}}, nil},
		"waiting for the routers: no router is live; at most 33s more": {api.Waited{Why: "no router is live"}, nil},
		"waiting for the routers; at most 33s more":                    {api.Waited{Reached: true}, nil},
	} {
		if got := tellWaiting(tt.reach, tt.err, 33*time.Second); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := tellWaiting(api.Waited{Why: "x"}, errors.New("not answered"), 44*time.Second); got != "waiting for the routers; at most 44s more" {
		t.Error(got)
	}
}

func TestWhatAWaitTellsComesLateAndWholeAndLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		w := waiter{&out, func() int { return 30 }, time.Minute, func(context.Context) (api.Waited, error) {
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
			lines := regexp.MustCompile(`waiting for\r\n  a-router-with-a-long-name;\r\n  at most \d+s more`)
			if got := len(lines.FindAllString(out.String(), -1)); got != tt.drawn {
				t.Errorf("after %v: %q", tt.wait, out.String())
			}
			if erased := "\x1b[2A\r\x1b[J"; strings.Count(out.String(), erased) != tt.drawn || tt.drawn > 0 && !strings.HasSuffix(out.String(), erased) {
				t.Errorf("it leaves %q", out.String())
			}
		}
	})
}

func TestAWaitIsToldNowAndThenWhereThereIsNoTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		w := waiter{&out, func() int { return 0 }, 45 * time.Second, func(context.Context) (api.Waited, error) {
			return api.Waited{Behind: []string{"router-2"}}, nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		w.run(ctx)
		const want = "cellway: waiting for router-2; at most 42s more\ncellway: waiting for router-2; at most 32s more\n"
		if out.String() != want {
			t.Errorf("%q, want %q", out.String(), want)
		}
	})
}
