package hand

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// What is given up for another attempt is given up only if there is a member that
// Next would name, and that nothing speaks against.
func TestOtherKnowsWhetherSomebodyIsLeft(t *testing.T) {
	all := func(int) bool { return true }
	none := func(int) bool { return false }
	for _, c := range []struct {
		name string
		k    int
		pass []bool // of the members that Next names: whether they are passed over
		may  func(int) bool
		want bool
	}{
		{"an only member may be asked again", 1, []bool{false}, none, true},
		{"one of two is left", 2, []bool{false}, all, true},
		{"one of two is left and ruled out", 2, []bool{false}, none, false},
		{"both were asked, so the first comes again", 2, []bool{false, false}, all, true},
		{"the first was passed over", 2, []bool{true, false}, all, false},
		{"the second was passed over", 2, []bool{false, true}, all, true},
		{"two of three were passed over", 3, []bool{true, true, false}, all, false},
		{"one of three was passed over, one is left", 3, []bool{true, false}, all, true},
	} {
		table := newTable(c.k, Config{})
		var call Call
		call.Begin(table.cell, table.tenant("acme"), table.members, Plan{Idempotent: true, Kept: true, Deadline: 1 << 60})
		for _, pass := range c.pass {
			at, _ := call.Next(true)
			try := Try{Member: table.members[at], N: call.Start()}
			if pass {
				call.Skip(&try)
			}
		}
		if got := call.Other(c.may); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A line of the log has its numbers in units that its names tell.
func TestLogOfAWorkerSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		table := newTable(2, Config{Log: slog.New(slog.NewJSONHandler(&out, nil))})
		ten := table.tenant("acme")
		for range strikes {
			table.cell.Failed(ten, table.members[0], true, false, table.cell.Now())
		}
		var line struct {
			Msg, Worker string
			Seconds     float64
		}
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if line.Msg != "worker set aside" || line.Worker != "w0" || line.Seconds < 5 || line.Seconds > 7 {
			t.Errorf("%s", out.Bytes())
		}
		out.Reset()
		time.Sleep(10 * time.Second)
		table.cell.Succeeded(ten, table.members[0], time.Millisecond, table.cell.Now())
		if err := json.Unmarshal(out.Bytes(), &line); err != nil || line.Msg != "worker taken back" || line.Worker != "w0" {
			t.Errorf("%s, %v", out.Bytes(), err)
		}
	})
}
