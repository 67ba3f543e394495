package router

import "strings"

// host matches the labels of a host, from the first to the last. Case, a port
// and a final dot don't count.
func (p *pattern) host(host string) finding {
	name, ok := hostName(host)
	if !ok {
		return invalid("the host is malformed")
	}
	var tenantLabel, partLabel string
	composite := false
	for i, s := range p.steps {
		label, rest, more := strings.Cut(name, ".")
		if last := i == len(p.steps)-1; more == last {
			return finding{} // it has more labels, or fewer
		}
		name = rest
		switch s.kind {
		case literal:
			if !equalFold(label, s.text) {
				return finding{}
			}
		case tenant:
			tenantLabel = label
		case part:
			partLabel, composite = label, true
		}
	}
	if !isLabel(tenantLabel) || composite && !isLabel(partLabel) {
		return invalid("a label of the host is not a key")
	}
	return joined(lower(tenantLabel), lower(partLabel), composite, "")
}

// hostName returns host without its port and a final dot, or "" for an address
// in brackets, which has no labels. It reports false for what is no host.
func hostName(host string) (name string, ok bool) {
	if strings.HasPrefix(host, "[") {
		return "", true
	}
	if i := strings.IndexByte(host, ':'); i >= 0 {
		for _, c := range []byte(host[i+1:]) {
			if c < '0' || c > '9' {
				return "", false
			}
		}
		host = host[:i]
	}
	return strings.TrimSuffix(host, "."), true
}

// isLabel reports whether s can be a label of a host name. A key may hold more
// bytes than a label: an @, say, which some servers read as the end of a user.
func isLabel(s string) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_':
		default:
			return false
		}
	}
	return s != ""
}

// equalFold reports whether s is lowered, which has no capitals, but for the
// case of its letters A to Z.
func equalFold(s, lowered string) bool {
	if len(s) != len(lowered) {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lowered[i] {
			return false
		}
	}
	return true
}
