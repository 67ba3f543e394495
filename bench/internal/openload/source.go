// Package openload sends requests at a fixed rate, whatever becomes of those
// before them.
//
// A request's time begins when it was due, not when it was sent: a source that
// falls behind does not hide it.
package openload

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/cellway/cellway/bench/internal/fleet"
)

// A Source sends requests of one cell's tenants at a fixed rate.
type Source struct {
	url    string
	cell   int
	client *http.Client
}

// New returns a source of requests for the cell with that index, on connections
// of its own. A request is given up after limit.
func New(url string, cell int, limit time.Duration) *Source {
	return &Source{url, cell, &http.Client{
		Timeout:   limit,
		Transport: &http.Transport{MaxIdleConns: 1024, MaxIdleConnsPerHost: 1024, IdleConnTimeout: time.Minute, DisableCompression: true},
	}}
}

// Close closes the connections that are idle.
func (s *Source) Close() { s.client.CloseIdleConnections() }

// OK is the outcome of a request that was answered 200.
const OK = "200"

// NoAnswer is the outcome of a request that no answer came to.
const NoAnswer = "no answer"

// An Outcome is what became of one request.
type Outcome struct {
	Took time.Duration // since it was due
	Said string        // OK, the router's code, another status, or what went wrong
}

// Send sends requests, rate of them a second, for d, and returns when all of
// them are answered. A request waits for none before it. If ctx ends, fewer are
// sent.
func (s *Source) Send(ctx context.Context, rate int, d time.Duration) []Outcome {
	every := time.Second / time.Duration(rate)
	n := int(d / every)
	out := make([]Outcome, n)
	var all sync.WaitGroup
	began := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range n {
		due := began.Add(time.Duration(i) * every)
		if wait := time.Until(due); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				all.Wait()
				return out[:i]
			}
		}
		all.Go(func() {
			said := s.ask(ctx, fleet.Tenant(s.cell, i))
			out[i] = Outcome{time.Since(due), said}
		})
	}
	all.Wait()
	return out
}

// ask sends one request and says what became of it.
func (s *Source) ask(ctx context.Context, tenant string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return err.Error()
	}
	req.Header.Set(fleet.TenantField, tenant)
	res, err := s.client.Do(req)
	if err != nil {
		return NoAnswer
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return "broken off"
	}
	if res.StatusCode == http.StatusOK {
		return OK
	}
	var problem struct {
		Code string `json:"code"`
	}
	if json.Unmarshal(body, &problem) != nil || problem.Code == "" {
		return res.Status
	}
	return problem.Code
}
