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
		if got := (&app{args: tt.args}).again(tt.flag, "abc"); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.args, got, tt.want)
		}
	}
}
