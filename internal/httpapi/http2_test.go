package httpapi

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Over HTTP/2 a body of unknown length has neither a length nor a coding.
func TestABodyThatNobodyReadsIsRefusedOverHTTP2(t *testing.T) {
	s, _ := newServer(t)
	srv := httptest.NewUnstartedServer(s)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	for body, want := range map[io.Reader]int{io.MultiReader(strings.NewReader("{}")): http.StatusBadRequest, nil: http.StatusOK} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/v1/cells", body)
		if err != nil {
			t.Fatal(err)
		}
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.ProtoMajor != 2 || res.StatusCode != want {
			t.Errorf("HTTP/%d: %s, want %d", res.ProtoMajor, res.Status, want)
		}
	}
}
