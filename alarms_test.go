package cellway_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const controlPage = "docs/operations/control-plane.md"

// writeBetween holds what stands between two marks of a page to want, or writes
// it there with -update.
func writeBetween(t *testing.T, page, name, want, test string) {
	t.Helper()
	begin, end := "<!-- begin: "+name+" -->\n", "<!-- end: "+name+" -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	got, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lacks its marks %q and %q", page, begin, end)
	}
	if *update && got != want {
		if err := os.WriteFile(page, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		got = want
	}
	if got != want {
		t.Errorf("%s is out of date; write it again with: go test -run %s . -update", page, test)
	}
}

// The page about the control plane has every alarm, with what the CLI says to do
// about it.
func TestDocsAlarms(t *testing.T) {
	codes, err := os.ReadFile("internal/control/alarms.go")
	if err != nil {
		t.Fatal(err)
	}
	mends, err := os.ReadFile("cmd/cellway/alarm.go")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	want.WriteString("| alarm | says | what to do |\n| --- | --- | --- |\n")
	rows := 0
	for _, m := range regexp.MustCompile(`AlarmCode = "([a-z_]+)" +// (.+)`).FindAllStringSubmatch(string(codes), -1) {
		mend := regexp.MustCompile(`(?m)^	"` + m[1] + `": +"(.+)",$`).FindStringSubmatch(string(mends))
		if mend == nil {
			t.Errorf("cmd/cellway says nothing of how to mend %s", m[1])
			continue
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s |\n", m[1], m[2], strings.ReplaceAll(mend[1], `\"`, `"`))
		rows++
	}
	if rows < 10 {
		t.Fatalf("only %d alarms were found", rows)
	}
	writeBetween(t, controlPage, "alarms", want.String(), "TestDocsAlarms")
}

// The page about metrics has the alert rules, with how long they wait.
func TestDocsAlertRulesPage(t *testing.T) {
	var want strings.Builder
	want.WriteString("| alert | expression | for | severity | says |\n| --- | --- | --- | --- | --- |\n")
	for _, g := range alertRules(t).Groups {
		for _, r := range g.Rules {
			says := regexp.MustCompile(`\{\{ \$labels\.([a-z]+) \}\}`).ReplaceAllString(r.Annotations["summary"], "*$1*")
			fmt.Fprintf(&want, "| `%s` | `%s` | %s | %s | %s |\n", r.Alert, strings.ReplaceAll(strings.Join(strings.Fields(r.Expr), " "), "|", `\|`), r.For, r.Labels["severity"], says)
		}
	}
	writeBetween(t, metricsPage, "alert rules", want.String(), "TestDocsAlertRulesPage")
}

// An alertFile is the file of alert rules.
type alertFile struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr, For string
			Labels           map[string]string
			Annotations      map[string]string
		}
	}
}

func alertRules(t *testing.T) (file alertFile) {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil {
		t.Fatal(err)
	}
	return file
}
