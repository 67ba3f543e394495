// Package front is what servers in front of others have in common.
//
// A router and a gateway are each served by both the engine's server of HTTP/1
// and net/http. An [Inbound] is a request of either kind. A [Desk] knows what is
// under way and takes the program out of service; an [Answer] is what it says in
// place of those behind it; [Lines], [Top] and [Histogram] are how it tells of
// requests.
package front
