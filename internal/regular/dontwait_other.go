//go:build !unix

package regular

// DontWait has no meaning here: this system has no names of pipes in folders.
const DontWait = 0
