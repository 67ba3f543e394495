package main

import "testing"

func TestTheCommandToRepeatKeepsNamesBehindTheDashes(t *testing.T) {
	for _, tt := range []struct {
		args []string
		flag string
		want string
	}{
		{[]string{"drain", "cell-001", "--dry-run"}, "--confirm", "cellway drain cell-001 --confirm abc"},
		{[]string{"drain", "cell-001", "--confirm", "old"}, "--confirm", "cellway drain cell-001 --confirm abc"},
		{[]string{"override", "set", "--cell", "c1", "--", "-acme"}, "--confirm", "cellway override set --cell c1 --confirm abc -- -acme"},
		{[]string{"override", "set", "--dry-run", "--", "--dry-run"}, "--confirm", "cellway override set --confirm abc -- --dry-run"},
	} {
		if got := (&app{self: "cellway", args: tt.args}).again(tt.flag, "abc"); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.args, got, tt.want)
		}
	}
}

func TestCommandsAreSpeltAsTheProgramWasCalled(t *testing.T) {
	for argv0, want := range map[string]string{
		"cellway": "cellway", "bin/cellway": "bin/cellway", "/opt/cell way/cellway": "'/opt/cell way/cellway'", "cw": "cw", "": "cellway",
		"/tmp/go-build1234/b001/exe/cellway": "cellway",
	} {
		if got := calledAs(argv0); got != want {
			t.Errorf("%s: %s, want %s", argv0, got, want)
		}
	}
	a := &app{self: "bin/cellway", verbs: []string{"change", "map", "cell"}, args: []string{"drain", "cell-001"}}
	for text, want := range map[string]string{
		"cellway change 6 tells how far it is":                  "bin/cellway change 6 tells how far it is",
		"cellway cell cordon x, then cellway map assign":        "bin/cellway cell cordon x, then bin/cellway map assign",
		"the log of cellway says why; mycellway map":            "the log of cellway says why; mycellway map",
		"to do that: bin/cellway change 6 (cellway map status)": "to do that: bin/cellway change 6 (bin/cellway map status)",
		"cellway cellar": "cellway cellar",
	} {
		if got := a.own(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	a.conn.URL = "http://[::1]:7700"
	if got, want := a.own("look at cellway map status"), "look at bin/cellway --url 'http://[::1]:7700' map status"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	a.conn.URL = ""
	if got := a.again("--yes"); got != "bin/cellway drain cell-001 --yes" {
		t.Error(got)
	}
	if got := a.command("undrain", "cell-001", "--reason", "it's cold"); got != `bin/cellway undrain cell-001 --reason 'it'\''s cold'` {
		t.Error(got)
	}
}
