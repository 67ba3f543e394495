package cellway

import (
	"fmt"
	"strings"
)

// An ExtractorKind says where in a request an extractor looks.
type ExtractorKind uint8

// The kinds of extractor.
const (
	FromHeader ExtractorKind = iota // a header's value
	FromHost                        // labels of the host name, lower-cased
	FromPath                        // segments of the path, percent-decoded once
	FromQuery                       // a query parameter
	FromCookie                      // a cookie's value
	FromJWT                         // a claim of a JSON Web Token, read unverified: the cell verifies
	FromFixed                       // requests for certain paths get one named key
)

var extractorKinds = enum[ExtractorKind]{"extractor", []string{"header", "host", "path", "query", "cookie", "jwt", "fixed"}}

func (k ExtractorKind) String() string                { return extractorKinds.name(k) }
func (k ExtractorKind) MarshalText() ([]byte, error)  { return extractorKinds.marshal(k) }
func (k *ExtractorKind) UnmarshalText(b []byte) error { return extractorKinds.unmarshal(b, k) }

// ParseExtractorKind reads the name of a kind.
func ParseExtractorKind(s string) (ExtractorKind, error) { return extractorKinds.parse(s) }

// An Extractor finds the key in a request. They run in the map's order and the
// first that finds a value wins; those marked MustAgree run too, and a
// different value from one of them refuses the request.
//
//	{Kind: FromHeader, Name: "X-Tenant-Id"}
//	{Kind: FromHost,   Pattern: "{tenant}.app.example.com"}
//	{Kind: FromPath,   Pattern: "/t/{tenant}/{part}/*"}
//	{Kind: FromQuery,  Name: "tenant"}
//	{Kind: FromCookie, Name: "tenant"}
//	{Kind: FromJWT,    Name: "tenant_id"}                 // Authorization: Bearer
//	{Kind: FromJWT,    Name: "org", Source: "cookie:sid"} // a token in a cookie, or "header:Name"
//	{Kind: FromFixed,  Pattern: "/login", Key: "front-desk"}
//
// In a pattern, {tenant} and {part} stand for one label or segment, "*" for any
// one, and a final "/*" in a path for the rest, if any. A value found by name
// may be a whole key, "tenant/part".
type Extractor struct {
	Kind      ExtractorKind `json:"kind"`
	Name      string        `json:"name,omitempty"`    // header, query parameter, cookie or claim ("a.b" is nested)
	Pattern   string        `json:"pattern,omitempty"` // host, path and fixed
	Key       Key           `json:"key,omitempty"`     // fixed: the key to use
	Source    string        `json:"source,omitempty"`  // jwt: "header:NAME" or "cookie:NAME"; empty: the bearer token
	MustAgree bool          `json:"must_agree,omitempty"`
}

// Validate reports the first rule that x breaks, as an [ErrInvalid], so that an
// extractor that a router could not use is refused before it is published.
func (x Extractor) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("extractor %s: %s: %w", x.Kind, fmt.Sprintf(format, args...), ErrInvalid)
	}
	if int(x.Kind) >= len(extractorKinds.names) {
		return bad("unknown kind")
	}
	for field, s := range map[string]string{"name": x.Name, "pattern": x.Pattern, "source": x.Source} {
		if err := validText(s, maxCellText); err != nil {
			return fmt.Errorf("extractor %s: %s %w", x.Kind, field, err)
		}
	}
	named := x.Kind == FromHeader || x.Kind == FromQuery || x.Kind == FromCookie || x.Kind == FromJWT
	switch {
	case named && x.Name == "":
		return bad("it needs a name")
	case !named && x.Name != "":
		return bad("a name means nothing here; use pattern")
	case named && x.Pattern != "":
		return bad("a pattern means nothing here; use name")
	case x.Kind != FromJWT && x.Source != "":
		return bad("only a jwt extractor has a source")
	case x.Kind != FromFixed && x.Key != "":
		return bad("only a fixed extractor names a key")
	}
	if (x.Kind == FromHeader || x.Kind == FromCookie) && !isToken(x.Name) {
		return bad("name %q is not a header or cookie name", x.Name)
	}
	if x.Kind == FromHeader && strings.HasPrefix(strings.ToLower(x.Name), "x-cell-") {
		return bad("X-Cell-* headers are the router's own and are removed from requests")
	}
	if x.Source != "" {
		where, name, ok := strings.Cut(x.Source, ":")
		if !ok || (where != "header" && where != "cookie") || !isToken(name) {
			return bad("source %q must be header:NAME or cookie:NAME", x.Source)
		}
	}
	switch x.Kind {
	case FromHost:
		return x.validPattern(".", strings.Split(x.Pattern, "."), true)
	case FromPath, FromFixed:
		if !strings.HasPrefix(x.Pattern, "/") {
			return bad("pattern %q must start with /", x.Pattern)
		}
		if x.Kind == FromFixed {
			if err := x.Key.Validate(); err != nil {
				return fmt.Errorf("extractor %s: %w", x.Kind, err)
			}
		}
		return x.validPattern("/", strings.Split(x.Pattern[1:], "/"), x.Kind == FromPath)
	}
	return nil
}

func (x Extractor) validPattern(sep string, steps []string, captures bool) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("extractor %s: pattern %q: %s: %w", x.Kind, x.Pattern, fmt.Sprintf(format, args...), ErrInvalid)
	}
	seen := map[string]int{}
	for i, s := range steps {
		switch {
		case s == "" && !(sep == "/" && len(steps) == 1):
			return bad("empty step")
		case s == "*" || s == "{tenant}" || s == "{part}":
			if seen[s]++; s != "*" && seen[s] > 1 {
				return bad("%s stands twice", s)
			}
		case strings.ContainsAny(s, "*{}? #"):
			return bad("step %d, %q, must be a literal, *, {tenant} or {part} alone", i+1, s)
		}
	}
	switch {
	case captures && seen["{tenant}"] == 0:
		return bad("it needs {tenant}")
	case !captures && seen["{tenant}"]+seen["{part}"] > 0:
		return bad("a fixed extractor captures nothing")
	}
	return nil
}

// isToken reports whether s is a token of RFC 9110 section 5.6.2.
func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}
