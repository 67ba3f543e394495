package gateway

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/cellway/cellway/internal/front"
)

// A poll is a source that asks somebody again and again. What it is told is the
// list from then on; an error leaves the list as it is.
type poll struct {
	kept
	keeper keeper
	every  time.Duration
	log    *slog.Logger
	ask    func(ctx context.Context) (*Workers, error) // nil, nil: nothing new
	form   func(w *Workers) (any, error)               // what is kept of a list, in JSON
}

// begin loads what is kept on disk of the source that is called from. That it can't be
// read is no reason not to ask, so it is only logged.
func (p *poll) begin(path, from string, every time.Duration, log *slog.Logger) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	p.keeper, p.every, p.log = keeper{path: path}, front.Span(every, 10*time.Second), log
	p.form = func(w *Workers) (any, error) {
		list, err := w.MarshalJSON()
		return keptList{from, list}, err
	}
	w, err := p.keeper.load(from)
	if err != nil {
		log.Error("starting without the kept list of workers", slog.Any("error", err))
	}
	if w != nil {
		p.put(w)
	}
}

// Run is [Source].Run.
func (p *poll) Run(ctx context.Context) error {
	if left := p.keeper.sweep(); len(left) > 0 {
		p.log.InfoContext(ctx, "removed what was left of interrupted writes", slog.Any("files", left))
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		p.turn(ctx)
		next := p.every
		if p.Current() == nil {
			next = min(next, time.Second) // nothing can be served before
		}
		timer.Reset(next - next/10 + rand.N(next/5+1))
	}
}

// turn asks once, after it has kept what could not be kept before.
func (p *poll) turn(ctx context.Context) {
	if owed, err := p.keeper.retry(); owed && err == nil {
		p.log.InfoContext(ctx, "list of workers is kept again")
	}
	w, err := p.ask(ctx)
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		if p.look.Note(err) {
			what := "keeping the last good list of workers"
			if p.Current() == nil {
				what = "no list of workers yet, and not ready before one comes"
			}
			p.log.ErrorContext(ctx, what, slog.Any("error", err))
		}
		return
	case p.look.Note(nil):
		p.log.InfoContext(ctx, "list of workers to be had again")
	}
	if w == nil {
		return
	}
	p.put(w)
	p.log.InfoContext(ctx, "list of workers in use", slog.String("version", w.Version()))
	kept, err := p.form(w)
	if err == nil {
		err = p.keeper.save(kept)
	}
	if err != nil {
		p.log.ErrorContext(ctx, "serving on without a kept list of workers; trying again", slog.Any("error", err))
	}
}
