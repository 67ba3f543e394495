//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cellway/cellway/bench/internal/fleet"
)

// The routers that faults are played on.
const (
	frontPlain  = "plain"  // as it comes
	frontFew    = "few"    // with few descriptors, and the limits that follow from them
	frontBeyond = "beyond" // with few descriptors, and limits beyond them
	frontPeer   = "peer"   // nginx, in place of frontPlain
)

// A fault is what goes wrong in one window.
type fault struct {
	name  string
	what  string // it is
	front string

	// begin begins the fault. What it returns ends it, and says what was seen of
	// it besides.
	begin func(ctx context.Context, r *rig, f *front, p plan) (end func() (seen string, err error), err error)

	spoils  bool    // the fourth cell answers nothing 200 meanwhile
	moreMiB float64 // of memory the router may take
	refused float64 // share of the other cells' requests that may be; then there is no bound of their times
}

// mostMiB is how much more memory the router may have with a fault, and some
// time after it, unless the fault says otherwise.
const mostMiB = 32

// faults returns all faults.
func faults() []fault {
	ofCell := func(mode, what string) fault {
		return fault{name: mode, what: what, front: frontPlain, spoils: true, moreMiB: mostMiB, begin: func(ctx context.Context, r *rig, _ *front, _ plan) (func() (string, error), error) {
			return func() (string, error) { return "", r.become(ctx, modeWell) }, r.become(ctx, mode)
		}}
	}
	return []fault{
		ofCell(modeHangs, "the fourth cell reads requests and is silent"),
		ofCell(modeDripsHead, "its answers come a byte a second"),
		ofCell(modeDripsBody, "its answers' bodies come a byte a second"),
		ofCell(modeResets, "it resets connections"),
		ofCell(modeBreaks, "it resets connections in the middle of answers"),
		ofCell(modeFull, "it accepts no connection, and its queue is full"),
		ofCell(modeFields, "the heads of its answers have no end"),
		ofCell(modeInterim, "it has no end of interim answers"),
		ofCell(modeGarbage, "what it sends is no HTTP"),
		{
			name: "silent-crowd", what: "many connections stand and nothing comes over them", front: frontPlain, moreMiB: 64 + mostMiB,
			begin: ofCrowd(func(p plan) call { return call{Count: p.clients} }),
		},
		{
			name: "crowd-arrives", what: "as many connect all at once", front: frontPlain, moreMiB: 64 + mostMiB,
			begin: ofCrowd(func(p plan) call { return call{Count: p.clients, Late: true} }),
		},
		{
			name: "slow-heads", what: "a tenth as many send their requests' heads a byte a second", front: frontPlain, moreMiB: 64 + mostMiB,
			begin: ofCrowd(func(p plan) call {
				return call{Count: max(1, p.clients/10), First: "GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ", Drip: true}
			}),
		},
		{
			name: "slow-readers", what: "clients of the fourth cell ask for 64 MiB each, and don't read", front: frontPlain, moreMiB: 64 + mostMiB,
			begin: ofCrowd(func(p plan) call { return call{Count: p.readers, First: fourthRequest(largePath), Small: true} }),
		},
		{
			name: "few-descriptors", what: fmt.Sprintf("a router with %d descriptors gets a crowd of requests that hang in the fourth cell", fewDescriptors),
			front: frontFew, spoils: true, refused: 0.1, moreMiB: mostMiB, begin: exhaust,
		},
		{
			name: "no-descriptors", what: "so does one that is told to take more connections than it has descriptors",
			front: frontBeyond, spoils: true, refused: 1, moreMiB: mostMiB, begin: exhaust,
		},
	}
}

// fourthRequest is a request for that path of the fourth cell.
func fourthRequest(path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: a\r\n" + fleet.TenantField + ": " + fleet.Tenant(cells-1, 0) + "\r\n\r\n"
}

// ofCrowd is the fault of a crowd of clients.
func ofCrowd(of func(p plan) call) func(context.Context, *rig, *front, plan) (func() (string, error), error) {
	return func(ctx context.Context, r *rig, f *front, p plan) (func() (string, error), error) {
		c := of(p)
		c.Addr = f.addr
		text, err := json.Marshal(c)
		if err != nil {
			return nil, err
		}
		_, err = r.tell(ctx, r.crowds+"/call", string(text))
		return func() (string, error) { return r.tell(ctx, r.crowds+"/end", "") }, err
	}
}

// exhaust has more clients than the router has descriptors ask for what hangs.
func exhaust(ctx context.Context, r *rig, f *front, p plan) (func() (string, error), error) {
	if err := r.become(ctx, modeHangs); err != nil {
		return nil, err
	}
	end, err := ofCrowd(func(p plan) call {
		return call{Count: min(p.clients, 4*fewDescriptors), First: fourthRequest("/"), Late: true}
	})(ctx, r, f, p)
	return func() (string, error) {
		seen, err := end()
		return seen, errors.Join(err, r.become(ctx, modeWell))
	}, err
}
