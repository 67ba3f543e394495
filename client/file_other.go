//go:build !unix

package client

// dontWait has no meaning here: this system has no names of pipes in folders.
const dontWait = 0
