package handhttp

import (
	"crypto/rand"
	"io"
	"net/http"

	"github.com/cellway/cellway/shuffle/hand"
)

// idempotencyKey is the field by which a server recognises a request that it
// had before.
const idempotencyKey = "Idempotency-Key"

// idempotent reports whether r can do no harm when it arrives twice.
func idempotent(r *http.Request) bool {
	return hand.Idempotent(r.Method) || r.Header.Get(idempotencyKey) != ""
}

// replayable reports whether r can be sent a second time with the same body.
func replayable(r *http.Request, most int64) bool {
	if r.Body == nil || r.Body == http.NoBody {
		return true
	}
	return r.GetBody != nil && r.ContentLength >= 0 && r.ContentLength <= most
}

// newKey returns a key that no other call has.
func newKey() string { return rand.Text() }

// bodyOf returns the body for another attempt of r. The first attempt has the
// request's own.
func bodyOf(r *http.Request, first bool) (io.ReadCloser, error) {
	if first || r.Body == nil || r.Body == http.NoBody {
		return r.Body, nil
	}
	return r.GetBody()
}
