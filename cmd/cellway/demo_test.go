package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/cellway/cellway/internal/demo/act"
)

func TestDemoRefusesWhatItCannotPlayBeforeItStartsAnything(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"too short a time": {[]string{"demo", "--for", "5s"}, "--for 1m0s"},
		"an unknown act":   {[]string{"demo", "--script", "kill-all"}, "kill-cell"},
		"nothing to do":    {[]string{"demo", "--script", "none"}, "nothing to do"},
		"too few tenants":  {[]string{"demo", "--tenants", "7"}, "tenants"},
		"one cell":         {[]string{"demo", "--cells", "1"}, "cells"},
		"an argument":      {[]string{"demo", "all"}, "all"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := run(t.Context(), append([]string{"cellway"}, tc.args...), strings.NewReader(""), &out, &errs); code != exitUsage {
				t.Errorf("exit code %d, want %d", code, exitUsage)
			}
			if !strings.Contains(errs.String(), tc.says) || out.Len() > 0 {
				t.Errorf("it says %q, and prints %q", errs.String(), out.String())
			}
		})
	}
}

func TestTheDemosHelpAndCompletionNameEachAct(t *testing.T) {
	var help, words, errs bytes.Buffer
	for args, out := range map[string]*bytes.Buffer{"cellway demo -h": &help, "cellway __complete demo --script ": &words} {
		if code := run(t.Context(), strings.Split(args, " "), strings.NewReader(""), out, &errs); code != exitOK {
			t.Fatalf("%s: exit code %d: %s", args, code, errs.String())
		}
	}
	named := strings.FieldsFunc(help.String(), func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') })
	for _, x := range act.All() {
		if !slices.Contains(named, x.Name) {
			t.Errorf("the help does not name %s", x.Name)
		}
		if !slices.Contains(strings.Split(words.String(), "\n"), x.Name) {
			t.Errorf("%s is not completed in %q", x.Name, words.String())
		}
	}
}

func TestThePartsOfTheDemoAreHidden(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"cellway", "help"}, strings.NewReader(""), &out, &errs); code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	if strings.Contains(out.String(), "demo-") || !strings.Contains(out.String(), "demo ") {
		t.Errorf("help says\n%s", out.String())
	}
	var code int
	if code = run(t.Context(), []string{"cellway", "demo-worker", "--nonsense"}, strings.NewReader(""), &out, &errs); code == exitOK {
		t.Error("a part takes nonsense")
	}
}
