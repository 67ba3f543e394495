package router

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"sync"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/routemap"
)

// serveHTTP2 is the cell, where it speaks HTTP/2 over TLS and nothing else.
func (c *conformer) serveHTTP2(h http.HandlerFunc) {
	s := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP2(true)
	s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cellCertificate()}, NextProtos: []string{"h2"}}
	l := c.listen("10.0.0.1:80")
	var serving sync.WaitGroup
	serving.Go(func() { s.ServeTLS(l, "", "") })
	c.end = append(c.end, func() { s.Close(); serving.Wait() })
}

// cellCertificate is that of cell-001, and its own authority. It holds in the time of
// bubbles, too.
var cellCertificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"cell-001"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
})

// http2Rows are those of a cell that speaks HTTP/2 and nothing else, for clients of
// HTTP/1: what it answers, and what is answered in its place.
func http2Rows(send string, known func(*routemap.Content)) (rows []conformRow) {
	fleet := func(c *routemap.Content) {
		known(c)
		c.Cells[0].Endpoints = []string{"https://10.0.0.1:80"}
	}
	trust := func(c *Config) {
		c.Cells.TLS.Roots = x509.NewCertPool()
		c.Cells.TLS.Roots.AddCert(cellCertificate().Leaf)
	}
	for _, row := range []conformRow{
		{name: "sized answer", http2: func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Length", "2")
			w.Header().Set("X-Saw", r.Method+" "+r.RequestURI+" "+r.Host+" "+r.Proto+" "+r.Header.Get("X-Cell-Id")+r.Header.Get("X-Tenant-Id")+r.Header.Get("Via"))
			io.WriteString(w, "ok")
		}},
		{name: "body sent back", http2: func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			http.NewResponseController(w).Flush() // so that it has no length
			w.Write(body)
		}},
		{name: "trailers", http2: func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Trailer", "X-Sum")
			io.WriteString(w, "abc")
			http.NewResponseController(w).Flush()
			w.Header().Set("X-Sum", "1")
			w.Header().Set(http.TrailerPrefix+"X-Late", "2")
		}},
		{name: "no body", http2: func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.WriteHeader(204)
		}},
		{name: "not modified", http2: func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Etag", `"a"`)
			w.WriteHeader(304)
		}},
		{name: "nothing", http2: func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }},
		{name: "interim answers", http2: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Link", "</a>")
			w.WriteHeader(103)
			w.Header().Del("Link")
			io.Copy(io.Discard, r.Body)
			io.WriteString(w, "ok")
		}},
		{name: "fields of our own", http2: func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header()["X-Cell-Id"] = []string{"evil"}
			w.Header()["Set-Cookie"] = []string{"a=1", "b=2"}
			w.Header().Set("Date", "Mon, 01 Jan 2024 00:00:00 GMT")
			io.WriteString(w, "ok")
		}},
		{name: "cell's own refusal", http2: func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body); w.WriteHeader(421) }},
		{name: "a guard's refusal", code: cellway.CellMismatch, http2: func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("X-Cell-Epoch", "0.0")
			w.WriteHeader(421)
		}},
		{name: "a slow cell", code: cellway.CellTimeout, http2: func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}},
		{name: "no answer", code: cellway.CellProtocol, http2: func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			panic(http.ErrAbortHandler)
		}},
		{name: "body that breaks off", differ: []string{"reset"}, http2: func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Length", "9")
			fmt.Fprint(w, "abc")
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}},
	} {
		row.name = "HTTP/2, " + row.name
		row.send, row.fleet, row.config = send, fleet, trust
		if row.code != cellway.CellTimeout { // handshakes take their time on a busy machine
			row.config = func(c *Config) { trust(c); c.Cells.Timeouts.FirstByte = 5 * time.Second }
		}
		if row.code == "" {
			row.differ = append([]string{"as the cell wrote it"}, row.differ...)
		}
		rows = append(rows, forms(row)...)
	}
	return rows
}
