package control_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/routemap"
)

func TestAClosedDirectoryIsNotOpenedAgain(t *testing.T) {
	dir := t.TempDir()
	sink, err := control.NewDirSink(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := sink.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := sink.Newest(t.Context()); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("its newest map: %v", err)
	}
	if err := sink.Write(t.Context(), routemap.Version{Manifest: &routemap.Manifest{}}); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a map is written: %v", err)
	}
}
