package alike

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What comes back is what the bytes ask for, and of two servers that answer otherwise
// it is not the same.
func TestExchangeSeesWhatDiffers(t *testing.T) {
	server := func(says string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%s %s end", r.URL.Path, says) }))
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
	one, same, other := server("hello"), server("hello"), server("good bye")
	sent := []byte("GET /2 HTTP/1.1\r\nHost: a\r\n\r\nGET /3 HTTP/1.1\r\nHost: a\r\n\r\n")
	for _, piece := range []int{0, 7, 1000} {
		a, cut := exchange(t, one, "Host: a\r\n", sent, piece)
		if cut || strings.Count(a, "HTTP/1.1 200 OK") != 2 || !strings.HasSuffix(a, "/3 hello end") || !strings.Contains(a, "Date: now\r\n") {
			t.Errorf("in pieces of %d: %q, cut %v", piece, a, cut)
		}
		if b, _ := exchange(t, other, "Host: a\r\n", sent, piece); b == a {
			t.Errorf("in pieces of %d both answer %q", piece, a)
		}
		Check(t, one, same, "Host: a\r\n", sent, piece)
	}
}
