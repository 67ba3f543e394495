package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
)

const (
	progressAfter = 500 * time.Millisecond // what is done by then is not worth a line
	progressEvery = time.Second
	progressAsk   = 2 * time.Second // for one answer about the routers
)

// A line is one at a terminal that is drawn over and over, and leaves nothing
// behind when it is erased.
type line struct {
	to    io.Writer
	drawn int // letters that stand there
}

func (l *line) draw(text string) {
	n := utf8.RuneCountInString(text)
	fmt.Fprintf(l.to, "\r%s%s", text, strings.Repeat(" ", max(0, l.drawn-n)))
	l.drawn = n
}

func (l *line) erase() {
	if l.drawn > 0 {
		fmt.Fprintf(l.to, "\r%s\r", strings.Repeat(" ", l.drawn))
	}
	l.drawn = 0
}

// A waiter tells somebody at a terminal, in one line that goes again, what a
// command waits for.
type waiter struct {
	to    io.Writer
	width int // of the terminal
	most  time.Duration
	ask   func(context.Context) (api.Waited, error)
}

// run draws until ctx ends.
func (w waiter) run(ctx context.Context) {
	begun, shown := time.Now(), line{to: w.to}
	defer shown.erase()
	for wait := progressAfter; ; wait = progressEvery {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		within, cancel := context.WithTimeout(ctx, progressAsk)
		reach, err := w.ask(within)
		cancel()
		if ctx.Err() != nil {
			return
		}
		text := tellWaiting(reach, err, time.Since(begun), w.most)
		if n := utf8.RuneCountInString(text); w.width > 1 && n >= w.width {
			text = string([]rune(text)[:w.width-2]) + "…"
		}
		shown.draw(text)
	}
}

// tellWaiting says who is waited for.
func tellWaiting(w api.Waited, err error, since, most time.Duration) string {
	var who []string
	if len(w.Behind) > 0 {
		who = append(who, some(w.Behind, len(w.Behind)))
	}
	if len(w.Missing) > 0 {
		who = append(who, some(w.Missing, len(w.Missing))+" (silent)")
	}
	text := "waiting for the routers"
	switch {
	case len(who) > 0:
		text = "waiting for " + strings.Join(who, " and ")
	case err == nil && w.Why != "":
		text += ": " + w.Why
	}
	return fmt.Sprintf("%s, %v of %v", text, since.Round(time.Second), most)
}

// watch has somebody at a terminal told what a write waits for, until quiet.
func (a *app) watch(cl *client.Client, most time.Duration) {
	if !terminal(a.err) {
		return
	}
	a.quiet()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		waiter{a.err, widthOf(a.err), most, func(ctx context.Context) (api.Waited, error) {
			s, err := cl.MapStatus(ctx)
			return s.Routers, err
		}}.run(ctx)
	}()
	a.waits = func() { cancel(); <-done }
}

// quiet ends what watch has begun, and takes its line away.
func (a *app) quiet() {
	if a.waits != nil {
		a.waits()
		a.waits = nil
	}
}
