package serving

// SpareDescriptors are those that a program needs beside those of connections:
// files, listeners, what it asks itself, clients that are turned away.
const SpareDescriptors = 512

// MostConnections bounds what is derived from a limit that is no limit.
const MostConnections = 1 << 18

// mostInFlight is how many requests at a time are derived from any limit.
const mostInFlight = 16384

// ClientConnections returns how many clients' connections a descriptor limit
// allows. Each may become a tunnel, with one more connection to a server; and the
// requests of others, as there may be many on a connection of HTTP/2, have up to
// one each.
func ClientConnections(descriptors uint64) int {
	left := descriptors - min(descriptors, SpareDescriptors)
	if descriptors <= 2*SpareDescriptors {
		return int(max(16, descriptors/4))
	}
	return int(min(MostConnections, max(left/3, (left-min(left, mostInFlight))/2)))
}

// serverConnections returns how many connections to servers a descriptor limit
// leaves beside those of clients, those that are idle included.
func serverConnections(descriptors uint64, clients int) int {
	spare := uint64(SpareDescriptors)
	if descriptors <= 2*SpareDescriptors {
		spare = descriptors / 4
	}
	taken := spare + uint64(clients)
	return int(min(3*MostConnections, max(16, descriptors-min(descriptors, taken))))
}
