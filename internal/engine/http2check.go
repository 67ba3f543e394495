package engine

import (
	"net/http"
	"strings"
)

// checkHTTP2 looks at the head of an HTTP/2 request for what would be read
// differently once it is written as HTTP/1. net/http has checked the names and
// values of its fields, and the length of its body against its frames. The head
// is measured as it would be long in HTTP/1.
func checkHTTP2(r *http.Request, limits HeadLimits) Reason {
	if limits.Fields > 0 {
		n := 1 // the host
		for _, v := range r.Header {
			n += len(v)
		}
		if n > limits.Fields {
			return ReasonTooMany
		}
	}
	if limits.Bytes > 0 {
		n := len(r.Method) + len(r.RequestURI) + len(r.Host) + len("  HTTP/1.1\r\nHost: \r\n\r\n")
		for name, values := range r.Header {
			for _, v := range values {
				n += len(name) + len(v) + len(": \r\n")
			}
		}
		if n > limits.Bytes {
			return ReasonTooLarge
		}
	}
	switch {
	case r.Method == http.MethodConnect:
		return ReasonConnect
	case len(r.Method) > maxMethod || !isToken([]byte(r.Method)) || r.Method == refusedMethod:
		return ReasonMethod
	case r.RequestURI == "*":
		if r.Method != http.MethodOptions {
			return ReasonTarget
		}
	case !strings.HasPrefix(r.RequestURI, "/") || !validTarget([]byte(r.RequestURI)) || !validEscapes([]byte(r.RequestURI)):
		return ReasonTarget
	}
	if !validHost([]byte(r.Host)) {
		return ReasonHost
	}
	if hosts := r.Header["Host"]; len(hosts) > 1 {
		return ReasonHostTwice
	} else if len(hosts) == 1 && !strings.EqualFold(hosts[0], r.Host) {
		return ReasonHostDiffers
	}
	if n := r.Header["Content-Length"]; len(n) > 1 {
		return ReasonLengthTwice
	} else if len(n) == 1 {
		if _, ok := parseLength([]byte(n[0])); !ok {
			return ReasonLength
		}
	}
	for name := range r.Header {
		switch name {
		case "Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade":
			return ReasonField
		}
		if hasOddByte(name) && framesMessage([]byte(name)) {
			return ReasonLookalike
		}
	}
	for _, v := range r.Header["Expect"] {
		if !onlyContinue([]byte(v)) {
			return ReasonExpect
		}
	}
	if te := r.Header["Te"]; len(te) > 1 || len(te) == 1 && te[0] != "trailers" {
		return ReasonField
	}
	for name := range r.Trailer {
		if framesMessage([]byte(name)) {
			return ReasonTrailerName
		}
	}
	return OK
}
