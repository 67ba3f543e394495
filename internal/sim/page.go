package sim

import (
	"fmt"
	"html/template"
	"io"
	"strings"
)

// A Page is a report as one document of its own: it loads nothing, runs no
// script, and prints.
type Page struct {
	Title    string
	Lead     string   // what was simulated, in a sentence
	Facts    []string // the configuration, one setting each
	Sections []Section
	Made     string // by what and when; may be empty
}

// Plotted draws the section's plot, or nothing.
func (s Section) Plotted() template.HTML {
	if s.Plot == nil {
		return ""
	}
	return s.Plot.draw()
}

// Many reports whether the table is too wide for a phone, where each row then
// becomes a list.
func (s Section) Many() bool { return len(s.Head) > 3 }

// WritePage writes the page as HTML.
func WritePage(w io.Writer, p Page) error {
	if err := page.Execute(w, p); err != nil {
		return fmt.Errorf("page of the report: %w", err)
	}
	return nil
}

// joined keeps a percentage in one line.
func joined(text string) string { return strings.ReplaceAll(text, " %", "\u00a0%") }

// page has its style within, for light and dark, wide and narrow.
var page = template.Must(template.New("page").Funcs(template.FuncMap{"joined": joined}).Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{.Title}}</title>
<style>
:root { --page: #fbfbf9; --card: #fff; --text: #1d2430; --soft: #5b6472; --line: #dfe2e6; --track: #eceef1; --s0: #1f66c1; --s1: #c2570c; --s2: #55606e; --s3: #16805a; }
@media (prefers-color-scheme: dark) {
  :root { --page: #12161c; --card: #1a2029; --text: #e7eaee; --soft: #a3adb9; --line: #313a46; --track: #28303b; --s0: #6ba6f5; --s1: #f0944d; --s2: #9aa5b3; --s3: #55c096; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.15rem; margin: 0 0 .5rem; }
p { margin: 0 0 .75rem; max-width: 46rem; }
.facts { list-style: none; display: flex; flex-wrap: wrap; gap: .4rem; padding: 0; margin: 0 0 1.5rem; }
.facts li { border: 1px solid var(--line); border-radius: 1rem; padding: .1rem .7rem; font-size: .85rem; color: var(--soft); }
section { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: 1rem; margin: 0 0 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .3rem .5rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; white-space: normal; min-width: 9rem; }
th { color: var(--soft); font-weight: 600; white-space: normal; vertical-align: bottom; }
figure { margin: 0 0 1rem; max-width: 46rem; }
figcaption { color: var(--soft); font-size: .85rem; margin-bottom: .5rem; }
svg { display: block; overflow: visible; }
svg text { fill: var(--text); font: 13px system-ui, sans-serif; font-variant-numeric: tabular-nums; }
svg .axis { fill: var(--soft); font-size: 12px; }
.track { fill: var(--track); } .grid { stroke: var(--line); stroke-width: 1; vector-effect: non-scaling-stroke; }
.s0 { fill: var(--s0); } .s1 { fill: var(--s1); } .s2 { fill: var(--s2); } .s3 { fill: var(--s3); }
polyline { fill: none; stroke-width: 2; vector-effect: non-scaling-stroke; }
.l0 { stroke: var(--s0); } .l1 { stroke: var(--s1); } .l2 { stroke: var(--s2); stroke-dasharray: 6 4; } .l3 { stroke: var(--s3); }
.note, footer { color: var(--soft); font-size: .85rem; margin: .75rem 0 0; }
@media (max-width: 40rem) {
  main { padding: 1rem .75rem 2rem; }
  section { padding: .75rem; }
  .many thead { display: none; }
  .many tr { display: block; border-bottom: 1px solid var(--line); padding: .4rem 0; }
  .many td { display: flex; justify-content: space-between; gap: 1rem; border: 0; padding: .1rem 0; }
  .many td::before { content: attr(data-head); color: var(--soft); white-space: normal; text-align: left; }
  .many td:first-child { display: block; font-weight: 600; }
  .many td:first-child::before { content: attr(data-head) ": "; font-weight: 400; }
  .many td:empty { display: none; }
}
@media print { section { break-inside: avoid; } }
</style>
</head>
<body>
<main>
<h1>{{.Title}}</h1>
<p>{{joined .Lead}}</p>
<ul class="facts">{{range .Facts}}<li>{{joined .}}</li>{{end}}</ul>
{{range .Sections}}<section>
<h2>{{.Title}}</h2>
{{with .Text}}<p>{{joined .}}</p>
{{end}}{{.Plotted}}
{{if .Rows}}<div class="wide" tabindex="0" role="region" aria-label="{{.Title}}"><table{{if .Many}} class="many"{{end}}>
<thead><tr>{{range .Head}}<th scope="col">{{.}}</th>{{end}}</tr></thead>
<tbody>{{$head := .Head}}{{range .Rows}}<tr>{{range $i, $cell := .}}<td data-head="{{index $head $i}}">{{$cell}}</td>{{end}}</tr>
{{end}}</tbody>
</table></div>{{end}}
{{with .Note}}<p class="note">{{joined .}}</p>
{{end}}</section>
{{end}}{{with .Made}}<footer>{{.}}</footer>
{{end}}</main>
</body>
</html>
`))
