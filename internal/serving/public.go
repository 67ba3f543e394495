package serving

import "net"

// A Public is what settings say of where and by what clients are served.
type Public struct {
	Clear, Secure []string // addresses: listen, listen-tls
	Admin         string
	Certs, Keys   []string // files: tls-cert, tls-key
	TLSMin        string   // tls-min
	HTTP1         string   // http1
}

// Validate tells bad of each setting that can't be so, by its name.
func (p Public) Validate(bad func(key, format string, args ...any)) {
	if len(p.Clear)+len(p.Secure) == 0 {
		bad("listen", "neither listen nor listen-tls has an address")
	}
	for key, all := range map[string][]string{"listen": p.Clear, "listen-tls": p.Secure, "admin": {p.Admin}} {
		for _, a := range all {
			if _, port, err := net.SplitHostPort(a); err != nil || port == "" {
				bad(key, "%q is not host:port or :port", a)
			}
		}
	}
	if len(p.Certs) != len(p.Keys) {
		bad("tls-key", "%d keys for %d certificates", len(p.Keys), len(p.Certs))
	}
	if len(p.Secure) > 0 && len(p.Certs) == 0 {
		bad("tls-cert", "listen-tls needs a certificate")
	}
	if p.HTTP1 != "engine" && p.HTTP1 != "net/http" {
		bad("http1", "%q is neither engine nor net/http", p.HTTP1)
	}
	if p.TLSMin != "1.2" && p.TLSMin != "1.3" {
		bad("tls-min", "%q is neither 1.2 nor 1.3", p.TLSMin)
	}
}
