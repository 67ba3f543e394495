package controld

import (
	"context"
	"time"

	"github.com/cellway/cellway"
)

// overdueEvery is how often overrides are looked at.
const overdueEvery = time.Minute

// watchOverdue raises the alarm for overrides whose review_by has passed: a
// line in the log once for each, and a measurement. It changes nothing.
func (s *Server) watchOverdue(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	told := map[cellway.Key]time.Time{}
	for {
		n, err := s.tellOverdue(ctx, time.Now(), told)
		if err == nil {
			s.metrics.overdue.Set(float64(n))
		} else if ctx.Err() == nil {
			s.log.WarnContext(ctx, "overrides not read", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// tellOverdue counts what is overdue at now and logs what told has not, with
// the date that has passed.
func (s *Server) tellOverdue(ctx context.Context, now time.Time, told map[cellway.Key]time.Time) (n int, err error) {
	seen := map[cellway.Key]bool{}
	for after := ""; ; {
		p, err := s.service.Overrides(ctx, "", after, 1000)
		if err != nil {
			return 0, err
		}
		for _, o := range p.Items {
			if o.ReviewBy.After(now) {
				continue
			}
			n++
			seen[o.Key] = true
			if !told[o.Key].Equal(o.ReviewBy) {
				s.log.WarnContext(ctx, "override overdue", "key", o.Key, "kind", o.Kind.String(), "by", o.By, "review_by", o.ReviewBy)
				told[o.Key] = o.ReviewBy
			}
		}
		if after = p.Next; after == "" {
			break
		}
	}
	for key := range told {
		if !seen[key] {
			delete(told, key)
		}
	}
	return n, nil
}
