package engine

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/cellway/cellway"
)

// Problem returns an RFC 9457 document with a code. It ends its line, so that what
// stands behind it in a terminal begins another.
func Problem(status int, code cellway.Code, detail string) []byte {
	b, err := json.Marshal(struct {
		Title  string       `json:"title"`
		Status int          `json:"status"`
		Code   cellway.Code `json:"code"`
		Detail string       `json:"detail,omitempty"`
	}{http.StatusText(status), status, code, detail})
	if err != nil {
		return []byte("{}") // strings and numbers always marshal
	}
	return append(b, '\n')
}

func itoa(n int) string { return strconv.Itoa(n) }
