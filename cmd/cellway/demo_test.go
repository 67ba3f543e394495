package main

import (
	"bytes"
	"strings"
	"testing"
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
