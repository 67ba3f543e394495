package interop

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A seen is what a cell saw of a request.
type seen struct {
	Method  string      `json:"method"`
	URI     string      `json:"uri"` // as it stood in the request line
	Host    string      `json:"host"`
	Header  http.Header `json:"header"`
	Length  int64       `json:"length"` // -1: chunked
	Body    string      `json:"body"`   // SHA-256
	Trailer http.Header `json:"trailer"`
}

// see reads a request to its end.
func see(r *http.Request) (seen, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, r.Body); err != nil {
		return seen{}, err
	}
	return seen{r.Method, r.RequestURI, r.Host, r.Header, r.ContentLength, hex.EncodeToString(sum.Sum(nil)), r.Trailer}, nil
}

// content is what /bytes serves: 1 MiB, each line with its own number.
var content = func() []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.Bytes()
}()

// newWeb serves a small web service. What it does not know, it answers with what
// it saw.
func newWeb() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/bytes", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"v1"`)
		http.ServeContent(w, r, "lines.txt", time.Unix(1e9, 0), bytes.NewReader(content))
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, r *http.Request) {
		for range 64 { // chunked, as nobody says how long it is
			_, _ = w.Write(content)
		}
	})
	mux.HandleFunc("/gzip", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = z.Write(content)
		_ = z.Close()
	})
	mux.HandleFunc("/status/{code}", func(w http.ResponseWriter, r *http.Request) {
		code, err := strconv.Atoi(r.PathValue("code"))
		if err != nil {
			code = http.StatusBadRequest
		}
		w.Header().Set("Location", "/echo/moved")
		w.Header().Set("X-Cell-Id", "a cell's own idea")
		w.WriteHeader(code)
	})
	mux.HandleFunc("/trailers", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("X-Sum", "announced")
		w.Header().Set(http.TrailerPrefix+"X-Late", "not announced")
	})
	mux.HandleFunc("/hints", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "hinted")
	})
	mux.HandleFunc("/refuse", func(w http.ResponseWriter, r *http.Request) { // before the body is asked for
		http.Error(w, "not a byte of it", http.StatusExpectationFailed)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { echoSeen(w, r) })
	return mux
}

func echoSeen(w http.ResponseWriter, r *http.Request) {
	s, err := see(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header()["X-Twice"] = []string{"one", "two"}
	w.Header().Add("Set-Cookie", "a=1; Path=/")
	w.Header().Add("Set-Cookie", "b=2; HttpOnly")
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s)
}

// noMux keeps http.ServeMux from cleaning paths: it answers everything but
// the plain paths of the service itself.
func noMux(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, known := range []string{"/bytes", "/large", "/gzip", "/status/", "/trailers", "/hints", "/refuse"} {
			if strings.HasPrefix(r.RequestURI, known) {
				mux.ServeHTTP(w, r)
				return
			}
		}
		echoSeen(w, r)
	})
}
