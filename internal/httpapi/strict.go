package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/cellway/cellway/internal/strictjson"
)

// decodeStrictly decodes the one JSON value that text is into v, a pointer. It
// refuses what package json would take and somebody else read otherwise: a
// field that stands twice, one whose name differs in case, one that is unknown,
// bytes that are no UTF-8, and anything behind the value.
func decodeStrictly(text []byte, v any) error { return decodeBody(text, v, false) }

// decodeFromRouter is decodeStrictly for what routers say of themselves. It
// passes over fields that are unknown, since a router may be newer than its
// control plane.
func decodeFromRouter(text []byte, v any) error { return decodeBody(text, v, true) }

func decodeBody(text []byte, v any, newer bool) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return errors.New("it is empty")
	}
	if !utf8.Valid(text) {
		return errors.New("it is not UTF-8")
	}
	if string(bytes.TrimSpace(text)) == "null" {
		return errors.New("it is null")
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(v); err != nil {
		_, err := strictjson.Explain(text, v, newer, err)
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON value")
	}
	return strictjson.Names(text, v, newer)
}
