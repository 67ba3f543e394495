package gateway

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cellway/cellway/internal/testlog"
)

// Whom the guard refuses, and why, is in the log: once in a minute for each of them.
func TestRefusalsAreToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log testlog.Text
		r := newRig(t, 4, 2, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		for range 20 {
			r.do(question{key: "acme", header: header("X-Cell-Id", "cell-002")})
			r.do(question{key: "acme", outside: true})
			r.do(question{header: header("X-Cell-Id")})
		}
		for _, want := range []string{"reason=other_cell", "for_cell=cell-002", "its address is in none of the networks of routers"} {
			if n := len(log.Lines(want)); n != 1 {
				t.Errorf("%s is told %d times\n%s", want, n, log.String())
			}
		}
		if n := len(log.Lines("a request is refused by the guard")); n > 3 {
			t.Errorf("told %d times\n%s", n, log.String())
		}
		time.Sleep(strangersEvery)
		r.do(question{key: "acme", header: header("X-Cell-Id", "cell-002")})
		if all := log.Lines("reason=other_cell"); len(all) != 2 || !strings.Contains(all[1], "refused_meanwhile=57") {
			t.Errorf("a minute later: %v", all)
		}
		r.do(question{key: "acme"})
		if all := log.Lines("a request is refused by the guard"); len(all) > 4 {
			t.Errorf("a good request is told of: %v", all)
		}
	})
}

// However many there are, they don't fill the log.
func TestStrangersAreBounded(t *testing.T) {
	var s strangers
	now, told := time.Now(), 0
	for i := range 100 {
		if _, tell := s.refused(now, fmt.Sprint("stranger ", i)); tell {
			told++
		}
	}
	if told != mostStrangers {
		t.Errorf("%d are told of at once, want %d", told, mostStrangers)
	}
	if untold, tell := s.refused(now.Add(strangersEvery), "stranger 0"); !tell || untold != 100-mostStrangers {
		t.Errorf("later: %v, %d were not told of", tell, untold)
	}
}
