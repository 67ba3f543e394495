package router

import (
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/cellway/cellway/internal/alike"
	"github.com/cellway/cellway/routemap"
)

// FuzzLoopsServeAlike compares two servers of one router, of which one has event loops.
func FuzzLoopsServeAlike(f *testing.F) {
	cell := httptest.NewServer(alike.WhatItGot("Traceparent", "X-Forwarded-For"))
	f.Cleanup(cell.Close)
	rt, err := New(Config{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(rt.Close)
	if err := rt.Swap(build(f, fleet(1, func(c *routemap.Content) { c.Cells[0].Endpoints = []string{cell.URL} }))); err != nil {
		f.Fatal(err)
	}
	alike.Fuzz(f, "Host: a\r\nX-Tenant-Id: acme\r\n", rt.NewServer)
}
