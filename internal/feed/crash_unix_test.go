//go:build unix

package feed

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cellway/cellway/routemap"
)

// crashEnv has a child of this test keep a history and kill itself: the folder,
// and the number of the step before which it does, 0 for never.
const crashEnv = "CELLWAY_FEED_CRASH"

func TestMain(m *testing.M) {
	if dir, at, ok := strings.Cut(os.Getenv(crashEnv), "|"); ok {
		n, _ := strconv.Atoi(at)
		if err := crashChild(dir, n, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// crashChild keeps the archives in dir/in, in turn, in dir/state, and tells each step
// and each version on w.
func crashChild(dir string, at int, w io.Writer) error {
	d, err := openFolder(filepath.Join(dir, "state"))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "keyring"))
	if err != nil {
		return err
	}
	ring, err := routemap.ParseKeyring(text)
	if err != nil {
		return err
	}
	n := 0
	s := openOn(stepDisk{d, func(what string, do func() error) error {
		if n++; n == at {
			fmt.Fprintf(w, "killed before %d %s\n", n, what)
			if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
				return err
			}
			select {}
		}
		return do()
	}}, nil)
	for i := 1; ; i++ {
		raw, err := os.ReadFile(filepath.Join(dir, "in", strconv.Itoa(i)))
		if errors.Is(err, os.ErrNotExist) {
			fmt.Fprintf(w, "steps %d\n", n)
			return nil
		}
		if err != nil {
			return err
		}
		v, err := routemap.ReadArchive(bytes.NewReader(raw))
		if err != nil {
			return err
		}
		m, err := v.Open(ring, false)
		if err != nil {
			return err
		}
		base, overlay := partsOf(v.Manifest)
		s.change(func(m *marker) { m.begin(base, overlay, false) })
		s.writeMarker()
		fmt.Fprintf(w, "begun %d\n", v.Manifest.Version.Sequence())
		if err := s.keep(&accepted{m: m, overlay: v.Overlay}); err != nil {
			return err
		}
		fmt.Fprintf(w, "kept %d\n", v.Manifest.Version.Sequence())
	}
}

// Processes that are killed before each of their writes, and in the middle of
// them, leave a folder from which the next one starts.
func TestKilledAtAnyStepLeavesAWholeMap(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	in := t.TempDir()
	p := newPublisher(t)
	for i, v := range []routemap.Version{p.base(), p.overlay(), p.base()} {
		if err := os.MkdirAll(filepath.Join(in, "in"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(in, "in", strconv.Itoa(i+1)), v.Archive(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(in, "keyring"), p.ring().Format(), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(t *testing.T, at int) (out string, state string) {
		state = filepath.Join(in, "state")
		if err := os.RemoveAll(state); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(state, 0o700); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), crashEnv+"="+in+"|"+strconv.Itoa(at))
		raw, err := cmd.CombinedOutput()
		if (err == nil) != (at == 0) {
			t.Fatalf("child: %v\n%s", err, raw)
		}
		return string(raw), state
	}
	out, _ := run(t, 0)
	var steps int
	if _, err := fmt.Sscanf(out[strings.Index(out, "steps"):], "steps %d", &steps); err != nil || steps < 20 {
		t.Fatalf("%v in %q", err, out)
	}
	t.Logf("%d steps", steps)
	stride := 1
	if testing.Short() {
		stride = 5
	}
	for at := 1; at <= steps; at += stride {
		t.Run(strconv.Itoa(at), func(t *testing.T) {
			out, state := run(t, at)
			kept, begun := uint32(0), uint32(1)
			for line := range strings.Lines(out) {
				var n uint32
				if _, err := fmt.Sscanf(line, "kept %d", &n); err == nil {
					kept = n
				}
				if _, err := fmt.Sscanf(line, "begun %d", &n); err == nil {
					begun = n + 1 // the next may be on the disk without its "begun"
				}
			}
			s, err := OpenStore(state, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			a, _ := s.best(p.ring(), "shop", nil)
			var got uint32
			if a != nil {
				got = a.m.Version().Sequence()
			}
			if got < kept || got > begun {
				t.Errorf("%s: the map on the disk is %d, kept was %d", strings.TrimSpace(out[strings.Index(out, "killed"):]), got, kept)
			}
			if st := s.trouble.status(); st.Count > 0 {
				t.Errorf("%s: %s", strings.TrimSpace(out[strings.Index(out, "killed"):]), st.Last)
			}
		})
	}
}
