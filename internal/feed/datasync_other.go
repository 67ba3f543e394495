//go:build !linux

package feed

import "os"

// dataSync makes a file's content durable.
func dataSync(f *os.File) error { return f.Sync() }
