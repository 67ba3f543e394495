package sim

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
	"unicode/utf8"
)

// svg is markup that this package wrote; what others wrote in it is escaped.
type svg = template.HTML

// A Bar is one bar of [Bars].
type Bar struct {
	Label string
	Value float64
	Text  string // the value, as people read it
	Color int    // one of the series
}

// Bars is a plot of horizontal bars. It is as wide as the page: what is along
// is in percent, what is across in pixels, so that text keeps its size.
type Bars struct {
	Title  string   // what a bar's length means
	Series []string // names of the colours; one or none needs no legend
	Bars   []Bar
	Log    bool // by powers of ten, with a line at each; values of 0 have no bar

	// Ends writes what the ends of the axis are; nil is [Number].
	Ends func(float64) string
}

// pair adds two bars of shares, one of each series, for what.
func (b *Bars) pair(what string, one, other float64) {
	for i, v := range []float64{one, other} {
		b.Bars = append(b.Bars, Bar{what + ", " + b.Series[i], v, Share(v), i})
	}
}

// Heights of rows, in pixels.
const (
	textRow = 17
	barRow  = 24
	legend  = 24
)

// track is how much of the width bars may take, in percent; the rest is for
// their values.
const track = 72

// mostLabel is how many characters of a label fit across a phone.
const mostLabel = 44

// wrapped breaks a label into lines, between words.
func wrapped(label string) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(label) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) <= mostLabel:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}

func (p Bars) draw() svg {
	var b strings.Builder
	low, high := p.bounds()
	top := legendOf(&b, p.Series)
	y := top
	for _, bar := range p.Bars {
		for _, line := range wrapped(bar.Label) {
			fmt.Fprintf(&b, `<text x="0" y="%d" class="label">%s</text>`, y+14, html.EscapeString(line))
			y += textRow
		}
		fmt.Fprintf(&b, `<text x="%d%%" y="%d" class="value">%s</text>`, track+2, y+14, html.EscapeString(bar.Text))
		fmt.Fprintf(&b, `<rect x="0" y="%d" width="%d%%" height="12" rx="2" class="track"/>`, y+4, track)
		if width := track * p.along(bar.Value, low, high); width > 0 {
			fmt.Fprintf(&b, `<rect x="0" y="%d" width="%.3f%%" height="12" rx="2" class="s%d"/>`, y+4, max(width, 0.3), bar.Color)
		}
		if p.Log {
			for power := low + 1; power < high; power++ {
				x := track * (power - low) / (high - low)
				fmt.Fprintf(&b, `<line x1="%.3f%%" x2="%.3f%%" y1="%d" y2="%d" class="grid"/>`, x, x, y+4, y+16)
			}
		}
		y += barRow
	}
	fmt.Fprintf(&b, `<text x="0" y="%d" class="axis">%s</text>`, y+12, html.EscapeString(p.ends(low)))
	fmt.Fprintf(&b, `<text x="%d%%" y="%d" class="axis" text-anchor="end">%s</text>`, track, y+12, html.EscapeString(p.ends(high)))
	height := y + 20
	return figure(p.Title, height, b.String())
}

func (p Bars) ends(x float64) string {
	if p.Log {
		x = math.Pow(10, x)
	}
	if p.Ends != nil {
		return p.Ends(x)
	}
	return Number(x)
}

// bounds are the ends of the axis, or their powers of ten.
func (p Bars) bounds() (low, high float64) {
	low = math.Inf(1)
	for _, b := range p.Bars {
		high = max(high, b.Value)
		if b.Value > 0 {
			low = min(low, b.Value)
		}
	}
	if high <= 0 {
		return 0, 1
	}
	if p.Log {
		return math.Floor(math.Log10(low)) - 1, math.Ceil(math.Log10(high))
	}
	return 0, high
}

// along is where a value lies between the ends, from 0 to 1.
func (p Bars) along(x, low, high float64) float64 {
	if x <= 0 {
		return 0
	}
	if p.Log {
		x = math.Log10(x)
	}
	return min(1, (x-low)/(high-low))
}

// A Line is one line of [Lines]: values at equal distances.
type Line struct {
	Name   string
	Values []float64
}

// Lines is a plot of values over an axis that runs from 0 to End.
type Lines struct {
	Title string
	Lines []Line
	End   string // what the right end of the axis is, as in "10 min"
	Unit  string // of the values
}

const plotHeight = 180

func (p Lines) draw() svg {
	var b strings.Builder
	var names []string
	high := 0.0
	for _, l := range p.Lines {
		names = append(names, l.Name)
		for _, v := range l.Values {
			high = max(high, v)
		}
	}
	if high == 0 {
		high = 1
	}
	top := legendOf(&b, names) + 18
	fmt.Fprintf(&b, `<text x="0" y="%d" class="axis">%s</text>`, top-6, html.EscapeString(Number(high)+" "+p.Unit))
	fmt.Fprintf(&b, `<svg x="0" y="%d" width="100%%" height="%d" viewBox="0 0 1000 100" preserveAspectRatio="none">`, top, plotHeight)
	for _, y := range []int{0, 50, 100} {
		fmt.Fprintf(&b, `<line x1="0" x2="1000" y1="%d" y2="%d" class="grid"/>`, y, y)
	}
	for i, l := range p.Lines {
		fmt.Fprintf(&b, `<polyline class="l%d" points="`, i)
		for j, v := range l.Values {
			fmt.Fprintf(&b, "%.1f,%.2f ", 1000*float64(j)/float64(max(len(l.Values)-1, 1)), 100-100*v/high)
		}
		b.WriteString(`"/>`)
	}
	b.WriteString("</svg>")
	fmt.Fprintf(&b, `<text x="0" y="%d" class="axis">0</text>`, top+plotHeight+16)
	fmt.Fprintf(&b, `<text x="100%%" y="%d" class="axis" text-anchor="end">%s</text>`, top+plotHeight+16, html.EscapeString(p.End))
	return figure(p.Title, top+plotHeight+24, b.String())
}

// legendOf writes the names of colours, one below the other, and returns how
// high they are.
func legendOf(b *strings.Builder, names []string) int {
	if len(names) < 2 {
		return 0
	}
	for i, n := range names {
		fmt.Fprintf(b, `<rect x="0" y="%d" width="12" height="12" rx="2" class="s%d"/>`, i*legend+2, i)
		fmt.Fprintf(b, `<text x="20" y="%d" class="label">%s</text>`, i*legend+13, html.EscapeString(n))
	}
	return len(names)*legend + 6
}

func figure(title string, height int, inner string) svg {
	title = html.EscapeString(title)
	return svg(fmt.Sprintf(`<figure><figcaption>%s</figcaption><svg width="100%%" height="%d" role="img" aria-label="%s">%s</svg></figure>`,
		title, height, title, inner))
}
