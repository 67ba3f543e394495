package engine

import (
	"bytes"
	"fmt"
	"net/http"
)

// Whole returns what write answers as the bytes of an HTTP/1.1 answer. It is for
// connections that no server has.
func Whole(write func(w http.ResponseWriter)) []byte {
	w := &inMemory{header: http.Header{}, status: http.StatusOK}
	write(w)
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", w.status, http.StatusText(w.status))
	_ = w.header.Write(&b) // memory takes it all
	b.WriteString("\r\n")
	b.Write(w.body.Bytes())
	return b.Bytes()
}

// An inMemory keeps an answer.
type inMemory struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *inMemory) Header() http.Header         { return w.header }
func (w *inMemory) WriteHeader(status int)      { w.status = status }
func (w *inMemory) Write(b []byte) (int, error) { return w.body.Write(b) }
