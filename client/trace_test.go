package client_test

import (
	"net/http"
	"net/http/httptrace"
)

// gotConn tells the client what a real transport tells it when a request goes
// out on a connection.
func gotConn(r *http.Request) {
	if tr := httptrace.ContextClientTrace(r.Context()); tr != nil && tr.GotConn != nil {
		tr.GotConn(httptrace.GotConnInfo{})
	}
}
