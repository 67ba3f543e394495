package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/client"
	"github.com/cellway/cellway/internal/boot"
	"github.com/cellway/cellway/routemap"
)

// 7 is for what nobody did. A store that failed under a write may have kept it.
func TestAWriteWhoseStoreFailedIsNotToldAsUndone(t *testing.T) {
	t.Setenv("CELLWAY_CONFIG", t.TempDir()+"/contexts.yaml")
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", api.ProblemType)
		w.WriteHeader(503)
		io.WriteString(w, `{"code":"store_down","title":"store not usable","status":503,"detail":"the disk is full"}`)
	}))
	defer s.Close()
	for _, tt := range []struct {
		args string
		code int
		says bool
	}{
		{"drain cell-001", exitFailed, true}, {"drain cell-001 --dry-run", exitUnavailable, false}, {"cell list", exitUnavailable, false},
	} {
		var stderr bytes.Buffer
		code := run(context.Background(), append(strings.Fields("cellway "+tt.args), "--url", s.URL), strings.NewReader(""), io.Discard, &stderr)
		if code != tt.code || strings.Contains(stderr.String(), "it may have been done all the same") != tt.says {
			t.Errorf("%s: code %d, %s", tt.args, code, stderr.String())
		}
	}
}

// People read a sentence, not what its kind is called.
func TestPlainErrorsEndWhereTheSentenceDoes(t *testing.T) {
	missing := &fs.PathError{Op: "lstat", Path: "x.pem", Err: fs.ErrNotExist}
	for want, err := range map[string]error{
		"there is no cell cell-009":                         fmt.Errorf("cell cell-009: %w", cellway.ErrNotFound),
		"fleet: exists already":                             fmt.Errorf("fleet: %w", cellway.ErrExists),
		"cell c1 still has 3 tenants":                       fmt.Errorf("cell c1 still has 3 tenants: %w", cellway.ErrInUse),
		"2 of 3 are deleted; there is no tenant x":          fmt.Errorf("2 of 3 are deleted; tenant x: %w", cellway.ErrNotFound),
		"fleet: a name is short":                            fmt.Errorf("fleet: a name is short: %w", cellway.ErrInvalid),
		"there are no settings yet; create it first":        fmt.Errorf("there are no settings yet; create it first: %w", cellway.ErrNotFound),
		"no map goes out (cellway restore confirm)":         fmt.Errorf("no map goes out (cellway restore confirm): %w", cellway.ErrNotReady),
		"worker \"w1\": endpoint: give one":                 fmt.Errorf("worker %q: %w: endpoint: give one: %w", "w1", cellway.ErrInvalid, cellway.ErrInvalid),
		"map has no cell":                                   fmt.Errorf("map has no cell: %w", routemap.ErrCheck),
		"there is no key x.pem":                             fmt.Errorf("key x.pem: %w: %w", cellway.ErrNotFound, missing),
		"key x.pem: file does not exist":                    fmt.Errorf("key x.pem: %w", missing),
		"a key: lstat x.pem: file does not exist":           fmt.Errorf("a key: %w", missing),
		"cell c1 admits 0 %; a drain to 5 % would raise it": fmt.Errorf("cell c1 admits 0 %%; a drain to 5 %% would raise it: %w: %w", cellway.ErrInvalid, errState),
	} {
		if got := plain(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A fault that is not told apart would end as another one.
func TestEveryKindOfErrorHasItsExitCode(t *testing.T) {
	for _, tt := range []struct {
		err  error
		exit int
		code string
	}{
		{nil, exitOK, ""},
		{usage("no"), exitUsage, "usage"},
		{fmt.Errorf("x: %w", boot.UsageError{Err: cellway.ErrInvalid}), exitUsage, "usage"},
		{fmt.Errorf("x: %w: %w", client.ErrUnanswered, cellway.ErrStoreDown), exitFailed, "unanswered"},
		{fmt.Errorf("x: %w: %w", cellway.ErrInvalid, errState), exitRefused, "conflict"},
		{mend(fmt.Errorf("x: %w", cellway.ErrInUse), "so"), exitRefused, "in_use"},
		{errBehind, exitBehind, "behind"},
		{fmt.Errorf("x: %w", client.ErrForeign), exitUnavailable, "foreign"},
		{context.Canceled, exitFailed, "interrupted"},
		{errors.New("x"), exitFailed, "failed"},
	} {
		if k := kindOf(tt.err); k.exit != tt.exit || k.code != tt.code {
			t.Errorf("%v: %d %s, want %d %s", tt.err, k.exit, k.code, tt.exit, tt.code)
		}
	}
}

// Programs are told of an error in the words that people read.
func TestErrorsForProgramsLackTheNamesOfKinds(t *testing.T) {
	var stderr bytes.Buffer
	a := &app{err: &stderr, output: "json"}
	if code := a.report(fmt.Errorf("worker %q: %w: the list has this id twice: %w", "w1", cellway.ErrInvalid, cellway.ErrInvalid)); code != exitFailed || !strings.Contains(stderr.String(), `"worker \"w1\": the list has this id twice"`) {
		t.Errorf("code %d, %s", code, stderr.String())
	}
	all := mended([]api.Alarm{{Code: "sink_failing", Subject: "sink/x", Message: "write map 1.2: the disk is full: store not usable"}})
	if got := all[0].Message; got != "write map 1.2: the disk is full" {
		t.Error(got)
	}
}
