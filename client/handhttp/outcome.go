package handhttp

import "net/http"

// An outcome is what an attempt came to, as far as retries go.
type outcome int

const (
	good     outcome = iota // an answer that is the caller's, 404 included
	unsent                  // no connection: nothing happened
	broken                  // the connection broke before an answer
	silent                  // no answer began in time
	unable                  // 500, 502, 503, 504
	limited                 // 429: the tenant has had its share
	misdealt                // the member says that the hand is an old one
	ended                   // the caller has lost interest
	lost                    // its hedge was faster
)

// judge sorts an answer.
func judge(resp *http.Response) outcome {
	switch resp.StatusCode {
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return unable
	case http.StatusTooManyRequests:
		return limited
	case http.StatusMisdirectedRequest:
		if resp.Header.Get(HandHeader) != "" {
			return misdealt
		}
	}
	return good
}

// unprocessed reports whether the request of a surely did not run.
func (a *attempt) unprocessed() bool {
	switch a.outcome {
	case unsent, limited, misdealt:
		return true
	case unable:
		return a.resp.StatusCode == http.StatusServiceUnavailable && a.resp.Header.Get("Retry-After") != ""
	}
	return false
}
