package router

import (
	"strings"

	"github.com/cellway/cellway"
)

// A step is one label or segment of a pattern.
type step struct {
	kind stepKind
	text string // of a literal
}

type stepKind uint8

const (
	literal stepKind = iota
	anyOne
	tenant
	part
)

// A pattern matches the labels of a host or the segments of a path.
type pattern struct {
	steps []step
	rest  bool // path: anything may follow the steps
}

func steps(texts []string) []step {
	out := make([]step, len(texts))
	for i, s := range texts {
		switch s {
		case "*":
			out[i].kind = anyOne
		case "{tenant}":
			out[i].kind = tenant
		case "{part}":
			out[i].kind = part
		default:
			out[i].text = s
		}
	}
	return out
}

func hostPattern(s string) pattern {
	return pattern{steps: steps(strings.Split(lower(s), "."))}
}

func pathPattern(s string) pattern {
	p := pattern{steps: steps(strings.Split(strings.TrimPrefix(s, "/"), "/"))}
	if n := len(p.steps); p.steps[n-1].kind == anyOne {
		p.steps, p.rest = p.steps[:n-1], true
	}
	return p
}

// joined makes a finding of a tenant and perhaps a part, both cut from s. It
// copies nothing if they stand in s as they stand in a key.
func joined(tenant, part string, composite bool, s string) finding {
	if !composite {
		return single(tenant)
	}
	if strings.IndexByte(tenant, '/') >= 0 || strings.IndexByte(part, '/') >= 0 {
		return invalid("a segment holds an encoded slash")
	}
	if i := strings.Index(s, tenant); i >= 0 && len(s) > i+len(tenant) && s[i+len(tenant)] == '/' {
		if rest := s[i:]; strings.HasPrefix(rest[len(tenant)+1:], part) {
			return whole(rest[:len(tenant)+1+len(part)])
		}
	}
	return whole(tenant + "/" + part)
}

// single makes a finding of a value that must be a tenant alone.
func single(value string) finding {
	if strings.IndexByte(value, '/') >= 0 {
		return invalid("a segment holds an encoded slash")
	}
	if key := cellway.Key(value); key.Valid() {
		return finding{key: key}
	}
	return invalid("the value is not a key")
}

// lower folds A to Z; it allocates only if there is one.
func lower(s string) string {
	for i := 0; i < len(s); i++ {
		if 'A' <= s[i] && s[i] <= 'Z' {
			return strings.ToLower(s)
		}
	}
	return s
}
