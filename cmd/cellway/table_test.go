package main

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTableAligns(t *testing.T) {
	table := newTable("cell", "state", "nothing", "title")
	table.row("cell-001", "active", "", "Zürich")
	table.row("c", "cordoned", "", "")
	table.tint = func(row []string, i int) string {
		if row[i] == "cordoned" {
			return "33"
		}
		return ""
	}
	for _, tt := range []struct {
		colours bool
		want    string
	}{
		{false, "CELL      STATE     TITLE\ncell-001  active    Zürich\nc         cordoned\n"},
		{true, "\x1b[1mCELL\x1b[0m      \x1b[1mSTATE\x1b[0m     \x1b[1mTITLE\x1b[0m\ncell-001  active    Zürich\nc         \x1b[33mcordoned\x1b[0m\n"},
	} {
		var out strings.Builder
		table.write(&out, look{colours: tt.colours})
		if out.String() != tt.want {
			t.Errorf("colours %t: got\n%q\nwant\n%q", tt.colours, out.String(), tt.want)
		}
	}
}

func TestATableFitsItsTerminalAndLosesNothing(t *testing.T) {
	table := newTable("router", "state", "map", "refused", "listen")
	table.wide = []string{"listen"}
	table.row("router-"+strings.Repeat("x", 50), "refuses", "1006081.7", "12 (untrusted, by a key that nobody knows)", "127.0.0.1:8080")
	table.row("r", "live", "1006081.7", "", "127.0.0.1:8081")
	for _, tt := range []struct {
		look look
		most int
		all  bool
	}{{look{width: 30}, 68, false}, {look{width: 60}, 60, false}, {look{width: 100}, 100, false}, {look{}, 1000, false}, {look{wide: true, width: 60}, 1000, true}} {
		var out strings.Builder
		table.write(&out, tt.look)
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > tt.most {
				t.Errorf("%+v: %d columns:\n%s", tt.look, n, line)
			}
		}
		if strings.Contains(out.String(), "LISTEN") != tt.all {
			t.Errorf("%+v:\n%s", tt.look, out.String())
		}
		for _, word := range []string{"refuses", "1006081.7", "(untrusted,", "nobody", "knows)"} {
			if !strings.Contains(out.String(), word) {
				t.Errorf("%+v: %s is lost:\n%s", tt.look, word, out.String())
			}
		}
		if strings.Count(out.String(), "x") != 50 {
			t.Errorf("%+v: the name is lost:\n%s", tt.look, out.String())
		}
	}
}

func TestTheFirstColumnGoesAboveOthersThatTakeItsRoom(t *testing.T) {
	table := newTable("case", "tenants down", "tenant-minutes")
	table.raised = true
	table.row("one stack for all, 4 attempts", "33.33 %", "1,000")
	table.row("a cell", "100 %", "")
	for width, want := range map[int]string{
		36: "CASE\n  TENANTS DOWN  TENANT-MINUTES\none stack for all, 4 attempts\n  33.33 %       1,000\na cell\n  100 %\n",
		26: "CASE\n  TENANTS  TENANT-\n  DOWN     MINUTES\none stack for all, 4\nattempts\n  33.33 %  1,000\na cell\n  100 %\n",
		80: "CASE                           TENANTS DOWN  TENANT-MINUTES\none stack for all, 4 attempts  33.33 %       1,000\na cell                         100 %\n",
	} {
		wantTable(t, table, width, want)
	}
}

// wantTable compares what a table is in so many columns.
func wantTable(t *testing.T, table *table, width int, want string) {
	t.Helper()
	var out strings.Builder
	table.write(&out, look{width: width})
	if out.String() != want {
		t.Errorf("in %d columns:\n%s\nwant\n%s", width, out.String(), want)
	}
}

// Columns that are looked up one at a time make room for those that are compared.
func TestColumnsGoBelowTheirRowWhereTheyHaveNoRoomBesideIt(t *testing.T) {
	table := newTable("cell", "state", "endpoints", "title", "zone")
	table.below = []string{"endpoints", "title"}
	table.row("cell-001", "active", "http://10.0.0.1:80 http://10.0.0.2:80", "", "")
	table.row("cell-002", "new", "", "the second", "")
	for width, want := range map[int]string{
		80: "CELL      STATE   ENDPOINTS                              TITLE\ncell-001  active  http://10.0.0.1:80 http://10.0.0.2:80\ncell-002  new                                            the second\n",
		60: "CELL      STATE   TITLE\n  ENDPOINTS\ncell-001  active\n  http://10.0.0.1:80 http://10.0.0.2:80\ncell-002  new     the second\n",
		24: "CELL      STATE\ncell-001  active\n  endpoints:\n  http://10.0.0.1:80\n  http://10.0.0.2:80\ncell-002  new\n  title: the second\n",
		12: "CELL       cell-001\nSTATE      active\nENDPOINTS  http://10.0.0.1:80\n           http://10.0.0.2:80\n\nCELL   cell-002\nSTATE  new\nTITLE  the\n       second\n",
	} {
		wantTable(t, table, width, want)
	}
}

func TestATableThatDoesNotFitAtAllBecomesLists(t *testing.T) {
	table := newTable("cell", "tenants down", "tenant-minutes")
	table.row("zone a (cell-001)", "33.33 %", "1,000")
	table.row("all", "100 %", "")
	for width, want := range map[int]string{
		36: "CELL        TENANTS  TENANT-\n            DOWN     MINUTES\nzone a      33.33 %  1,000\n(cell-001)\nall         100 %\n",
		24: "CELL            zone a\n                (cell-001)\nTENANTS DOWN    33.33 %\nTENANT-MINUTES  1,000\n\nCELL          all\nTENANTS DOWN  100 %\n",
	} {
		wantTable(t, table, width, want)
	}
}

// What a person acts on is never cut: it goes on below.
func TestATableWrapsWhatMustBeWhole(t *testing.T) {
	table := newTable("what", "from", "to")
	from := "active, admit 100 %, guard identity, http://127.0.0.1:9001"
	table.row("cell", from, strings.ReplaceAll(from, "9001", "8081"))
	table.row("short", "a", "b")
	var out strings.Builder
	table.write(&out, look{width: 60})
	want := `WHAT   FROM                        TO
cell   active, admit 100 %, guard  active, admit 100 %,
       identity,                   guard identity,
       http://127.0.0.1:9001       http://127.0.0.1:8081
short  a                           b
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	for _, tt := range []struct {
		text       string
		width      int
		head, rest string
	}{{"one two three", 8, "one two", "three"}, {"onetwothree", 4, "onet", "wothree"}, {"http://a/b/c", 9, "http://a/", "b/c"}, {"ä ö ü", 3, "ä ö", "ü"}} {
		if head, rest := parted(tt.text, tt.width); head != tt.head || rest != tt.rest {
			t.Errorf("%q in %d: %q and %q", tt.text, tt.width, head, rest)
		}
	}
}

func TestAFollowedTableHasOneHeadingAndKeepsItsColumns(t *testing.T) {
	table := newTable("number", "who", "reason")
	var out strings.Builder
	line := table.follow(&out, look{}, 6, 10)
	line([]string{"1", "local", "first"})
	line([]string{"2", "", ""})
	line([]string{"3", "somebody-long-named", "third"})
	line([]string{"4", "local", "fourth"})
	want := `NUMBER  WHO         REASON
1       local       first
2
3       somebody-long-named  third
4       local                fourth
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestARoutersBuildFitsAColumn(t *testing.T) {
	for build, want := range map[string]string{
		"v1.2.3": "v1.2.3", "v1.2.3 (0123456789ab, go1.26.8)": "v1.2.3", "devel (go1.26.8)": "devel", "": "",
		"v0.0.0-20261130034005-e13cc59abcde+dirty (e13cc59abcde, modified, go1.26.8)": "e13cc59abcde",
		"v1.2.4-0.20261130034005-e13cc59abcde":                                        "e13cc59abcde",
	} {
		if got := (&app{output: "table"}).tellBuild(build); got != want {
			t.Errorf("%s: %s, want %s", build, got, want)
		}
		if got := (&app{output: "wide"}).tellBuild(build); got != build {
			t.Errorf("%s: wide %s", build, got)
		}
	}
}

func TestAPercentIsBounded(t *testing.T) {
	var to uint8
	p := percent{&to, 1, 100}
	for text, want := range map[string]int{"1": 1, "100": 100, "25%": 25, "0": -1, "101": -1, "300": -1, "-1": -1, "5.5": -1, "": -1, "all": -1} {
		err := p.Set(text)
		if want < 0 && err == nil || want >= 0 && (err != nil || int(to) != want) {
			t.Errorf("%q is %d, %v", text, to, err)
		}
	}
}
