package hand

// An Outcome is what an attempt came to, as far as retries go.
type Outcome uint8

// The outcomes.
const (
	Good     Outcome = iota // an answer that is the caller's, 404 included
	Unsent                  // no connection: nothing happened
	Broken                  // the connection broke before an answer
	Silent                  // no answer began in time
	Unable                  // 500, 502, 503, 504
	Limited                 // 429: the tenant has had its share
	Misdealt                // the member says that the hand is an old one
	Ended                   // the caller has lost interest
	Lost                    // another attempt that went beside it was faster
)

var outcomeNames = [...]string{"good", "unsent", "broken", "silent", "unable", "limited", "misdealt", "ended", "lost"}

func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "unknown"
}

// OutcomeOf sorts an answer by its status. misdealt says that it names another
// version of hands.
func OutcomeOf(status int, misdealt bool) Outcome {
	switch {
	case status == 500 || status == 502 || status == 503 || status == 504:
		return Unable
	case status == 429:
		return Limited
	case status == 421 && misdealt:
		return Misdealt
	}
	return Good
}

// Idempotent reports whether a request can do no harm when it arrives twice,
// by its method. "" is GET.
func Idempotent(method string) bool {
	switch method {
	case "", "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE":
		return true
	}
	return false
}
