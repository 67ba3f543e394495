package cellway_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/cellway/cellway"
)

// A page is a Markdown document of the project.
type page struct {
	name  string // slash-separated, from the root of the module
	lines []string
}

// pages returns every Markdown document of the project.
func pages(t *testing.T) map[string]page {
	t.Helper()
	all := map[string]page{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		name := filepath.ToSlash(path)
		all[name] = page{name: name, lines: strings.Split(string(text), "\n")}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// prose calls f for each line of p that is not in a fenced block, numbered
// from 1.
func (p page) prose(f func(n int, line string)) {
	fenced := false
	for i, line := range p.lines {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			continue
		}
		if !fenced {
			f(i+1, line)
		}
	}
}

var (
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	inlineCode = regexp.MustCompile("`[^`]*`")
)

func TestDocsLinksResolve(t *testing.T) {
	all := pages(t)
	anchors := map[string][]string{}
	for name, p := range all {
		p.prose(func(_ int, line string) {
			if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
				anchors[name] = append(anchors[name], anchor(title))
			}
		})
	}
	for name, p := range all {
		p.prose(func(n int, line string) {
			for _, m := range link.FindAllStringSubmatch(inlineCode.ReplaceAllString(line, ""), -1) {
				if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
					continue
				}
				file, fragment, _ := strings.Cut(m[1], "#")
				target := name
				if file != "" {
					target = filepath.ToSlash(filepath.Join(filepath.Dir(name), file))
				}
				if _, err := os.Stat(target); err != nil {
					t.Errorf("%s:%d: the link to %s leads nowhere", name, n, m[1])
				} else if fragment != "" && !slices.Contains(anchors[target], fragment) {
					t.Errorf("%s:%d: %s has no heading #%s", name, n, target, fragment)
				}
			}
		})
	}
}

// anchor returns the fragment by which a page's heading is linked.
func anchor(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(strings.TrimSpace(heading)) {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte('-')
		}
	}
	return b.String()
}

// A direct dependency has a page that gives its reason, licence and size.
func TestDocsEveryDependencyHasADecision(t *testing.T) {
	gomod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	all := pages(t)
	index := strings.Join(all["docs/decisions/README.md"].lines, "\n")
	about := map[string]string{} // module path: the page's text
	for name, p := range all {
		if filepath.Dir(name) != "docs/decisions" || name == "docs/decisions/README.md" {
			continue
		}
		text := strings.Join(p.lines, "\n")
		if m := regexp.MustCompile("(?m)^\\| module \\| `([^`]+)` \\|$").FindStringSubmatch(text); m != nil {
			about[m[1]] = text
		}
		if !strings.Contains(index, "("+filepath.Base(name)+")") {
			t.Errorf("%s is missing from docs/decisions/README.md", name)
		}
		if !regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\d\. `).MatchString(text) {
			t.Errorf("%s has no date", name)
		}
	}
	for line := range strings.Lines(string(gomod)) {
		path, version, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(line, "\t") || !ok || strings.HasSuffix(version, "// indirect") {
			continue
		}
		text, ok := about[path]
		if !ok {
			t.Errorf("go.mod needs %s, which has no page in docs/decisions", path)
			continue
		}
		for _, what := range []string{"| licence | ", "| size | ", "\n## Why\n", "\n## Instead of\n"} {
			if !strings.Contains(text, what) {
				t.Errorf("the page about %s lacks %q", path, strings.TrimSpace(what))
			}
		}
		delete(about, path)
	}
	for path := range about {
		t.Errorf("docs/decisions has a page about %s, which go.mod does not need", path)
	}
}

func TestDocsGlossaryNamesTheWordsToAvoid(t *testing.T) {
	var discouraged strings.Builder
	for _, line := range pages(t)["docs/GLOSSARY.md"].lines {
		if cells := strings.Split(line, "|"); len(cells) == 5 {
			discouraged.WriteString(cells[3] + ",")
		}
	}
	for word := range avoided {
		last := word[strings.LastIndexByte(word, ' ')+1:]
		if !slices.ContainsFunc(strings.Split(discouraged.String(), ","), func(w string) bool {
			w = strings.TrimSpace(w)
			return w != "" && (w == last || w+"s" == last || strings.HasPrefix(w, "migration") && strings.HasPrefix(last, "migrat") ||
				w == "org" && strings.HasPrefix(last, "organi") || w == "shard" && last == "sharding")
		}) {
			t.Errorf("the glossary does not say to avoid %q", word)
		}
	}
}

// The menu in the Makefile is what people see first.
func TestDocsMenuListsEveryTarget(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	menu, err := exec.Command("make", "--no-print-directory").CombinedOutput()
	if err != nil {
		t.Fatalf("make: %v\n%s", err, menu)
	}
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):`).FindAllStringSubmatch(string(makefile), -1) {
		if !strings.Contains(string(menu), fmt.Sprintf("make %s ", m[1])) {
			t.Errorf("the menu does not list %s:\n%s", m[1], menu)
		}
	}
}

// Every answer that a router gives by itself is in the operators' table, with
// its status and whether it says when to come back.
func TestDocsListEveryAnswer(t *testing.T) {
	rows := map[string]string{}
	for _, line := range pages(t)["docs/operations/router.md"].lines {
		if m := regexp.MustCompile("^\\| `([a-z_]+)` \\| (\\d{3} \\| .*) \\|$").FindStringSubmatch(line); m != nil {
			rows[m[1]] = m[2]
		}
	}
	codes := codes(t)
	if len(codes) == 0 {
		t.Fatal("found no codes in answer.go")
	}
	for _, c := range codes {
		row, ok := rows[string(c)]
		delete(rows, string(c))
		switch status := fmt.Sprintf("%d | ", c.Status()); {
		case !ok:
			t.Errorf("docs/operations/router.md does not explain %s", c)
		case !strings.HasPrefix(row, status):
			t.Errorf("the row of %s begins %.8q, want %q", c, row, status)
		case strings.Contains(row, "Retry-After") != c.Retryable():
			t.Errorf("the row of %s and Retryable disagree on Retry-After", c)
		}
	}
	for code := range rows {
		t.Errorf("docs/operations/router.md explains %s, which no router says", code)
	}
}

// codes returns the constants of type Code that answer.go declares.
func codes(t *testing.T) (all []cellway.Code) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "answer.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); ok && id.Name == "Code" {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, cellway.Code(text))
		}
		return true
	})
	return all
}
