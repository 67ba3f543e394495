// Package servingtest holds programs that stand in front of requests to what they have
// in common.
package servingtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cellway/cellway/internal/testlog"
)

// A Process is a program that runs, in this process or in one of its own.
type Process struct {
	T      testing.TB
	Log    *testlog.Text
	Listen []string // where it serves, as URLs
	Admin  string   // its admin listener, as a URL

	Cancel context.CancelFunc // has it stop
	Done   chan error         // what it returned; whoever takes it puts it back
}

// Start has run run the program of that name until the test ends.
func Start(t testing.TB, program string, run func(ctx context.Context, args []string, stdout, stderr io.Writer) error, args ...string) *Process {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &Process{T: t, Log: new(testlog.Text), Cancel: cancel, Done: make(chan error, 1)}
	go func() { p.Done <- run(ctx, args, io.Discard, p.Log) }()
	p.Learn(program)
	t.Cleanup(func() { cancel(); <-p.Done })
	return p
}

// Learn reads the addresses of the program of that name from the log.
func (p *Process) Learn(program string) {
	p.T.Helper()
	var line struct {
		Listen []string `json:"listen"`
		Admin  string   `json:"admin"`
	}
	p.Log.Await(p.T, program+" starts", &line)
	p.Listen, p.Admin = line.Listen, "http://"+line.Admin
}

// End has a program that Start has started stop, and returns what it returned.
func (p *Process) End() error {
	p.Cancel()
	err := <-p.Done
	p.Done <- err
	return err
}

// Ready waits until the program is.
func (p *Process) Ready() {
	p.T.Helper()
	p.Eventually("readiness", func() error {
		if status, body := p.Get(p.Admin+"/readyz", nil); status != http.StatusOK {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
}

// Eventually ends the test unless check returns nil within 15 seconds.
func (p *Process) Eventually(what string, check func() error) {
	p.T.Helper()
	var err error
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	p.T.Fatalf("waiting for %s: %v\n%s", what, err, p.Log)
}

// Get asks for a URL over a connection of its own. The status is 0 if there was no
// answer.
func (p *Process) Get(url string, fields http.Header) (status int, body string) {
	p.T.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		p.T.Fatal(err)
	}
	req.Close = true
	if fields != nil {
		req.Header = fields
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

// Read reads what the admin listener answers at path into into.
func (p *Process) Read(path string, into any) {
	p.T.Helper()
	status, body := p.Get(p.Admin+path, nil)
	if status != http.StatusOK {
		p.T.Fatalf("%s: %d %s", path, status, body)
	}
	if err := json.Unmarshal([]byte(body), into); err != nil {
		p.T.Fatalf("%s: %v\n%s", path, err, body)
	}
}

// ChangesNothing fails the test if the admin listener takes orders at one of paths.
func (p *Process) ChangesNothing(paths ...string) {
	p.T.Helper()
	for _, path := range paths {
		resp, err := http.Post(p.Admin+path, "application/json", strings.NewReader("{}"))
		if err != nil {
			p.T.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusMethodNotAllowed {
			p.T.Errorf("POST %s: %d", path, resp.StatusCode)
		}
	}
}
