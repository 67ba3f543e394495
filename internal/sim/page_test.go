package sim

import (
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func pageOf(t *testing.T, p Page) string {
	t.Helper()
	var b strings.Builder
	if err := WritePage(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAPageLoadsNothingAndRunsNothing(t *testing.T) {
	_, r := drawn(t, 1)
	text := pageOf(t, r.Page())
	if m := regexp.MustCompile(`(?i)<script|<link|<img|<iframe|src=|href=|url\(|@import|https?:|\bon[a-z]+=`).FindString(text); m != "" {
		t.Errorf("the page has %q; it must stand alone", m)
	}
	for _, want := range []string{"<svg", "<polyline", "prefers-color-scheme: dark", "width=device-width", "A retry storm"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
		t.Error("the page has numbers that are none")
	}
}

func TestNamesOfOthersAreEscaped(t *testing.T) {
	evil := `<script>alert("x")</script>`
	text := pageOf(t, Page{Title: evil, Lead: evil, Facts: []string{evil}, Made: evil, Sections: []Section{{
		Title: evil, Text: evil, Note: evil, Head: []string{evil}, Rows: [][]string{{evil}},
		Plot: Bars{Title: evil, Series: []string{evil, evil}, Bars: []Bar{{Label: evil, Value: 1, Text: evil}}},
	}, {Title: "lines", Plot: Lines{Title: evil, Unit: evil, End: evil, Lines: []Line{{Name: evil, Values: []float64{1}}, {Name: evil}}}}}})
	if strings.Contains(text, "<script") {
		t.Error("a name became markup")
	}
}

func TestEveryRowHasACellForEveryHeading(t *testing.T) {
	s, err := Shuffle(t.Context(), ShuffleConfig{Workers: 10, Hand: 2, Tenants: 50, Overlap: 1}, Run{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := Hands(t.Context(), HandsConfig{Workers: 10, Hand: 2, Tenants: 50}, Run{})
	if err != nil {
		t.Fatal(err)
	}
	_, f := drawn(t, 1)
	for _, p := range []Page{s.Page(), h.Page(), f.Page()} {
		for _, section := range p.Sections {
			for _, row := range section.Rows {
				if len(row) != len(section.Head) {
					t.Errorf("%s: row %q under %q", section.Title, row, section.Head)
				}
			}
		}
	}
}

func TestBarsAreAsLongAsTheirValues(t *testing.T) {
	linear := Bars{Bars: []Bar{{Value: 0}, {Value: 1}, {Value: 4}}}
	low, high := linear.bounds()
	if got := linear.along(1, low, high); got != 0.25 {
		t.Errorf("1 of 4 is %v along, want 0.25", got)
	}
	byPowers := Bars{Log: true, Bars: []Bar{{Value: 0}, {Value: 0.01}, {Value: 1}}}
	low, high = byPowers.bounds()
	if got := byPowers.along(0.01, low, high); low != -3 || high != 0 || got < 0.333 || got > 0.334 {
		t.Errorf("0.01 is %v along from 10^%v to 10^%v, want a third from 10^-3 to 10^0", got, low, high)
	}
	if byPowers.along(0, low, high) != 0 {
		t.Error("nothing has a bar")
	}
	if got := strings.Count(string(byPowers.draw()), `class="grid"`); got != 3*2 {
		t.Errorf("%d marks of powers of ten, want two on each of three bars", got)
	}
	if strings.Contains(string(linear.draw()), `class="grid"`) {
		t.Error("bars that are as long as their values have marks of powers of ten")
	}
}

func TestLinesRiseWithTheirValues(t *testing.T) {
	drawn := string(Lines{Lines: []Line{{Name: "one", Values: []float64{0, 1, 4}}}, End: "2 s", Unit: "x"}.draw())
	if !strings.Contains(drawn, `points="0.0,100.00 500.0,75.00 1000.0,0.00 "`) || !strings.Contains(drawn, ">4 x<") || !strings.Contains(drawn, ">2 s<") {
		t.Errorf("0, 1, 4 are drawn as %s", drawn)
	}
}

func TestLongLabelsWrapBetweenWords(t *testing.T) {
	label := "A shared dependency is lost: database db-3 (cell-012, cell-013, 2 more)"
	lines := wrapped(label)
	if len(lines) != 2 || strings.Join(lines, " ") != label {
		t.Errorf("lines %q, want two with every word", lines)
	}
}

func TestNumbersForPeople(t *testing.T) {
	var got []string
	for _, x := range []float64{0, 0.5, 1.23456, 12, 999.94, 999.96, 1234.4, 75_287_520, 3e20, 1.5e-9, -4200} {
		got = append(got, Number(x))
	}
	if want := []string{"0", "0.5", "1.235", "12", "999.9", "1,000", "1,234", "75,287,520", "3e+20", "1.5e-09", "-4,200"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	got = nil
	for _, p := range []float64{0, 1, 0.9999999999, 0.99996, 0.99994, 0.99984, 0.769590, 1.32824e-8, 0.05} {
		got = append(got, Share(p))
	}
	if want := []string{"0 %", "100 %", "99.9999 %", "99.996 %", "99.994 %", "99.98 %", "76.96 %", "1.328e-06 %", "5 %"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

type failing struct{}

var errFull = errors.New("disk is full")

func (failing) Write([]byte) (int, error) { return 0, errFull }

func TestAPageThatCannotBeWrittenIsAnError(t *testing.T) {
	var w io.Writer = failing{}
	if err := WritePage(w, Page{}); !errors.Is(err, errFull) {
		t.Errorf("got %v, want the writer's error", err)
	}
}
