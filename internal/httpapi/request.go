package httpapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cellway/cellway"
	"github.com/cellway/cellway/internal/control"
	"github.com/cellway/cellway/routemap"
)

// A request is an HTTP request being read. Its methods return what the request
// says, or note what is wrong with it; done then tells.
type request struct {
	*http.Request
	w     http.ResponseWriter
	who   principal
	err   error    // the first thing that is wrong
	known []string // query parameters that were asked for
	match bool     // the headers of a precondition were asked for
	read  bool     // the body was asked for

	command []string // of the CLI, that asks the same; nil if there is none so short
}

func (q *request) wrong(format string, args ...any) {
	if q.err == nil {
		q.err = fmt.Errorf(format, args...)
	}
}

// done returns the first thing that is wrong with the request. Query
// parameters that nobody asked for are wrong too, so that a misspelt
// "dry-run" never writes.
func (q *request) done() error {
	// Query drops what it can't read: a dry run would be dropped too.
	given, err := url.ParseQuery(q.URL.RawQuery)
	if err != nil {
		q.wrong("query %.80q can't be read; join parameters by & and escape their values: %w", q.URL.RawQuery, cellway.ErrInvalid)
	}
	for name, values := range given {
		switch {
		case !slices.Contains(q.known, name) && len(q.known) == 0:
			q.wrong("query parameter %q is unknown here; none is taken: %w", name, cellway.ErrInvalid)
		case !slices.Contains(q.known, name):
			q.wrong("query parameter %q is unknown here; known are %s: %w", name, strings.Join(q.known, ", "), cellway.ErrInvalid)
		case len(values) > 1:
			q.wrong("query parameter %q is given %d times: %w", name, len(values), cellway.ErrInvalid)
		}
	}
	// A condition that nobody looks at would be a promise.
	for _, name := range []string{"If-None-Match", "If-Match"} {
		if q.Method != http.MethodGet && !q.match && q.Header.Get(name) != "" {
			q.wrong("%s means nothing here, since no record of that revision is created or changed; leave it away: %w", name, cellway.ErrInvalid)
		}
	}
	for _, name := range onceHeaders {
		if n := len(q.Header.Values(name)); n > 1 {
			q.wrong("header %s is given %d times: %w", name, n, cellway.ErrInvalid)
		}
	}
	if !q.read && (q.ContentLength != 0 || len(q.TransferEncoding) > 0) {
		q.wrong("this takes no body; a DELETE says why in the query, as reason: %w", cellway.ErrInvalid)
	}
	return q.err
}

// onceHeaders are the headers that are heeded, and that say something else when
// they stand twice.
var onceHeaders = [...]string{"Authorization", "Content-Type", "If-Match", "If-None-Match", "Idempotency-Key"}

// param returns a query parameter, "" if it is not given.
func (q *request) param(name string) string {
	if !slices.Contains(q.known, name) {
		q.known = append(q.known, name)
	}
	return q.URL.Query().Get(name)
}

func (q *request) flag(name string) bool {
	switch s := q.param(name); s {
	case "", "false":
		return false
	case "true":
		return true
	default:
		q.wrong("query parameter %s is %q; give true or false: %w", name, s, cellway.ErrInvalid)
		return false
	}
}

// duration reads "30s" or "1m30s" from 0 to most, or returns or.
func (q *request) duration(name string, or, most time.Duration) time.Duration {
	s := q.param(name)
	if s == "" {
		return or
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > most {
		q.wrong("query parameter %s is %q; give a time like 10s, at most %v: %w", name, s, most, cellway.ErrInvalid)
	}
	return d
}

// number reads a whole number from 0 up, or returns or.
func (q *request) number(name string, or uint64) uint64 {
	s := q.param(name)
	if s == "" {
		return or
	}
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		q.wrong("query parameter %s is %q; give a number: %w", name, s, cellway.ErrInvalid)
	}
	return n
}

// version reads "incarnation.sequence"; 0 stands for the newest.
func (q *request) version(name string) cellway.Version {
	s := q.param(name)
	if s == "" {
		return 0
	}
	v, err := cellway.ParseVersion(s)
	if err != nil {
		q.wrong("query parameter %s is %q; give incarnation.sequence: %w", name, s, cellway.ErrInvalid)
	}
	return v
}

// key reads a whole key from the query.
func (q *request) key(name string) cellway.Key {
	k, err := cellway.ParseKey(q.param(name))
	if err != nil {
		q.wrong("query parameter %s: %w", name, err)
	}
	return k
}

// after and limit are the two parameters of every list.
func (q *request) page() (after string, limit int) {
	after = q.param("after")
	n := q.number("limit", 100)
	if n < 1 || n > 1000 {
		q.wrong("query parameter limit is %d; give 1 to 1000: %w", n, cellway.ErrInvalid)
	}
	return after, int(n)
}

func (q *request) cell() cellway.CellID {
	id := cellway.CellID(q.PathValue("cell"))
	if err := id.Validate(); err != nil {
		q.wrong("%w", err)
	}
	return id
}

func (q *request) tenant(name string) cellway.TenantID {
	id := cellway.TenantID(q.PathValue(name))
	if err := id.Validate(); err != nil {
		q.wrong("%w", err)
	}
	return id
}

// pathKey is the key of /v1/overrides/{tenant} or /v1/overrides/{tenant}/{part}.
func (q *request) pathKey() cellway.Key {
	s := q.PathValue("tenant")
	if part := q.PathValue("part"); part != "" || strings.Count(q.Pattern, "{") > 1 {
		s += "/" + part
	}
	k, err := cellway.ParseKey(s)
	if err != nil {
		q.wrong("%w", err)
	}
	return k
}

// body decodes the JSON body.
func body[T any](q *request) T { return bodyAtMost[T](q, maxBody, decodeStrictly) }

func bodyAtMost[T any](q *request, most int64, decode func(text []byte, v any) error) (v T) {
	q.read = true
	if media, _, err := mime.ParseMediaType(q.Header.Get("Content-Type")); err != nil || media != "application/json" {
		q.wrong("%w: send Content-Type: application/json, not %q", errMedia, q.Header.Get("Content-Type"))
		return v
	}
	// Not every connection has deadlines; the server's own bounds the head.
	conn := http.NewResponseController(q.w)
	if conn.SetReadDeadline(time.Now().Add(bodyWithin)) == nil {
		defer conn.SetReadDeadline(time.Time{})
	}
	text, err := io.ReadAll(http.MaxBytesReader(q.w, q.Body, most))
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		q.wrong("%w: at most %d bytes are taken", errTooLarge, large.Limit)
		return v
	}
	if err == nil {
		err = decode(text, &v)
	}
	switch {
	case errors.Is(err, cellway.ErrInvalid):
		q.wrong("body: %w", err)
	case err != nil:
		q.wrong("body: %v: %w", err, cellway.ErrInvalid)
	}
	return v
}

// maxBody bounds a JSON body in bytes, and bodyWithin the time that it takes to
// arrive.
const (
	maxBody    = 1 << 20
	bodyWithin = 30 * time.Second
)

// revision reads what the write says it read: If-Match with the record's
// revision, or If-None-Match: * for a record that must not exist, which is
// revision 0.
func (q *request) revision() cellway.Revision {
	q.match = true
	match, none := q.Header.Get("If-Match"), q.Header.Get("If-None-Match")
	switch {
	case match == "" && none == "*":
		return 0
	case match == "" && none == "":
		q.wrong(`%w: send If-Match with the ETag that you read, or "If-None-Match: *" to create`, errPrecondition)
		return 0
	case match == "" || none != "":
		q.wrong("send If-Match with one ETag, or If-None-Match: *, not both and nothing else: %w", cellway.ErrInvalid)
		return 0
	}
	rev, ok := parseETag(match)
	if !ok || rev == 0 {
		q.wrong(`If-Match is %s; send one ETag as it was read, like "7": %w`, match, cellway.ErrInvalid)
	}
	return rev
}

// existing is revision for writes that can't create.
func (q *request) existing() cellway.Revision {
	rev := q.revision()
	if rev == 0 {
		q.wrong("%w: send If-Match with the ETag that you read", errPrecondition)
	}
	return rev
}

// optional is revision for writes that need none: 0 if no condition is given.
func (q *request) optional() cellway.Revision {
	if q.Header.Get("If-None-Match") != "" || q.Header.Get("If-Match") == "" {
		return 0 // the first is refused in the end
	}
	return q.existing()
}

func etag(rev cellway.Revision) string { return `"` + strconv.FormatUint(uint64(rev), 10) + `"` }

func parseETag(s string) (cellway.Revision, bool) {
	s = strings.TrimSpace(s)
	if len(s) < 3 || s[0] != '"' || s[len(s)-1] != '"' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[1:len(s)-1], 10, 63)
	return cellway.Revision(n), err == nil
}

// call says who writes, and how.
func (q *request) call(reason string) control.Call {
	c := control.Call{Who: q.who.name, Reason: reason, DryRun: q.flag("dry_run")}
	if s := q.param("confirm"); s != "" {
		d, err := routemap.ParseDigest(s)
		if err != nil {
			q.wrong("query parameter confirm: give the digest of the refusal: %w", err)
		}
		c.Confirm = d
	}
	return c
}
