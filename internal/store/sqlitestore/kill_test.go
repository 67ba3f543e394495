package sqlitestore_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway/internal/store"
)

// killsEnv says how often the writer is killed; 10 times if it is not set.
const killsEnv = "CELLWAY_KILLS"

// Whenever a writer is killed, what it was told is written is there, nothing
// else is half there, and the file is sound.
func TestKilledWriterLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	kills := 10
	if s := os.Getenv(killsEnv); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("%s: %v", killsEnv, err)
		}
		kills = n
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	path := filepath.Join(t.TempDir(), "fleet.db")
	entries := map[uint64]string{}
	blobs := map[string]bool{}
	for round := range kills {
		for _, line := range killWriter(t, path, round, rng) {
			var kind, text string
			var n uint64
			if _, err := fmt.Sscan(line, &kind, &n, &text); err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
			if kind == "blob" {
				blobs[text] = true
				continue
			}
			if was, taken := entries[n]; taken {
				t.Fatalf("entry %d acknowledged for %s and for %s", n, was, text)
			}
			entries[n] = text
		}
		s := open(t, path) // it checks the file, indexes and counts included
		checkAcknowledged(t, s, entries, blobs)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d kills, %d entries and %d blobs acknowledged", kills, len(entries), len(blobs))
	if len(entries) == 0 {
		t.Error("nothing was acknowledged, so that nothing was tested")
	}
}

// killWriter starts a writer, kills it at a random moment, and returns the
// whole lines that it has said.
func killWriter(t *testing.T, path string, round int, rng *rand.Rand) (lines []string) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), roleEnv+"=write", pathEnv+"="+path, seedEnv+"="+strconv.Itoa(round))
	var said bytes.Buffer
	child.Stderr = &said
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	// Some die while they open the file, most in the midst of their writes.
	wait, after := 0, time.Duration(rng.IntN(40))*time.Millisecond
	if rng.IntN(5) > 0 {
		wait, after = 1+rng.IntN(60), time.Duration(rng.IntN(5000))*time.Microsecond
	}
	var timer *time.Timer
	kill := func() {
		timer = time.AfterFunc(after, func() { _ = child.Process.Kill() })
	}
	if wait == 0 {
		kill()
	}
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			break // a half line is no acknowledgement
		}
		if lines = append(lines, strings.TrimSuffix(line, "\n")); len(lines) == wait {
			kill()
		}
	}
	err = child.Wait()
	if timer != nil {
		timer.Stop()
	}
	if said.Len() > 0 || err == nil {
		t.Fatalf("the writer ended by itself: %v, %s", err, said.String())
	}
	return lines
}

func checkAcknowledged(t *testing.T, s store.Store, entries map[uint64]string, blobs map[string]bool) {
	t.Helper()
	err := s.View(t.Context(), func(tx store.Tx) error {
		end, err := tx.LogEnd("log")
		if err != nil {
			return err
		}
		log, err := tx.Log("log", 0, int(end)+1)
		if err != nil {
			return err
		}
		if uint64(len(log)) != end {
			t.Errorf("the log has %d entries and ends at %d", len(log), end)
		}
		for i, e := range log {
			if e.Number != uint64(i)+1 {
				t.Fatalf("entry %d has number %d", i+1, e.Number)
			}
			text, err := strconv.Unquote(string(e.Body))
			if err != nil {
				return err
			}
			if r, err := tx.Get("write", text); err != nil || string(r.Body) != fmt.Sprint(e.Number) {
				t.Errorf("entry %d, %s: its record says %s, %v", e.Number, text, r.Body, err)
			}
			if want, acked := entries[e.Number]; acked && want != text {
				t.Errorf("entry %d is %s; acknowledged was %s", e.Number, text, want)
			}
		}
		for n, text := range entries {
			if n > end {
				t.Errorf("entry %d, %s, was acknowledged and is lost", n, text)
			}
		}
		if n, err := tx.Count("write", ""); uint64(n) != end || err != nil {
			t.Errorf("%d records, %v; the log ends at %d", n, err, end)
		}
		if end > 0 {
			if r, err := tx.Get("count", "n"); err != nil || string(r.Body) != fmt.Sprint(end) {
				t.Errorf("count is %s, %v; the log ends at %d", r.Body, err, end)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range blobs {
		b := killBlob(name)
		if got, err := s.Blob(t.Context(), sha256.Sum256(b)); err != nil || !bytes.Equal(got, b) {
			t.Errorf("blob %s was acknowledged: got %d bytes, %v", name, len(got), err)
		}
	}
}
