//go:build !unix

package feed

import "io"

// lockFolder opens a folder. This system offers no claim that ends with the
// process, so it is up to people to give each router its own folder.
func lockFolder(dir string) (disk, io.Closer, error) {
	d, err := openFolder(dir)
	return d, nil, err
}
