package gateway

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/cellway/cellway/internal/alike"
)

// FuzzLoopsServeAlike compares two servers of one gateway, of which one has event loops.
// Now and then its worker fails.
func FuzzLoopsServeAlike(f *testing.F) {
	const as = "Host: a\r\nX-Cell-Id: cell-001\r\nX-Cell-Epoch: 1.1\r\nX-Cell-Key: acme\r\nX-Tenant-Id: acme\r\n"
	worker := httptest.NewServer(alike.WhatItGot())
	f.Cleanup(worker.Close)
	list, err := ParseWorkers(fmt.Appendf(nil, `{"salt":"s","size":1,"workers":[{"id":"w1","endpoint":%q}]}`, worker.URL))
	if err != nil {
		f.Fatal(err)
	}
	gw, err := New(Config{
		Cell: "cell-001", Source: NewStatic(list), Routers: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Log: slog.New(slog.DiscardHandler),
		Retries: Retries{TenantBurst: 1e9, CellBurst: 1e9},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(gw.Close)
	alike.Fuzz(f, as, gw.NewServer, "GET /2 HTTP/1.1\r\n"+strings.ReplaceAll(as, "cell-001", "cell-002")+"\r\nCONNECT a:1 HTTP/1.1\r\n"+as+"\r\n")
}
