// Package engine forwards requests to cells.
//
// It is the part of a router that touches the network. Which cell a request
// belongs to is decided elsewhere; here stand the connections, with the limits
// that keep one cell's trouble from another. There are four parts.
//
// A [Checker] stands between the listeners and a server. It ends TLS. Before an
// http.Server it lets only requests through that can be read in one way, and
// answers the others.
//
// [Pools] hold a [Pool] for each cell: its endpoints, connections, limits,
// breaker and figures. [Pools.Update] follows the map, [Pools.Run] the names
// of endpoints.
//
// [Pool.Forward] sends one request to its cell and streams the answer back. It
// says what became of it in a [Report], and leaves to its caller every answer
// that is not the cell's. [Replay] and [Flights] are for what callers do
// around it: send a request again that a guard refused, and end requests whose
// key has another owner now.
//
// A [Server] serves HTTP/1.1 and 1.0 without net/http, for what that costs. It
// reads heads with the Checker's parser and limits, and hands each request to a
// [Handler] as a [Call], whose Forward does what Pool.Forward does, with the same
// pools. Each connection has one goroutine, which waits without a buffer. A
// request of which nothing more is to be read is served within the callback of
// the runtime's poller, so that a small one costs five calls of the system and no
// memory. One timer looks over all connections for those whose time is up.
// Connections of HTTP/2 go on to an http.Server, or are served here, each stream as one
// of HTTP/1.1, but for those of gRPC: see [ServerConfig.OwnHTTP2].
//
// On Linux a Server may have event loops: see [ServerConfig.Loops]. A connection
// begins in one, joins one again after a simple call, and has no goroutine there.
// Whatever would have to wait is done by a goroutine, with the same code as without
// loops: a [Stepper] starts a call in a loop, and a [Call] can be resumed at each
// stage.
//
// # Guarantees
//
// They hold on both ways, by net/http and by a Server, unless they name one.
//
// To the client and the cell:
//
//   - Method, path and query arrive byte for byte. The absolute form becomes
//     the origin form; a path that begins with two slashes and has bytes that
//     net/url would escape travels to an HTTP/1.1 cell in the absolute form,
//     with the same path.
//   - Bodies stream both ways at once, in buffers of bounded size; so do
//     trailers, announced or not, 1xx answers, and what follows a 101. What a
//     cell sends is flushed at once.
//   - A 100 comes when the cell asks for the body, or when it stays silent for
//     [Timeouts.Continue], as servers before HTTP/1.1 do.
//   - gRPC over HTTP/2 reaches the cell over HTTP/2, also in cleartext. All
//     else reaches a cleartext cell over HTTP/1.1. Over TLS net/http speaks
//     what ALPN says, and a Server HTTP/1.1, or HTTP/2 to a cell that speaks
//     nothing else.
//   - An answer that breaks off never looks whole: see [Report.Abort].
//   - X-Cell-* fields of clients never reach a cell, nor does what a server that
//     keeps fields in environment variables takes for one, and those of cells
//     reach a client only on request. No Connection field removes a
//     field that says who or where, and none follows a request's body.
//
// Between requests:
//
//   - A request goes to its cell or nowhere. Another endpoint of the same cell
//     is tried if nothing connected, and none is tried twice.
//   - A request that was sent in part is never sent again, unless its method is
//     safe, its connection had been used before, and no byte of an answer came;
//     that is how a connection looks that the cell had closed meanwhile.
//   - A cell that hangs or refuses fills its own pool and holds its own
//     requests, no other's. No transport, connection or limit is shared. A
//     request for a tunnel is one of the cell's requests until the 101.
//   - No single tenant can open its cell's breaker, or keep it open: see
//     [Breaker].
//   - After [Pools.Update] requests under way end where they began.
//   - No request looks a name up. The last addresses of a name are used for as
//     long as no others are known.
//
// Against the client:
//
//   - No byte of an HTTP/1 request reaches net/http before its head, or the
//     line of its chunk, has passed the Checker. What net/http then reads is
//     what the Checker read. What a Server sends to a cell is written anew from
//     what was read, with a framing of its own.
//   - What is refused is answered in its turn and ends the connection. What a
//     handler left unread of a request is never taken for another.
//   - A tunnel begins with the cell's 101. It can't be one of HTTP/2 or TLS,
//     inside of which a client would speak to the cell past the router.
//   - Every stage has a limit of time: head, body, connection, answer, silence.
//     A Server may be late by an eighth of the shortest of them, and by half a
//     second at most.
//
// Not promised: on the way through net/http, reason phrases and the letters' case
// of field names are those of net/http, which also takes Content-Length and
// Content-Type from a 304, and a client that closes its sending half has gone
// away. A Server passes all these on, and answers such a client; in turn it learns
// only from a reset, or when it writes, that a client has gone. WebSocket over
// HTTP/2 (RFC 8441) is not spoken. A tenant may fill its cell's limits; per-tenant
// limits are the cell's own.
//
// # Concurrency
//
// All exported methods may be called at any time from any goroutine, except
// that a [Replay] belongs to one request, and [Checker.Install] comes before
// Serve. A [Call] belongs to the goroutine or the loop that serves it, except for
// [Server.Sweep]. Constructors start nothing; [Checker.ListenTLS] shakes hands on
// goroutines that end with its listener.
package engine
