package sim

import (
	"math"
	"strconv"
	"strings"
)

// A Section is one part of a report as people read it.
type Section struct {
	Title string
	Text  string // what the numbers mean; may be empty
	Head  []string
	Rows  [][]string // as many cells as Head
	Plot  Plot       // nil if there is none
	Note  string     // below the table; may be empty
}

// A Plot draws itself as a piece of SVG; see [Bars] and [Lines].
type Plot interface{ draw() svg }

// Share writes a share of 1 as a percentage with four digits that count.
func Share(p float64) string {
	x := p * 100
	switch a := math.Abs(x); {
	case math.IsNaN(x):
		return "-"
	case a == 0:
		return "0 %"
	case a >= 100-1e-9 && a <= 100+1e-9: // a sum of many parts
		return strconv.FormatFloat(math.Round(x), 'f', 0, 64) + " %"
	case a >= 99.99 && a < 100: // not to be rounded up to all
		return strconv.FormatFloat(math.Floor(a*1e4)/1e4, 'f', -1, 64) + " %"
	case a < 1e-4:
		return power(x) + " %"
	}
	return digits(x) + " %"
}

// power writes x with a power of ten, four digits that count, and no zeros at
// the end.
func power(x float64) string {
	digits, exponent, _ := strings.Cut(strconv.FormatFloat(x, 'e', 3, 64), "e")
	return strings.TrimRight(strings.TrimRight(digits, "0"), ".") + "e" + exponent
}

// digits writes x with four digits that count, and no zeros at the end.
func digits(x float64) string {
	places := 3
	if a := math.Abs(x); a > 0 {
		places = min(max(3-int(math.Floor(math.Log10(a))), 0), 8)
	}
	s := strconv.FormatFloat(x, 'f', places, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// Number writes x as a person would: with four digits that count below a
// thousand, then in full with commas, and as a power of ten from 1e15 on and below
// 0.0001. What is no number is a dash.
func Number(x float64) string {
	switch a := math.Abs(x); {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return "-"
	case a == 0:
		return "0"
	case a >= 1e15 || a < 1e-4:
		return power(x)
	case a >= 999.95: // which four digits round up
		return grouped(strconv.FormatFloat(x, 'f', 0, 64))
	}
	return digits(x)
}

// grouped puts commas between thousands of a whole number.
func grouped(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

func whole(n int) string { return grouped(strconv.Itoa(n)) }

// several counts things whose name has no plural but with an s.
func several(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return whole(n) + " " + what
}

// name of a worker or tenant of a simulation, by number, as in tenant-00042.
func name(kind string, i int) string {
	var room [32]byte
	text := append(append(room[:0], kind...), '-')
	for most := 10_000; most > 1 && i < most; most /= 10 {
		text = append(text, '0')
	}
	return string(strconv.AppendInt(text, int64(i), 10))
}

// upper writes the first letter large; it must be one of ASCII.
func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
