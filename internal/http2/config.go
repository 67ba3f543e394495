package http2

import (
	"cmp"
	"time"
)

// Windows and limits of a connection.
const (
	// streamWindow is what a client may send ahead in a stream, and connWindow in all
	// streams of a connection: as much as 64 that nobody reads. So uploads to a cell that
	// hangs leave room for those to others.
	streamWindow = 256 << 10
	connWindow   = 64 * streamWindow
	maxFrame     = 16 << 10 // of a frame that is read or written
	readBuffer   = 4 << 10
	mostStreams  = 250
	mostSettings = 100 // in a frame
)

// A Config says how connections are served. It is shared by all of them, and not
// changed.
type Config struct {
	// Serve serves one stream, and closes it. It must be given.
	Serve func(*Stream)

	// Malformed is told of each stream that is reset because its head or its trailers
	// are none of HTTP/2. If nil, nobody is told.
	Malformed func()

	// HeadBytes bounds a request's head as HTTP/1.1 has it. It is for who reads
	// the stream to refuse a longer one, which is cut behind that. If zero, 64 KiB.
	HeadBytes int

	// HeadFields is how many fields a head may have, for the limit that the client
	// is told of. If zero, 100.
	HeadFields int

	// HeadTimeout is how long a client may take for its preface and settings, and for
	// the rest of any head. If zero, 10 s.
	HeadTimeout time.Duration

	// IdleTimeout is how long a connection may have no stream. If zero, 75 s.
	IdleTimeout time.Duration

	// WriteTimeout is how long a client may take for 16 KiB of what is sent. If zero,
	// 30 s.
	WriteTimeout time.Duration
}

// WithDefaults returns c with its defaults filled in.
func (c Config) WithDefaults() *Config {
	if c.Malformed == nil {
		c.Malformed = func() {}
	}
	c.HeadBytes = cmp.Or(c.HeadBytes, 64<<10)
	c.HeadFields = cmp.Or(c.HeadFields, 100)
	c.HeadTimeout = cmp.Or(c.HeadTimeout, 10*time.Second)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, 75*time.Second)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, 30*time.Second)
	return &c
}
