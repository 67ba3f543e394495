package router

import (
	"net/http"
	"net/netip"
	"strings"
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

// peerOf returns the address of r's connection; the zero Addr if it has none,
// as on a Unix socket.
func peerOf(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}

// clientOf returns the client's address: that of the peer, or, behind trusted
// proxies, the last one in X-Forwarded-For that is not such a proxy.
func (p proxies) clientOf(r *http.Request, peer netip.Addr) netip.Addr {
	client := peer
	lines := r.Header["X-Forwarded-For"]
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

// forward makes h, the header for the cell, speak of r's client. What a peer
// that is not trusted said of it goes; a trusted proxy's words are continued.
func (p proxies) forward(h http.Header, r *http.Request, peer netip.Addr) {
	trusted := peer.IsValid() && p.trust(peer)
	if !trusted {
		for name := range h {
			if isForwarding(name) {
				delete(h, name)
			}
		}
	}
	proto := "http"
	if r.TLS != nil {
		proto = "https"
	}
	if peer.IsValid() {
		chain := peer.String()
		if before := h["X-Forwarded-For"]; len(before) > 0 {
			chain = strings.Join(before, ", ") + ", " + chain
		}
		h["X-Forwarded-For"] = []string{chain}
	}
	if len(h["X-Forwarded-Proto"]) == 0 {
		h["X-Forwarded-Proto"] = []string{proto}
	}
	if len(h["X-Forwarded-Host"]) == 0 {
		h["X-Forwarded-Host"] = []string{r.Host}
	}
	// The older fields say it all; Forwarded (RFC 7239) is continued only
	// where a trusted proxy began it.
	if before := h["Forwarded"]; len(before) > 0 {
		h["Forwarded"] = []string{strings.Join(before, ", ") + ", " + forwardedElement(peer, r.Host, proto)}
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

// isForwarding reports whether a field, in canonical form, speaks of the client.
func isForwarding(name string) bool {
	return strings.HasPrefix(name, "X-Forwarded-") || name == "X-Real-Ip" || name == "Forwarded"
}
