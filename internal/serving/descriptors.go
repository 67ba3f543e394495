package serving

import (
	"fmt"
	"log/slog"
	"strings"
)

// SpareDescriptors are those that a program needs beside those of connections:
// files, listeners, what it asks itself, clients that are turned away.
const SpareDescriptors = 512

// MostConnections bounds what is derived from a limit that is no limit.
const MostConnections = 1 << 18

// MostInFlight is how many requests at a time are derived from any limit.
const MostInFlight = 16384

// ClientConnections returns how many clients' connections a descriptor limit
// allows. Each may become a tunnel, with one more connection to a server; and the
// requests of others, as there may be many on a connection of HTTP/2, have up to
// one each.
func ClientConnections(descriptors uint64) int {
	left := descriptors - min(descriptors, SpareDescriptors)
	if descriptors <= 2*SpareDescriptors {
		return int(max(16, descriptors/4))
	}
	return int(min(MostConnections, max(left/3, (left-min(left, MostInFlight))/2)))
}

// ServerConnections returns how many connections to servers a descriptor limit
// leaves beside those of clients, those that are idle included.
func ServerConnections(descriptors uint64, clients int) int {
	spare := uint64(SpareDescriptors)
	if descriptors <= 2*SpareDescriptors {
		spare = descriptors / 4
	}
	taken := spare + uint64(clients)
	return int(min(3*MostConnections, max(16, descriptors-min(descriptors, taken))))
}

// Limits are those that depend on the descriptors.
type Limits struct {
	Descriptors           uint64
	Connections, InFlight int // of clients
	ToServers             int // connections to servers, those that are idle included
}

// Limits derives what the settings leave open from the descriptors.
func (s *Settings) Limits(descriptors uint64) Limits {
	l := Limits{Descriptors: descriptors, Connections: s.MaxConnections, InFlight: s.MaxInFlight}
	if l.Connections == 0 {
		l.Connections = ClientConnections(descriptors)
	}
	if l.InFlight == 0 {
		l.InFlight = min(MostInFlight, l.Connections)
	}
	l.ToServers = ServerConnections(descriptors, l.Connections)
	return l
}

// A Limit is one of what a server may take of a program.
type Limit struct {
	Setting         string
	Set, Gets, Deft int // what it is set to, what it came to, and its default
}

// WarnLowered warns, with fields, if a limit came to less than somebody has set, and
// reports whether one did.
func (s *Settings) WarnLowered(log *slog.Logger, fields []any, limits ...Limit) bool {
	var less []string
	for _, l := range limits {
		if l.Gets < l.Set && l.Set != l.Deft {
			less = append(less, fmt.Sprintf("%s is %d, not %d", l.Setting, l.Gets, l.Set))
		}
	}
	if len(less) == 0 {
		return false
	}
	log.Warn("limits: a "+s.names.Server+" is allowed less than is set, for one must not take more than half of what the "+s.names.Program+" has; "+
		"raise the limit of descriptors (ulimit -n, LimitNOFILE), or max-connections and max-in-flight", append(fields, "less", strings.Join(less, ", "))...)
	return true
}
