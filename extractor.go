package cellway

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
