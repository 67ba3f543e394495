//go:build unix

package client

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
)

func TestAPipeIsReadAndNotWaitedForWithoutEnd(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := readWithin(pipe, 30*time.Millisecond); !errors.Is(err, cellway.ErrInvalid) || !strings.Contains(err.Error(), "nobody has written a file") {
		t.Errorf("a pipe without a writer: %v", err)
	}
	wrote := make(chan error, 1)
	go func() { wrote <- os.WriteFile(pipe, []byte("cwt_1\n"), 0) }()
	if b, err := readWithin(pipe, time.Minute); err != nil || string(b) != "cwt_1\n" {
		t.Errorf("read %q, %v", b, err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	begun := time.Now()
	if _, err := readWithin("/dev/fd/"+strconv.Itoa(int(r.Fd())), 30*time.Millisecond); err == nil || time.Since(begun) > 10*time.Second {
		t.Errorf("a writer that is silent: %v after %v", err, time.Since(begun))
	}
}

// A wrong token is refused at once, and not when the pipe that it came from has
// been waited for.
func TestATokenFromAPipeIsReadOnce(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "token")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	wrote := make(chan error, 1)
	go func() { wrote <- os.WriteFile(pipe, []byte("cwt_1\n"), 0) }()
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("Content-Type", api.ProblemType)
		w.WriteHeader(http.StatusUnauthorized)
		json.NewEncoder(w).Encode(api.Problem{Code: api.CodeUnauthenticated, Status: http.StatusUnauthorized})
	}))
	defer s.Close()
	c, err := New(Config{URL: s.URL, TokenFile: pipe})
	if err != nil || <-wrote != nil {
		t.Fatal(err)
	}
	defer c.Close()
	begun := time.Now()
	if _, err := c.MapStatus(t.Context()); !errors.Is(err, ErrUnauthenticated) || asked != 1 || time.Since(begun) > fileWithin/2 {
		t.Errorf("%v after %v and %d requests", err, time.Since(begun), asked)
	}
}

func TestAFileThatIsFarTooLargeIsNotRead(t *testing.T) {
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip(err)
	}
	if _, err := readFile("/dev/zero"); !errors.Is(err, cellway.ErrInvalid) {
		t.Errorf("%v", err)
	}
}
