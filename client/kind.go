package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/cellway/cellway/api"
	"github.com/cellway/cellway/routemap"
)

// fields are those that every answer of the kind of out has, the one that names the
// record first. They are few, and as old as the kind, so that an older control plane
// is known as well.
func fields(out any) []string {
	switch out.(type) {
	case *api.Fleet, *api.FleetChange:
		return []string{"name", "mapping", "revision"}
	case *api.Cell, *api.CellChange:
		return []string{"id", "state", "admit", "revision"}
	case *api.Tenant, *api.TenantChange:
		return []string{"id", "cell", "revision"}
	case *api.Override, *api.OverrideChange:
		return []string{"key", "kind", "epoch", "revision"}
	case *api.Alias, *api.AliasChange:
		return []string{"name", "target", "revision"}
	case *api.CellWorkers, *api.CellWorkersChange:
		return []string{"cell", "size", "workers", "revision"}
	case *api.BucketPlan:
		return []string{"policy", "moved", "kept", "cells"}
	case *api.MapStatus:
		return []string{"version", "fleet", "routers"}
	case *routemap.Content:
		return []string{"fleet", "mapping", "cells"}
	case *api.MapDiff:
		return []string{"from", "to", "changes"}
	case *api.MapVersion:
		return []string{"version", "digest", "parent"}
	case *api.RollbackChange:
		return []string{"to"}
	case *api.Explanation:
		return []string{"asked", "map_version", "key", "rule"}
	case *api.Location:
		return []string{"key", "cell", "endpoints", "map_version"}
	case *api.Router:
		return []string{"id", "live", "last_seen", "map_version"}
	case *api.Lease:
		return []string{"lease_ms", "version"}
	case *api.ChangeStatus:
		return []string{"id", "at", "act", "digest"}
	case *api.JournalEntry:
		return []string{"number", "at", "act", "subject"}
	case *api.Alarm:
		return []string{"code", "subject", "message"}
	case *api.Token:
		return []string{"id", "name", "role"}
	case *api.NewToken:
		return []string{"id", "name", "role", "secret"}
	}
	return nil
}

// A strange error says what an answer has, or lacks, that no control plane's does.
type strange string

func (e strange) Error() string { return string(e) }

// A pageOf is where the answer to a list goes.
type pageOf struct {
	page any // *api.Page
	one  any // a pointer to what its items are
}

// decode reads an answer into out. If it is not of the kind that out is for, the
// error is a strange one; if it breaks off, [io.ErrUnexpectedEOF].
func decode(raw []byte, out any) error {
	var whole json.RawMessage
	switch err := json.NewDecoder(bytes.NewReader(raw)).Decode(&whole); {
	case err == io.EOF:
		return strange("nothing")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return err
	case err != nil:
		return strange("no JSON")
	}
	if err := kindred(whole, out); err != nil {
		return err
	}
	if p, ok := out.(pageOf); ok {
		out = p.page
	}
	err := json.Unmarshal(whole, out)
	if odd, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return strange(fmt.Sprintf("another kind of %s", odd.Field))
	}
	return err
}

// kindred reports which of the fields of out's kind text lacks. Of a page its first
// item is looked at.
func kindred(text json.RawMessage, out any) error {
	if p, ok := out.(pageOf); ok {
		var list struct {
			Items []json.RawMessage `json:"items"`
		}
		if json.Unmarshal(text, &list) != nil || list.Items == nil {
			return strange("no items")
		}
		if len(list.Items) == 0 {
			return nil
		}
		text, out = list.Items[0], p.one
	}
	var got map[string]json.RawMessage
	if json.Unmarshal(text, &got) != nil {
		return strange("no JSON object")
	}
	for i, name := range fields(out) {
		switch v := string(got[name]); {
		case v == "", v == "null", i == 0 && v == `""`:
			return strange("no " + name)
		}
	}
	return nil
}

// foreign is the error of a success that no control plane answers r with, and why.
// Nobody knows what became of a write that is answered so.
func (c *Client) foreign(r request, resp *http.Response, why strange, text []byte) error {
	e := &Error{Op: r.method + " " + r.path, foreign: true}
	e.unsure = r.method != http.MethodGet && r.query.Get("dry_run") == ""
	e.Status = resp.StatusCode
	e.Detail = fmt.Sprintf("%s is %v: it answers %s with %s and %s", c.URL(), ErrForeign, e.Op, resp.Status, why)
	if len(text) > 0 {
		e.Detail += fmt.Sprintf(": %.200q", text)
	}
	return e
}

// ofMedia refuses an answer of another media type than r asks for.
func (c *Client) ofMedia(r request, resp *http.Response) error {
	if got, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); got == r.accept {
		return nil
	}
	return c.foreign(r, resp, strange("no "+r.accept), beginning(resp))
}

// bare refuses an answer without a body that the control plane did not give: it gives
// each request an id. An answer with a body is somebody else's too.
func (c *Client) bare(r request, resp *http.Response) error {
	switch {
	case resp.StatusCode != http.StatusNoContent:
		return c.foreign(r, resp, "not 204", beginning(resp))
	case resp.Header.Get("X-Request-Id") == "":
		return c.foreign(r, resp, "no X-Request-Id", nil)
	}
	return nil
}

// beginning is the beginning of an answer, for people.
func beginning(resp *http.Response) []byte {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // what can't be read is not shown
	return text
}
