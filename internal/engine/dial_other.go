//go:build !unix

package engine

// outOf are the errors of a machine that has none left of something.
var outOf []error
