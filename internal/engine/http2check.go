package engine

import (
	"net/http"
	"strings"
)

// checkHTTP2 looks at the head of an HTTP/2 request for what would be read
// differently once it is written as HTTP/1. net/http has checked the names and
// values of its fields, and the length of its body against its frames; its
// limit of the head's bytes is the server's.
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
