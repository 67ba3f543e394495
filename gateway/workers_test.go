package gateway

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway"
)

const (
	three = `{"size":2,"workers":[{"id":"a","endpoint":"http://127.0.0.1:1"},{"id":"b","endpoint":"http://127.0.0.1:2"},{"id":"c","endpoint":"http://127.0.0.1:3"}]}`
	moved = `{"size":2,"workers":[{"id":"a","endpoint":"http://127.0.0.1:9"},{"id":"b","endpoint":"http://127.0.0.1:2"},{"id":"c","endpoint":"http://127.0.0.1:3"}]}`
	two   = `{"size":2,"workers":[{"id":"a","endpoint":"http://127.0.0.1:1"},{"id":"b","endpoint":"http://127.0.0.1:2"},{"id":"c","weight":0,"endpoint":"http://127.0.0.1:3"}]}`
)

func TestParseWorkersRefuses(t *testing.T) {
	for name, list := range map[string]string{
		"nothing":            ``,
		"an unknown field":   `{"size":1,"colour":"red","workers":[{"id":"a","endpoint":"http://h:1"}]}`,
		"more after the end": three + `{}`,
		"no endpoint":        `{"size":1,"workers":[{"id":"a"}]}`,
		"a shared endpoint":  `{"size":1,"workers":[{"id":"a","endpoint":"http://h:1"},{"id":"b","endpoint":"http://h:1"}]}`,
		"an id twice":        `{"size":1,"workers":[{"id":"a","endpoint":"http://h:1"},{"id":"a","endpoint":"http://h:2"}]}`,
		"too few workers":    `{"size":2,"workers":[{"id":"a","endpoint":"http://h:1"}]}`,
	} {
		if _, err := ParseWorkers([]byte(list)); !errors.Is(err, cellway.ErrInvalid) {
			t.Errorf("%s: error %v, want ErrInvalid", name, err)
		}
	}
}

// The message names what is there twice, and nothing that is not.
func TestParseWorkersSaysWhatIsThereTwice(t *testing.T) {
	for list, want := range map[string]string{
		`{"size":1,"workers":[{"id":"a","endpoint":"http://h:1"},{"id":"a","endpoint":"http://h:2"}]}`: `worker "a": invalid: the list has this id twice; give each worker its own`,
		`{"size":1,"workers":[{"id":"a","endpoint":"http://h:1"},{"id":"a","endpoint":"http://h:1"}]}`: `worker "a": invalid: the list has this id twice; give each worker its own`,
		`{"size":1,"workers":[{"id":"a","endpoint":"http://h:1"},{"id":"b","endpoint":"http://h:1"}]}`: `worker "b": invalid: "a" has the endpoint http://h:1 too; give each its own`,
	} {
		if _, err := ParseWorkers([]byte(list)); err == nil || err.Error() != want {
			t.Errorf("%s\ngot  %v\nwant %s", list, err, want)
		}
	}
}

func TestVersioned(t *testing.T) {
	var versions []any
	for _, list := range []string{three, moved, two} {
		w, err := ParseWorkers([]byte(list))
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, w.Hands().Version())
	}
	if versions[0] != versions[1] {
		t.Error("another endpoint changed the version of the hands")
	}
	if versions[0] == versions[2] {
		t.Error("draining a worker left the version as it was")
	}
}

// A file that is spoilt, or goes away, leaves the last good list in use.
func TestWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "workers.json")
		write := func(list string) {
			if err := os.WriteFile(path, []byte(list), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
			synctest.Wait()
		}
		if _, err := OpenFile(FileConfig{Path: path}); err == nil {
			t.Error("opened a file that is not there")
		}
		write(three)
		f, err := OpenFile(FileConfig{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- f.Run(ctx) }()

		good := f.Current()
		failing := func() bool { _, err := f.Failure(); return err != nil }
		write("")
		if f.Current() != good || failing() {
			t.Error("a file that may be about to be written is no failure yet")
		}
		began := time.Now()
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		if since, err := f.Failure(); !errors.Is(err, cellway.ErrInvalid) || since.Before(began) || since.After(time.Now()) {
			t.Errorf("a file that stays empty: %v since %v", err, since)
		}
		first, _ := f.Failure()
		write(three[:40])
		if f.Current() != good {
			t.Error("half a list replaced a good one")
		}
		if since, err := f.Failure(); !errors.Is(err, cellway.ErrInvalid) || !since.Equal(first) {
			t.Errorf("half a list: %v since %v, want since %v", err, since, first)
		}
		write(three)
		if f.Current() != good || failing() {
			t.Error("the good list is back, and still a failure")
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if f.Current() != good {
			t.Error("a file that went away took the good list with it")
		}
		if !failing() {
			t.Error("a file that went away is no failure")
		}
		write(moved)
		if got := f.Current().Endpoint("a").Host; got != "127.0.0.1:9" {
			t.Errorf("a is at %s, want the new endpoint", got)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func FuzzParseWorkers(f *testing.F) {
	f.Add([]byte(three))
	f.Add([]byte(two))
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := ParseWorkers(b)
		if (w == nil) == (err == nil) {
			t.Fatalf("list %v with error %v", w, err)
		}
	})
}
