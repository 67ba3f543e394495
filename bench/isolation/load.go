package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"time"
)

// A source sends requests of one cell's tenants at a fixed rate.
type source struct {
	url    string
	cell   int
	client *http.Client
}

// newSource returns a source with connections of its own.
func newSource(url string, cell int, limit time.Duration) *source {
	return &source{url, cell, &http.Client{
		Timeout:   limit,
		Transport: &http.Transport{MaxIdleConns: 1024, MaxIdleConnsPerHost: 1024, IdleConnTimeout: time.Minute, DisableCompression: true},
	}}
}

// An outcome is what became of one request.
type outcome struct {
	took time.Duration // since it was due
	said string        // "200", a router's code, or what went wrong
}

// send sends requests, rate of them a second, for d, and returns when all of
// them are answered. A request waits for none before it.
func (s *source) send(ctx context.Context, rate int, d time.Duration) []outcome {
	every := time.Second / time.Duration(rate)
	n := int(d / every)
	out := make([]outcome, n)
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
			said := s.ask(ctx, tenant(s.cell, i))
			out[i] = outcome{time.Since(due), said}
		})
	}
	all.Wait()
	return out
}

// ask sends one request and says what became of it.
func (s *source) ask(ctx context.Context, tenant string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return err.Error()
	}
	req.Header.Set("X-Tenant-Id", tenant)
	res, err := s.client.Do(req)
	if err != nil {
		return "no answer"
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return "broken off"
	}
	if res.StatusCode == http.StatusOK {
		return "200"
	}
	var problem struct {
		Code string `json:"code"`
	}
	if json.Unmarshal(body, &problem) != nil || problem.Code == "" {
		return res.Status
	}
	return problem.Code
}
