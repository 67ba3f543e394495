package serving

import (
	"fmt"
	"log/slog"
	"strings"
)

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
		l.InFlight = min(mostInFlight, l.Connections)
	}
	l.ToServers = serverConnections(descriptors, l.Connections)
	return l
}

// A Limit is one of what a server may take of a program.
type Limit struct {
	Setting            string
	Set, Gets, Default int // what it is set to, what it came to, and its default
}

// WarnLowered warns, with fields, if a limit came to less than somebody has set, and
// reports whether one did.
func (s *Settings) WarnLowered(log *slog.Logger, fields []any, limits ...Limit) bool {
	var less []string
	for _, l := range limits {
		if l.Gets < l.Set && l.Set != l.Default {
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
