package cellhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cellway/cellway"
)

// first returns the place of a key that came for the first time, after asking
// the control plane; nil if it didn't tell. Requests for one key ask once, and
// for one that it does not know once a second.
func (t *Transport) first(ctx context.Context, k *known) (*settled, error) {
	if t.cfg.Locate == nil {
		return nil, nil
	}
	select {
	case k.asking <- struct{}{}:
		defer func() { <-k.asking }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if p := k.place.Load(); p != nil {
		return p, nil
	}
	if t.now() < t.deaf.Load() {
		return nil, fmt.Errorf("the control plane did not answer a moment ago: %w", cellway.ErrNotReady)
	}
	if t.now() < k.vain.Load() {
		return nil, fmt.Errorf("locate key %s: not known a moment ago: %w", k.key, cellway.ErrNotFound)
	}
	err := t.ask(ctx, k)
	if err != nil && !errors.Is(err, cellway.ErrNotFound) && context.Cause(ctx) == nil {
		t.cantLearn(err)
	}
	if errors.Is(err, cellway.ErrNotFound) {
		k.vain.Store(t.now() + int64(time.Second))
	}
	return k.place.Load(), err
}

// ask asks the control plane and learns.
func (t *Transport) ask(ctx context.Context, k *known) error {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.LocateTimeout)
	defer cancel()
	t.figures.asked.Add(1)
	l, err := t.cfg.Locate(ctx, k.key)
	if err != nil {
		if !errors.Is(err, cellway.ErrNotFound) {
			t.figures.failed.Add(1)
		}
		if !errors.Is(err, cellway.ErrNotFound) {
			t.deaf.Store(t.now() + int64(t.cfg.LocateTimeout))
		}
		return fmt.Errorf("locate key %s: %w", k.key, err)
	}
	t.deaf.Store(0)
	p := Place{Key: k.key, Cell: l.Cell, Epoch: l.Epoch, Endpoints: l.Endpoints}
	if t.cfg.Endpoints != nil {
		if own := t.cfg.Endpoints(l.Cell); len(own) > 0 {
			p.Endpoints = own
		}
	}
	if err := p.validate(); err != nil {
		return fmt.Errorf("locate key %s: %w", k.key, err)
	}
	t.learn(k, p)
	t.learned()
	return nil
}

// refused asks the control plane after p refused k. All requests that are
// refused at once ask once. An answer that is nothing new is not asked for
// again within a second, however often a cell refuses what the map says is its
// own.
func (t *Transport) refused(ctx context.Context, k *known, p *settled) {
	if t.cfg.Locate == nil {
		k.due.Store(0) // for the router to be asked
		return
	}
	select {
	case k.asking <- struct{}{}:
		defer func() { <-k.asking }()
	case <-ctx.Done():
		return
	}
	if k.place.Load() != p || t.now() < t.deaf.Load() || t.now() < k.vain.Load() {
		return
	}
	if err := t.ask(ctx, k); err != nil {
		t.log.Warn("a cell refused a key, and the control plane can't tell where it is", "key", k.key, "cell", p.Cell, "error", err)
	}
	if k.place.Load() == p {
		k.vain.Store(t.now() + int64(time.Second))
	}
}

// mostLooks is how many keys are looked up again at the same time.
const mostLooks = 16

// check asks again beside the requests, if it is time to, the control plane
// answers, and not too many questions are open already. A question that fails
// changes nothing, and is put again sooner.
func (t *Transport) check(k *known) {
	now := t.now()
	if now < k.due.Load() || now < t.deaf.Load() || t.looks.Load() >= mostLooks || !k.checking.CompareAndSwap(false, true) {
		return
	}
	if t.looks.Add(1) > mostLooks {
		t.looks.Add(-1)
		k.checking.Store(false)
		return
	}
	k.due.Store(now + int64(around(t.cfg.Recheck/10)))
	go func() {
		defer k.checking.Store(false)
		defer t.looks.Add(-1)
		if err := t.ask(context.Background(), k); err != nil {
			t.stays(k, err)
		}
	}()
}

// stays logs that k could not be looked up again, at most once a minute: when
// nobody answers, every key in use comes here.
func (t *Transport) stays(k *known, err error) {
	now, until := t.now(), t.hush.Load()
	if now >= until && t.hush.CompareAndSwap(until, now+int64(time.Minute)) {
		t.log.Warn("a key could not be looked up again, and is used as known", "key", k.key, "error", err)
	}
}

// heed learns from the headers of an answer that came through a router. It
// reports whether a cell answered it, as opposed to the router itself.
func (t *Transport) heed(k *known, h http.Header) bool {
	cell := cellway.CellID(h.Get(CellHeader))
	if cell.Validate() != nil {
		return false
	}
	epoch, _ := cellway.ParseEpoch(h.Get(EpochHeader))
	t.settle(k, cell, epoch)
	if t.cfg.Locate == nil {
		if k.place.Load() == nil {
			t.cantLearn(fmt.Errorf("%w: %s", errNoEndpoints, cell))
		} else {
			t.learned()
		}
	}
	return true
}

// settle learns that k is in cell, if it is known where that listens.
func (t *Transport) settle(k *known, cell cellway.CellID, epoch cellway.Epoch) bool {
	p := Place{Key: k.key, Cell: cell, Epoch: epoch}
	if t.cfg.Endpoints != nil {
		p.Endpoints = t.cfg.Endpoints(cell)
	}
	if old := k.place.Load(); len(p.Endpoints) == 0 && old != nil && old.Cell == cell {
		p.Endpoints = old.Endpoints
	}
	if len(p.Endpoints) == 0 {
		return false
	}
	return t.learn(k, p)
}
