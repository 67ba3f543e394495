package cellway_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/cellway/cellway"

// An arrow row is one package of the architecture diagram. Packages are named
// without the module path; "" is the root and a final "/..." takes in all
// packages below a folder.
type arrow struct {
	pkg string
	// may lists the packages of this module that pkg may import; here too, a
	// final "/..." takes in a folder.
	may []string
	// never maps what pkg may not reach, directly or not, to the reason. A name
	// counts for itself and for all below it; it starts with "/" if it is ours.
	never map[string]string
	// pure packages decide: the same input gives the same answer, so they ask
	// neither a clock nor the machine.
	pure bool
}

// arrows is the architecture diagram as a table. Arrows point from the edge to
// the centre only. A row may stand here before its package exists; a package
// without a row fails the test.
var arrows = []arrow{
	// The centre: words and arithmetic.
	{pkg: "", never: noIO},
	{pkg: "/shuffle", pure: true, never: noIO},
	{pkg: "/shuffle/registrytest", may: list("/shuffle", "/internal/fault"), never: map[string]string{
		"/internal/store": "it holds any store to the contract and knows none",
	}},
	{pkg: "/shuffle/hand", never: noIO},
	{pkg: "/routemap", pure: true, may: list("")},
	{pkg: "/placement", pure: true, may: list("", "/routemap")},
	{pkg: "/internal/move", pure: true, may: list("", "/routemap")},
	{pkg: "/internal/rollout", pure: true, may: list("", "/routemap")},
	{pkg: "/internal/sim", pure: true, may: list("", "/routemap", "/placement", "/shuffle", "/internal/move", "/internal/rollout", "/internal/pysample")},
	{pkg: "/internal/pysample", pure: true, never: noIO},
	{pkg: "/api", may: list(""), never: map[string]string{"net/http": "wire types travel over any transport"}},

	// The path of a request.
	{pkg: "/internal/http2", never: onThePath},
	{pkg: "/internal/engine", may: list("", "/internal/http2", "/internal/plaintext"), never: onThePath},
	{pkg: "/router", may: list("", "/routemap", "/internal/engine", "/internal/front", "/internal/lines"), never: onThePath},
	{pkg: "/internal/front", may: list("", "/internal/engine"), never: onThePath},
	{pkg: "/internal/lines", never: onThePath},
	{pkg: "/guard", may: list(""), never: onThePath},
	{pkg: "/gateway", may: list("", "/guard", "/shuffle", "/shuffle/hand", "/internal/engine", "/internal/front", "/internal/lines", "/internal/looks", "/internal/regular", "/internal/workers"), never: onThePath},

	// How maps reach routers, and people reach the control plane.
	{pkg: "/internal/feed", may: list("", "/api", "/routemap", "/internal/looks", "/internal/regular"), never: onThePath},
	{pkg: "/client", may: list("", "/api", "/routemap", "/shuffle"), never: map[string]string{
		"/internal": "users import it: it depends on nothing that may change at will",
	}},
	{pkg: "/client/handhttp", may: list("/shuffle", "/shuffle/hand"), never: map[string]string{
		"/internal":  "users import it: it depends on nothing that may change at will",
		"/client":    "workers are called without a control plane",
		"github.com": "who wants metrics adds handprom",
	}},
	{pkg: "/client/handhttp/handprom", may: list("/client/handhttp"), never: map[string]string{
		"/internal": "users import it: it depends on nothing that may change at will",
	}},
	{pkg: "/client/cellhttp", may: list("", "/api", "/client"), never: map[string]string{
		"/internal": "users import it: it depends on nothing that may change at will",
		"/shuffle":  "a client of the fleet knows cells, not their workers",
	}},

	// The control plane. It speaks to package store, the contract; a command
	// joins it with one of the stores below that folder.
	{pkg: "/internal/store", may: list(""), never: noIO},
	{pkg: "/internal/store/memstore", may: list("", "/internal/store"), never: storesStandAlone},
	{pkg: "/internal/store/sqlitestore", may: list("", "/internal/store", "/shuffle"), never: storesStandAlone}, // it keeps a registry of hands, too
	{pkg: "/internal/store/pgstore", may: list("", "/internal/store"), never: storesStandAlone},
	{pkg: "/internal/store/faultstore", may: list("", "/internal/store", "/internal/fault"), never: storesStandAlone},
	{pkg: "/internal/store/storetest", may: list("", "/internal/store", "/internal/store/faultstore", "/internal/fault"), never: storesStandAlone},
	{pkg: "/internal/control", may: list("", "/routemap", "/internal/plaintext", "/internal/regular", "/internal/workers", "/placement", "/shuffle", "/internal/store", "/internal/move", "/internal/rollout"), never: seesNoStore},
	{pkg: "/internal/runner", may: list("", "/internal/control", "/internal/store", "/internal/move", "/internal/rollout"), never: seesNoStore},
	{pkg: "/internal/pgmover", may: list("", "/internal/move")},
	{pkg: "/internal/httpapi", may: list("", "/api", "/routemap", "/internal/boot", "/internal/control", "/internal/index", "/internal/plaintext", "/internal/shell", "/internal/strictjson", "/internal/workers"), never: speaksNoSQL},
	{pkg: "/internal/controld", may: list("", "/api", "/routemap", "/internal/control", "/internal/httpapi", "/internal/console", "/internal/boot", "/internal/index", "/internal/lines", "/internal/regular", "/internal/telemetry", "/internal/store/..."), never: map[string]string{
		"/router":        "a control plane that fails takes no request with it",
		"/internal/demo": "the demo is no part of a real control plane",
	}},
	{pkg: "/internal/console", may: list("", "/api", "/routemap", "/internal/control"), never: speaksNoSQL},

	// Small servants of all.
	{pkg: "/internal/telemetry", may: list("", "/routemap"), never: map[string]string{
		"/internal/control": "control planes and routers share it",
		"/internal/store":   "control planes and routers share it",
	}},
	{pkg: "/internal/boot", may: list("", "/internal/lines", "/internal/plaintext", "/internal/regular"), never: map[string]string{
		"/internal/control": "control planes and routers share it",
		"/internal/store":   "control planes and routers share it",
	}},
	{pkg: "/internal/serving", may: list("", "/internal/boot", "/internal/engine", "/internal/front", "/internal/index", "/internal/lines", "/internal/looks", "/internal/plaintext", "/internal/regular", "/internal/telemetry"), never: map[string]string{
		"/router":           "routers and gateways share it",
		"/gateway":          "routers and gateways share it",
		"/internal/control": "it runs with the control plane gone",
		"database/sql":      "what is in front of requests has no database",
	}},
	{pkg: "/internal/serving/servingtest", may: list("/internal/boot", "/internal/telemetry", "/internal/testlog")},
	{pkg: "/internal/looks", never: noIO},
	{pkg: "/internal/regular", may: list(""), never: map[string]string{"net/http": "it reads files"}},
	{pkg: "/internal/plaintext", pure: true, may: list(""), never: noIO},
	{pkg: "/internal/strictjson", pure: true, never: noIO},
	{pkg: "/internal/index", may: list()},
	{pkg: "/internal/workers", pure: true, may: list("", "/shuffle", "/internal/strictjson"), never: noIO}, // gateways and the control plane hold lists to the same rules
	{pkg: "/internal/shell", never: noIO},
	{pkg: "/internal/memnet", never: map[string]string{"net/http": "it is a network, not a server"}},
	{pkg: "/internal/fault", never: noIO},
	{pkg: "/internal/testlog", never: noIO},
	{pkg: "/internal/alike", may: list("/internal/engine"), never: map[string]string{
		"/router":  "it compares servers, whoever has them",
		"/gateway": "it compares servers, whoever has them",
	}},

	// What joins the parts.
	{pkg: "/internal/demo/...", may: list("", "/api", "/client", "/guard", "/routemap", "/router", "/shuffle", "/internal/...")},
	{pkg: "/cellwaytest", may: list("", "/api", "/client", "/guard", "/gateway", "/routemap", "/router", "/shuffle", "/internal/...")},
	{pkg: "/cmd/cellway", may: list("", "/api", "/client", "/routemap", "/router", "/internal/...")},
	{pkg: "/internal/routerd", may: list("", "/api", "/routemap", "/router", "/internal/feed", "/internal/serving", "/internal/telemetry", "/internal/boot"), never: thinRouter},
	{pkg: "/cmd/cellway-router", may: list("/internal/routerd"), never: thinRouter},
	{pkg: "/internal/gatewayd", may: list("", "/gateway", "/shuffle/hand", "/guard", "/internal/feed", "/internal/engine", "/internal/serving", "/internal/telemetry", "/internal/boot", "/internal/looks", "/internal/regular", "/internal/strictjson"), never: thinRouter},
	{pkg: "/cmd/cellway-gateway", may: list("/internal/gatewayd"), never: thinRouter},
	{pkg: "/cmd/cellway-control", may: list("", "/api", "/routemap", "/placement", "/internal/..."), never: map[string]string{
		"/router":        "a control plane that fails takes no request with it",
		"/internal/demo": "the demo is no part of a real control plane",
	}},
	{pkg: "/bench/...", may: list("", "/api", "/client", "/guard", "/routemap", "/router", "/shuffle", "/placement", "/gateway", "/internal/...")},
	{pkg: "/examples/...", may: list("", "/api", "/client", "/guard", "/gateway", "/routemap", "/router", "/shuffle", "/placement", "/cellwaytest")},
}

// noIO keeps the centre free of the outside world.
var noIO = map[string]string{
	"net/http":     "it does no I/O",
	"os/exec":      "it does no I/O",
	"database/sql": "it does no I/O",
}

// onThePath keeps what a request passes through small enough to trust.
var onThePath = map[string]string{
	"/internal/control":   "no request waits for the control plane",
	"/internal/store":     "a router has no database",
	"/internal/httpapi":   "a router serves no API of the control plane",
	"/placement":          "placement is never on a request's path",
	"database/sql":        "a router has no database",
	"github.com":          "metrics and the like come in through small interfaces",
	"modernc.org":         "a router has no database",
	"go.opentelemetry.io": "trace context is passed on, not made",
}

// thinRouter is what the binaries in front of cells must not link.
var thinRouter = map[string]string{
	"/internal/control":               "it runs with the control plane gone",
	"/internal/store":                 "a router has no database",
	"/internal/httpapi":               "it serves no API of the control plane",
	"/internal/console":               "it has no console",
	"/internal/demo":                  "the demo is no part of it",
	"/placement":                      "placement is never on a request's path",
	"database/sql":                    "a router has no database",
	"modernc.org":                     "a router has no database",
	"github.com/spf13":                "daemons take plain flags",
	"charm.land":                      "it draws nothing",
	"github.com/charmbracelet":        "it draws nothing",
	"github.com/getkin":               "the API's document is for tests",
	"github.com/aws":                  "no cloud's SDK",
	"cloud.google.com":                "no cloud's SDK",
	"github.com/Azure":                "no cloud's SDK",
	"k8s.io":                          "no cluster's client",
	"testing":                         "tests stay out of binaries",
	"github.com/rogpeppe/go-internal": "tests stay out of binaries",
}

// seesNoStore keeps rules apart from transports and from how bytes are kept.
var seesNoStore = map[string]string{
	"net/http":                    "use cases know no transport",
	"/internal/store/memstore":    "a command joins it with a store",
	"/internal/store/sqlitestore": "a command joins it with a store",
	"/internal/store/pgstore":     "a command joins it with a store",
	"database/sql":                "only stores speak SQL",
}

// speaksNoSQL: what serves people has no way round the rules of control.
var speaksNoSQL = map[string]string{
	"/internal/store/memstore":    "it reaches the store through control only",
	"/internal/store/sqlitestore": "it reaches the store through control only",
	"/internal/store/pgstore":     "it reaches the store through control only",
	"database/sql":                "only stores speak SQL",
}

// storesStandAlone: a store keeps what it is given and knows nobody.
var storesStandAlone = map[string]string{
	"/internal/control": "a store keeps what it is given; control knows what that means",
	"net/http":          "a store serves nobody but control",
}

// decides is what the files of a pure package may not import.
var decides = map[string]string{
	"os":        "a decision depends on its arguments alone",
	"net":       "a decision depends on its arguments alone",
	"log/slog":  "it returns what happened; the caller logs it",
	"math/rand": "a decision can be repeated",
}

// forTests lists the packages that only tests may link.
var forTests = []string{"/cellwaytest", "/internal/alike", "/internal/fault", "/internal/memnet", "/internal/serving/servingtest", "/internal/store/faultstore", "/internal/store/storetest", "/internal/testlog", "/shuffle/registrytest"}

func list(s ...string) []string { return s }

// A listed package is what the go command says about one package.
type listed struct {
	ImportPath, Dir, Name, Doc string
	GoFiles, Imports, Deps     []string
}

// packages lists this module's packages, without tests, by import path.
var packages = sync.OnceValues(func() (map[string]listed, error) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,Name,Doc,GoFiles,Imports,Deps", "./...").Output()
	if err != nil {
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			err = errors.New(string(e.Stderr))
		}
		return nil, err
	}
	all := map[string]listed{}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		if len(p.GoFiles) > 0 {
			all[p.ImportPath] = p
		}
	}
})

// forEachPackage calls f for the module's packages in order, with the name
// that the tables use.
func forEachPackage(t *testing.T, f func(name string, p listed)) {
	t.Helper()
	all, err := packages()
	if err != nil {
		t.Fatalf("list packages: %v", err)
	}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		f(strings.TrimPrefix(path, module), all[path])
	}
}

// parse reads the files of p, comments included.
func parse(t *testing.T, p listed) (*token.FileSet, []*ast.File) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return fset, files
}

// within reports whether pkg is parent or lies below it.
func within(pkg, parent string) bool {
	rest, ok := strings.CutPrefix(pkg, parent)
	return ok && (rest == "" || rest[0] == '/')
}

// matches reports whether pattern, which may end in "/...", names pkg.
func matches(pattern, pkg string) bool {
	folder, deep := strings.CutSuffix(pattern, "/...")
	return pkg == pattern || deep && within(pkg, folder)
}

// rowFor returns the row of the named package.
func rowFor(name string) (arrow, bool) {
	i := slices.IndexFunc(arrows, func(a arrow) bool { return matches(a.pkg, name) })
	if i < 0 {
		return arrow{}, false
	}
	return arrows[i], true
}

// permits reports whether a package of this row may import the one called other.
func (a arrow) permits(other string) bool {
	if strings.HasSuffix(a.pkg, "/...") && matches(a.pkg, other) {
		return true // packages of a folder may import each other
	}
	return slices.ContainsFunc(a.may, func(m string) bool { return matches(m, other) })
}

// named matches the names of the architecture page's table of packages.
var named = regexp.MustCompile("`([^`]+)`")

// The table of packages on the architecture page and the packages are the same.
func TestArrowsPageNamesEachPackage(t *testing.T) {
	text, err := os.ReadFile("docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| package | what |\n| --- | --- |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string]bool{} // by name; whether it names a package
	for line := range strings.Lines(table) {
		names, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), " | ")
		for _, m := range named.FindAllStringSubmatch(names, -1) {
			name := strings.Replace("/"+m[1], "/…", "/...", 1)
			if strings.HasSuffix(module, "/"+m[1]) {
				name = ""
			}
			if _, twice := rows[name]; twice {
				t.Errorf("the table has %s twice", m[1])
			}
			// A module of its own, or tests alone, are none of the packages below.
			_, alone := os.Stat("." + name + "/go.mod")
			tests, err := filepath.Glob("." + name + "/*_test.go")
			if err != nil {
				t.Fatal(err)
			}
			rows[name] = alone == nil || len(tests) > 0
		}
	}
	forEachPackage(t, func(name string, p listed) {
		found := false
		for row := range rows {
			if matches(row, name) {
				rows[row], found = true, true
			}
		}
		if !found {
			t.Errorf("docs/ARCHITECTURE.md lacks package %s", p.ImportPath)
		}
	})
	for row, is := range rows {
		if !is {
			t.Errorf("docs/ARCHITECTURE.md names %q, and there is no such package", row)
		}
	}
}

func TestArrowsPointToTheCentre(t *testing.T) {
	forEachPackage(t, func(name string, p listed) {
		row, ok := rowFor(name)
		if !ok {
			t.Errorf("package %s has no row in arrows: say there what it may import, and why not more", p.ImportPath)
			return
		}
		for _, imported := range p.Imports {
			other, ours := strings.CutPrefix(imported, module)
			if ours && !row.permits(other) {
				t.Errorf("%s imports %s: the arrow points the wrong way", p.ImportPath, imported)
			}
			if why, bad := decides[imported]; bad && row.pure {
				t.Errorf("%s imports %s: %s", p.ImportPath, imported, why)
			}
		}
		never := maps.Clone(row.never)
		if row.pure {
			if never == nil {
				never = map[string]string{}
			}
			never["net/http"] = "a decision depends on its arguments alone"
		}
		for _, dep := range p.Deps {
			own, ours := strings.CutPrefix(dep, module)
			for what, why := range never {
				if strings.HasPrefix(what, "/") == ours && within(own, what) {
					t.Errorf("%s reaches %s: %s", p.ImportPath, dep, why)
				}
			}
		}
	})
}

// linked lists all that a router's or a gateway's binary may link beside the standard library
// and our own packages: the Prometheus client with what it brings, ff, and HPACK.
var linked = list("github.com/prometheus", "github.com/beorn7/perks", "github.com/cespare/xxhash/v2", "github.com/munnerz/goautoneg",
	"google.golang.org/protobuf", "golang.org/x/sys", "github.com/peterbourgon/ff/v3", "golang.org/x/net/http2/hpack")

func TestRoutersAndGatewaysLinkAlmostNothing(t *testing.T) {
	all, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range list("cellway-router", "cellway-gateway") {
		for _, dep := range all[module+"/cmd/"+command].Deps {
			host, _, _ := strings.Cut(dep, "/")
			if !strings.Contains(host, ".") || within(dep, module) || strings.HasPrefix(dep, "vendor/") {
				continue // the standard library, or ours
			}
			if !slices.ContainsFunc(linked, func(l string) bool { return within(dep, l) }) {
				t.Errorf("cmd/%s links %s: what stands in front of everybody links as little as possible", command, dep)
			}
		}
	}
}

// clocks are the functions of package time that ask or wait for a clock.
var clocks = list("Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep")

func TestDecisionsAskNoClock(t *testing.T) {
	forEachPackage(t, func(name string, p listed) {
		if row, ok := rowFor(name); !ok || !row.pure && name != "" {
			return
		}
		fset, files := parse(t, p)
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				call, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if pkg, ok := call.X.(*ast.Ident); ok && pkg.Name == "time" && slices.Contains(clocks, call.Sel.Name) {
					t.Errorf("%s: time.%s in a package that decides: take the time as an argument", fset.Position(call.Pos()), call.Sel.Name)
				}
				return true
			})
		}
	})
}

func TestOnlyTestsLinkTestPackages(t *testing.T) {
	forEachPackage(t, func(name string, p listed) {
		if slices.ContainsFunc(forTests, func(s string) bool { return within(name, s) }) {
			return
		}
		for _, dep := range p.Deps {
			own, ours := strings.CutPrefix(dep, module)
			if ours && slices.Contains(forTests, own) || dep == "testing" {
				t.Errorf("%s reaches %s, which is for tests", p.ImportPath, dep)
			}
		}
	})
}

func TestRowRules(t *testing.T) {
	router, _ := rowFor("/router")
	demo, _ := rowFor("/internal/demo/orders")
	for _, tt := range []struct {
		row   arrow
		other string
		want  bool
	}{
		{router, "", true},
		{router, "/routemap", true},
		{router, "/routemap/inner", false},
		{router, "/internal/control", false},
		{demo, "/internal/demo/load", true},
		{demo, "/internal/control", true},
		{demo, "/cellwaytest", false},
	} {
		if got := tt.row.permits(tt.other); got != tt.want {
			t.Errorf("%s may import %q: got %v, want %v", tt.row.pkg, tt.other, got, tt.want)
		}
	}
	if _, ok := rowFor("/internal/util"); ok {
		t.Error("a package that the table does not name has a row")
	}
	seen := map[string]bool{}
	for _, a := range arrows {
		if seen[a.pkg] {
			t.Errorf("two rows for %q", a.pkg)
		}
		seen[a.pkg] = true
	}
}
