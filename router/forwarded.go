package router

import (
	"net/netip"
	"strings"

	"github.com/cellway/cellway/internal/engine"
)

// A proxies list says which peers stand between clients and the router, and
// may speak of the client in forwarding fields.
type proxies []netip.Prefix

func (p proxies) trust(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, prefix := range p {
		if prefix.Contains(a) {
			return true
		}
	}
	return false
}

// clientOf returns the client's address: that of the peer, or, behind trusted
// proxies, the last one in X-Forwarded-For that is not such a proxy.
func (p proxies) clientOf(said Fields, peer netip.Addr) netip.Addr {
	client := peer
	lines := said.Values("X-Forwarded-For")
	for i := len(lines) - 1; i >= 0; i-- {
		for line := lines[i]; line != ""; {
			if !client.IsValid() || !p.trust(client) {
				return client
			}
			at := strings.LastIndexByte(line, ',') + 1
			next, ok := parseHop(line[at:])
			if !ok {
				return client
			}
			client = next
			line = line[:max(0, at-1)]
		}
	}
	return client
}

// parseHop reads an element of X-Forwarded-For. Some write a port too.
func parseHop(s string) (netip.Addr, bool) {
	s = strings.Trim(s, " \t")
	if a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")); err == nil {
		return a.Unmap(), true
	}
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr().Unmap(), true
	}
	return netip.Addr{}, false
}

// forwarding makes h, the header for the cell, speak of the client. What a peer
// that is not trusted said of it goes; a trusted proxy's words are continued.
func (x *exchange) forwarding(h engine.Header) {
	peer, host := x.peer, x.head.Host
	if !peer.IsValid() || !x.rt.trusted.trust(peer) {
		h.DelFunc(isForwarding)
	}
	proto := "http"
	if x.in.Secure() {
		proto = "https"
	}
	if peer.IsValid() {
		x.text = x.text[:0]
		for _, before := range h.Values("X-Forwarded-For") {
			x.text = append(x.text, before...)
			x.text = append(x.text, ", "...)
		}
		x.text = peer.AppendTo(x.text)
		h.SetBytes("X-Forwarded-For", x.text)
	}
	if len(h.Values("X-Forwarded-Proto")) == 0 {
		h.Set("X-Forwarded-Proto", proto)
	}
	if len(h.Values("X-Forwarded-Host")) == 0 {
		h.Set("X-Forwarded-Host", host)
	}
	// The older fields say it all; Forwarded (RFC 7239) is continued only
	// where a trusted proxy began it.
	if before := h.Values("Forwarded"); len(before) > 0 {
		h.SetBytes("Forwarded", []byte(strings.Join(before, ", ")+", "+forwardedElement(peer, host, proto)))
	}
}

func forwardedElement(peer netip.Addr, host, proto string) string {
	node := "unknown"
	switch {
	case peer.Is4():
		node = peer.String()
	case peer.Is6():
		node = `"[` + peer.WithZone("").String() + `]"`
	}
	e := "for=" + node + ";proto=" + proto
	if host != "" && !strings.ContainsAny(host, "\"\\") {
		e += `;host="` + host + `"`
	}
	return e
}

// isForwarding reports whether a field, in whatever case, speaks of the client.
func isForwarding(name string) bool {
	const prefix = "x-forwarded-"
	if len(name) == len("forwarded") {
		return equalFold(name, "forwarded") || equalFold(name, "x-real-ip")
	}
	return len(name) >= len(prefix) && equalFold(name[:len(prefix)], prefix)
}
