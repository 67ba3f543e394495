// Package strictjson reads JSON that people write.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Decode reads the one JSON value that text is into what v points to. A field that
// v does not know, one that stands twice, and anything after the value, are errors:
// see [Names]. They name the line and the field, and what belongs there, in words of
// whoever wrote text.
func Decode(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(v); err != nil {
		at, err := Explain(text, v, false, err)
		return onLine(text, at, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("line %d: there is more after its end; remove it", line(text, d.InputOffset()))
	}
	if at, err := checkNames(text, v, false); err != nil {
		return fmt.Errorf("line %d: %w", line(text, at), err)
	}
	return nil
}

// onLine names the line of an error; with none, below 0, the error is of all of text.
func onLine(text []byte, at int64, err error) error {
	if at < 0 {
		return err
	}
	return fmt.Errorf("line %d: %w", line(text, at), err)
}

// line returns the number of the line that the byte before the offset is in.
func line(text []byte, offset int64) int {
	at := min(max(offset-1, 0), int64(len(text)))
	return 1 + bytes.Count(text[:at], []byte("\n"))
}
