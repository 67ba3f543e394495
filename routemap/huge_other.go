//go:build !linux

package routemap

func collapse[E any]([]E) {}
