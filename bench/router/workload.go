//go:build linux

package main

import (
	"fmt"
	"strings"
)

// A workload is what one request is like.
type workload struct {
	Name   string `json:"name"`
	title  string
	body   int  // bytes of a request's body
	answer int  // bytes of an answer's body, or of a message
	tls    bool // between client and proxy
	http2  bool // there, too
	socket bool // messages over a WebSocket instead of requests
	Logged bool `json:"logged"` // the proxy writes an access log
}

// smallAnswer is how long a small answer is, in bytes.
const smallAnswer = 150

// logged ends the name of a workload with an access log.
const logged = "+log"

func workloads() []workload {
	return []workload{
		{Name: "small", title: "small GET, 150 bytes answered", answer: smallAnswer},
		{Name: "large", title: "GET, 16 KiB answered", answer: 16 << 10},
		{Name: "body", title: "POST of 64 KiB, 150 bytes answered", body: 64 << 10, answer: smallAnswer},
		{Name: "tls", title: "small GET over TLS 1.3, 150 bytes answered", answer: smallAnswer, tls: true},
		{Name: "http2", title: "small GET over HTTP/2 and TLS 1.3, 150 bytes answered", answer: smallAnswer, tls: true, http2: true},
		{Name: "websocket", title: "echo of 64 bytes over a WebSocket", answer: 64, socket: true},
	}
}

// protocol is what client and proxy speak over TLS.
func (w workload) protocol() string {
	if w.http2 {
		return "h2"
	}
	return "http/1.1"
}

// parseWorkloads reads names with commas between them. "all" stands for every
// one, with and without an access log.
func parseWorkloads(s string) (found []workload, err error) {
	known := workloads()
	var names []string
	for name := range strings.SplitSeq(s, ",") {
		if name = strings.TrimSpace(name); name != "all" {
			names = append(names, name)
			continue
		}
		for _, w := range known {
			names = append(names, w.Name, w.Name+logged)
		}
	}
next:
	for _, name := range names {
		plain, isLogged := strings.CutSuffix(name, logged)
		for _, w := range known {
			if w.Name == plain {
				if isLogged {
					w.Name, w.title, w.Logged = name, w.title+", with an access log", true
				}
				found = append(found, w)
				continue next
			}
		}
		return nil, fmt.Errorf("workload %q is not known; give small, large, body, tls, http2 or websocket, each with or without %s, or all", name, logged)
	}
	return found, nil
}
