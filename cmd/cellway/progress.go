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

	// Where there is no terminal a line stays, so they are few.
	linesAfter = 3 * time.Second
	linesEvery = 10 * time.Second
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

// A lineBlock is a text at a terminal that is drawn over and over, in as many lines
// as it takes, and leaves nothing behind when it is erased.
type lineBlock struct {
	to    io.Writer
	drawn int // lines that stand there
}

func (b *lineBlock) draw(text string, width int) {
	b.erase()
	lines := wrapped(text, 2, width-1)
	io.WriteString(b.to, strings.Join(lines, "\r\n"))
	b.drawn = len(lines)
}

func (b *lineBlock) erase() {
	if b.drawn == 0 {
		return
	}
	if b.drawn > 1 {
		fmt.Fprintf(b.to, "\x1b[%dA", b.drawn-1) // up
	}
	io.WriteString(b.to, "\r\x1b[J") // and all from there on
	b.drawn = 0
}

// A waiter tells somebody what a command waits for: at a terminal in lines that go
// again, and elsewhere in one now and then.
type waiter struct {
	to    io.Writer
	width func() int // of the terminal; 0: it is none
	most  time.Duration
	ask   func(context.Context) (api.Waited, error)
}

// run tells until ctx ends.
func (w waiter) run(ctx context.Context) {
	begun, shown := time.Now(), lineBlock{to: w.to}
	defer shown.erase()
	wait, every := progressAfter, progressEvery
	if w.width() == 0 {
		wait, every = linesAfter, linesEvery
	}
	for ; ; wait = every {
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
		text := tellWaiting(reach, err, w.most-time.Since(begun))
		if width := w.width(); width > 0 {
			shown.draw(text, width)
		} else {
			fmt.Fprintln(w.to, "cellway: "+text)
		}
	}
}

// tellWaiting says who is waited for, and how much longer.
func tellWaiting(w api.Waited, err error, left time.Duration) string {
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
	return fmt.Sprintf("%s; at most %ds more", text, int(max(left, 0).Round(time.Second).Seconds()))
}

// watch has people told what a write waits for, until quiet.
func (a *app) watch(cl *client.Client, most time.Duration) {
	if !a.forPeople() && !terminal(a.err) {
		return // a program reads what is told of errors
	}
	a.quiet()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		waiter{unfilled(a.err), func() int { return widthOf(a.err) }, most, func(ctx context.Context) (api.Waited, error) {
			s, err := cl.MapStatus(ctx)
			return s.Routers, err
		}}.run(ctx)
	}()
	a.waits = func() { cancel(); <-done }
}

// quiet ends what watch has begun, and takes its lines away.
func (a *app) quiet() {
	if a.waits != nil {
		a.waits()
		a.waits = nil
	}
}
