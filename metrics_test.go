package cellway_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	metricsPage = "docs/operations/metrics.md"
	rulesFile   = "deploy/prometheus/cellway.rules.yml"
)

// The page about metrics has the control plane's, as its source makes them.
func TestDocsControlPlaneMetrics(t *testing.T) {
	want := controlMetrics(t)
	writeBetween(t, metricsPage, "control plane", want, "TestDocsControlPlaneMetrics")
}

// controlMetrics reads the metrics that internal/controld makes and returns
// their table.
func controlMetrics(t *testing.T) string {
	t.Helper()
	all, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	rows := []string{}
	add := func(name, help string, labels []string) {
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s |\n", name, strings.Join(labels, ", "), help))
	}
	_, files := parse(t, all[module+"/internal/controld"])
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			texts := literals(call.Args)
			if id, ok := call.Fun.(*ast.Ident); ok && id.Name == "desc" && len(texts) >= 2 {
				add("cellway_control_"+texts[0], texts[1], quoted(texts[2:]))
				return true
			}
			opts, ok := call.Args[0].(*ast.CompositeLit)
			if !ok {
				return true
			}
			fields := map[string]string{}
			for _, e := range opts.Elts {
				if kv, ok := e.(*ast.KeyValueExpr); ok {
					if value := literals([]ast.Expr{kv.Value}); len(value) == 1 {
						fields[kv.Key.(*ast.Ident).Name] = value[0]
					}
				}
			}
			if strings.HasPrefix(fields["Name"], "cellway_") {
				var labels []string
				if len(call.Args) > 1 {
					if l, ok := call.Args[1].(*ast.CompositeLit); ok {
						labels = quoted(literals(l.Elts))
					}
				}
				add(fields["Name"], fields["Help"], labels)
			}
			return true
		})
	}
	if len(rows) == 0 {
		t.Fatal("found no metrics in internal/controld")
	}
	slices.Sort(rows)
	return "| metric | labels | meaning |\n| --- | --- | --- |\n" + strings.Join(rows, "")
}

// literals returns the string literals among exprs.
func literals(exprs []ast.Expr) (texts []string) {
	for _, e := range exprs {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil {
				texts = append(texts, s)
			}
		}
	}
	return texts
}

func quoted(texts []string) []string {
	all := make([]string, len(texts))
	for i, s := range texts {
		all[i] = "`" + s + "`"
	}
	return all
}

// Documents name no metric that nothing shows.
func TestDocsMetricsExist(t *testing.T) {
	all := pages(t)
	known := map[string]bool{}
	for _, line := range all[metricsPage].lines {
		if m := regexp.MustCompile("^\\| `(cellway_[a-z0-9_]+)` \\|").FindStringSubmatch(line); m != nil {
			known[m[1]] = true
		}
	}
	rules, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	all[rulesFile] = page{name: rulesFile, lines: strings.Split(string(rules), "\n")}
	for name, p := range all {
		for i, line := range p.lines {
			for _, metric := range regexp.MustCompile(`\bcellway_(router|gateway|control)_[a-z0-9_]+`).FindAllString(line, -1) {
				base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(metric, "")
				if !known[metric] && !known[base] {
					t.Errorf("%s:%d: nothing shows a metric %s", name, i+1, metric)
				}
			}
		}
	}
}

// The alert rules are what Prometheus reads.
func TestDocsAlertRules(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range alertRules(t).Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || seen[r.Alert] {
				t.Errorf("%s has a rule %q twice or without a name", g.Name, r.Alert)
			}
			seen[r.Alert] = true
			if !strings.Contains(r.Expr, "cellway_") || r.Labels["severity"] == "" || r.Annotations["summary"] == "" {
				t.Errorf("%s lacks an expression, a severity or a summary", r.Alert)
			}
		}
	}
	if len(seen) == 0 {
		t.Fatal("no rules")
	}
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Log("promtool is not installed; the rules were read only by this test")
		return
	}
	if out, err := exec.Command(tool, "check", "rules", rulesFile).CombinedOutput(); err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, out)
	}
}
