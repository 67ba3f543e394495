// Package http2 makes each stream of an HTTP/2 connection a connection of HTTP/1.1.
//
// A [Conn] reads the frames of one client. Each request becomes a [Stream], which
// is a net.Conn: what is read of it is the request as HTTP/1.1 has it, and what is
// written to it is the answer, which goes out in frames. So whoever serves HTTP/1.1
// serves HTTP/2, with the limits and times that it has.
//
// # Guarantees
//
//   - The request that a stream gives is one, whatever the client sent: its fields
//     are checked for what would end a line, its framing is the Conn's own, and
//     Connection is close. Names and values are otherwise for who reads it to judge.
//   - An answer that is whole ends the stream well. One that breaks off resets it.
//   - What a client may send ahead of being read is bounded, for a stream and for
//     the connection; so is how often it may ask for work that it then gives up,
//     and how long it may take nothing that is sent.
//   - What is queued for a client that does not read is bounded, too: then no more of
//     it is read.
//
// # Concurrency
//
// One goroutine runs [Conn.Serve]; each stream has one of its own. A Stream may be
// read and written at once, by one goroutine each; its other methods may be called
// at any time from any goroutine, as may those of a Conn.
package http2
