package cellway

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// MaxCells is how many cells a fleet may ever have, retired ones included.
const MaxCells = 1 << 15

// A CellID names a cell for ever: it is never renamed and never reused. It
// matches ^[a-z][a-z0-9-]{0,62}$; people see the cell's title.
type CellID string

var cellID = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)

// Validate reports an id that breaks the pattern, as an [ErrInvalid].
func (id CellID) Validate() error {
	if !cellID.MatchString(string(id)) {
		return fmt.Errorf("cell id %q must be a lower-case letter, then up to 62 of a-z, 0-9 and -: %w", string(id), ErrInvalid)
	}
	return nil
}

// A CellState says what a cell may take on.
type CellState uint8

// The states of a cell. The zero CellState is new.
const (
	CellNew      CellState = iota // registered; owns no keys
	CellActive                    // serves, and takes placements
	CellCordoned                  // serves; takes no placements and no moves
	CellRetired                   // gone; the name stays taken
)

var cellStates = enum[CellState]{"cell state", []string{"new", "active", "cordoned", "retired"}}

func (s CellState) String() string                { return cellStates.name(s) }
func (s CellState) MarshalText() ([]byte, error)  { return cellStates.marshal(s) }
func (s *CellState) UnmarshalText(b []byte) error { return cellStates.unmarshal(b, s) }

// ParseCellState reads the name of a state.
func ParseCellState(s string) (CellState, error) { return cellStates.parse(s) }

// A GuardKind says what a cell checks before it serves a request.
type GuardKind uint8

// The kinds of guard. The zero GuardKind is none.
const (
	GuardNone     GuardKind = iota // serves whatever arrives
	GuardIdentity                  // refuses what was routed to another cell
	GuardFence                     // refuses also what is below its durable epoch
)

var guardKinds = enum[GuardKind]{"guard", []string{"none", "identity", "fence"}}

func (g GuardKind) String() string                { return guardKinds.name(g) }
func (g GuardKind) MarshalText() ([]byte, error)  { return guardKinds.marshal(g) }
func (g *GuardKind) UnmarshalText(b []byte) error { return guardKinds.unmarshal(b, g) }

// A Cell is a complete, independent copy of the workload, as the map knows it.
type Cell struct {
	ID        CellID            `json:"id"`
	Title     string            `json:"title,omitempty"`
	Endpoints []string          `json:"endpoints"` // scheme://host:port; see ParseEndpoint
	State     CellState         `json:"state"`
	Admit     uint8             `json:"admit"` // percent of its keys let through, 0 to 100
	Guard     GuardKind         `json:"guard"`
	Region    string            `json:"region,omitempty"`
	Zone      string            `json:"zone,omitempty"`
	Tags      map[string]string `json:"tags,omitempty"`
}

// Bounds of a cell record, so that it always fits in an overlay.
const (
	MaxEndpoints = 64
	maxCellText  = 256
	maxTags      = 32
)

// Validate reports the first rule that c breaks, as an [ErrInvalid].
func (c Cell) Validate() error {
	if err := c.ID.Validate(); err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("cell %s: %s: %w", c.ID, fmt.Sprintf(format, args...), ErrInvalid)
	}
	switch {
	case c.Admit > 100:
		return bad("admit is %d, the most is 100", c.Admit)
	case int(c.State) >= len(cellStates.names):
		return bad("state %d is unknown", c.State)
	case int(c.Guard) >= len(guardKinds.names):
		return bad("guard %d is unknown", c.Guard)
	case len(c.Endpoints) > MaxEndpoints:
		return bad("%d endpoints, the most is %d", len(c.Endpoints), MaxEndpoints)
	case len(c.Endpoints) == 0 && (c.State == CellActive || c.State == CellCordoned):
		return bad("it can't be %s without an endpoint", c.State)
	case len(c.Tags) > maxTags:
		return bad("%d tags, the most is %d", len(c.Tags), maxTags)
	}
	for name, s := range map[string]string{"title": c.Title, "region": c.Region, "zone": c.Zone} {
		if err := validText(s, maxCellText); err != nil {
			return fmt.Errorf("cell %s: %s %w", c.ID, name, err)
		}
	}
	for k, v := range c.Tags {
		if k == "" || validText(k, maxCellText) != nil || validText(v, maxCellText) != nil {
			return bad("tag %.40q=%.40q is empty, too long or not plain text", k, v)
		}
	}
	seen := make(map[string]bool, len(c.Endpoints))
	for _, e := range c.Endpoints {
		if _, err := ParseEndpoint(e); err != nil {
			return fmt.Errorf("cell %s: %w", c.ID, err)
		}
		if seen[e] {
			return bad("endpoint %q is listed twice", e)
		}
		seen[e] = true
	}
	return nil
}

// ParseEndpoint reads "scheme://host:port" with scheme http or https, and
// nothing after the port.
func ParseEndpoint(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || len(s) > maxCellText {
		return nil, fmt.Errorf("endpoint %.80q is not scheme://host:port: %w", s, ErrInvalid)
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || port == 0) {
		return nil, fmt.Errorf("endpoint %q: port %s is not one of 1 to 65535: %w", s, u.Port(), ErrInvalid)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.Port() == "" ||
		u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" || u.ForceQuery || strings.HasSuffix(s, "#") {
		return nil, fmt.Errorf("endpoint %q must be http or https, a host and a port, as in http://10.0.0.1:8080: %w", s, ErrInvalid)
	}
	return u, nil
}

// EndpointAddress returns the host and port of an endpoint in one spelling, so
// that two endpoints which lead to one place compare equal: a name in lower case
// without a final dot, an IP address in its shortest form, a port without
// leading zeros. It asks no name service. What is no endpoint has the address
// "".
func EndpointAddress(endpoint string) string {
	u, err := ParseEndpoint(endpoint)
	if err != nil {
		return ""
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if ip, err := netip.ParseAddr(host); err == nil {
		host = ip.Unmap().String()
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strings.TrimLeft(u.Port(), "0")
}

// validText allows printable UTF-8 text on one line.
func validText(s string, most int) error {
	if len(s) > most {
		return fmt.Errorf("has %d bytes, the most is %d: %w", len(s), most, ErrInvalid)
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == '\uFFFD' || r == '\u2028' || r == '\u2029' {
			return fmt.Errorf("%.40q is not plain text on one line: %w", s, ErrInvalid)
		}
	}
	return nil
}
