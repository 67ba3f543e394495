//go:build !unix

package routerd

// raiseDescriptors returns a number of open files that this system allows.
func raiseDescriptors() (uint64, error) { return 1 << 16, nil }
