package client

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/cellway/cellway"
)

// Bounds of a file that Config names.
const (
	mostFile   = 1 << 20          // bytes
	fileWithin = 10 * time.Second // for a pipe
)

// readFile reads a small file. A pipe, as a shell makes one of <(command), is
// read too; one that nobody writes to is an error, and no wait without end.
func readFile(name string) ([]byte, error) { return readWithin(name, fileWithin) }

func readWithin(name string, most time.Duration) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|dontWait, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	f.SetReadDeadline(time.Now().Add(most)) // files on disk have none, and need none
	for {
		b, err := io.ReadAll(io.LimitReader(f, mostFile+1))
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, fmt.Errorf("%s is a pipe, and nobody has written a file to it within %v: %w", name, most, cellway.ErrInvalid)
		case err != nil:
			return nil, err
		case len(b) > mostFile:
			return nil, fmt.Errorf("%s has more than %d bytes: %w", name, mostFile, cellway.ErrInvalid)
		}
		// A pipe whose writer has not come yet reads as if it were empty.
		if info, err := f.Stat(); len(b) > 0 || err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
			return b, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}
