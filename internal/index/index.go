// Package index answers who comes to a listener with what there is.
package index

import (
	"html"
	"io"
	"net/http"
	"regexp"
	"strings"
)

// Handler answers with text, whose first line is a title. A browser gets the same as a
// page in which each path, a word that begins with a slash, is a link.
func Handler(text string) http.Handler {
	page := []byte(pageOf(text))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Vary", "Accept")
		h.Set("X-Content-Type-Options", "nosniff")
		// Browsers name it; curl and its like take anything.
		if strings.Contains(r.Header.Get("Accept"), "text/html") {
			h.Set("Content-Type", "text/html; charset=utf-8")
			h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
			_, _ = w.Write(page) // the asker may be gone
			return
		}
		h.Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, text+"\n") // as above
	})
}

// path is a path after a blank or at the beginning of a line.
var path = regexp.MustCompile(`(?m)(?:^| )/[^\s:;,]*`)

func pageOf(text string) string {
	title, text, _ := strings.Cut(text, "\n")
	title, text = html.EscapeString(title), strings.Trim(text, "\n")
	var body strings.Builder
	at := 0
	for _, found := range path.FindAllStringIndex(text, -1) {
		from, to := found[0], found[1]
		from += strings.Index(text[from:to], "/")
		link := html.EscapeString(text[from:to])
		body.WriteString(html.EscapeString(text[at:from]) + `<a href="` + link + `">` + link + `</a>`)
		at = to
	}
	body.WriteString(html.EscapeString(text[at:]))
	return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>` + title + `</title>
<style>
:root { color-scheme: light dark }
body { max-width: 50rem; margin: 2rem auto; padding: 0 1rem; font-family: system-ui, sans-serif }
pre { line-height: 1.6; white-space: pre-wrap }
</style>
</head>
<body>
<h1>` + title + `</h1>
<pre>` + body.String() + `</pre>
</body>
</html>
`
}
