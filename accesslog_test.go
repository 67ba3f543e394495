package cellway_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The page about the access log lists what is written, in its order.
func TestDocsListTheFieldsOfTheAccessLog(t *testing.T) {
	const page = "docs/operations/access-log.md"
	row := regexp.MustCompile("^\\| `([a-z_]+)` \\| ([a-z]*) ?\\| ([a-z]*) ?\\|")
	field := regexp.MustCompile(`(?m)^\s*(?:x\.text = .*)?\.?(Time|Text|Bytes|TextIfAny|ErrorIfAny|Int|Milliseconds|AddrIfAny|TrueIf)\("([a-z_]+)"`)
	for column, source := range map[int]string{2: "router/accesslog.go", 3: "gateway/accesslog.go"} {
		said := []string{}
		for _, line := range pages(t)[page].lines {
			if m := row.FindStringSubmatch(line); m != nil && m[column] != "" {
				said = append(said, m[1]+" "+m[column])
			}
		}
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		written := []string{"time yes", "level yes", "msg yes"} // by Begin
		for _, m := range field.FindAllStringSubmatch(string(text), -1) {
			when := "yes"
			if strings.Contains(m[1], "If") {
				when = "optional"
			}
			written = append(written, m[2]+" "+when)
		}
		if len(written) < 20 || !slices.Equal(said, written) {
			t.Errorf("%s lists\n%q\nand %s writes\n%q", page, said, source, written)
		}
	}
}
