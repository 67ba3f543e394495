// Package strictjson reads JSON that people write.
package strictjson

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Decode reads the one JSON value that text is into what v points to. A field that
// v does not know, one that stands twice, and anything after the value, are errors:
// see [Names]. They name the line and the field, and what belongs there, in words of
// whoever wrote text.
func Decode(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return explain(text, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("line %d: there is more after its end; remove it", line(text, d.InputOffset()))
	}
	if at, err := checkNames(text, v, false); err != nil {
		return fmt.Errorf("line %d: %w", line(text, at), err)
	}
	return nil
}

// explain says what package json found, and where.
func explain(text []byte, err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("line %d: %w", line(text, e.Offset), Say(err))
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("line %d: %w", line(text, e.Offset), err)
	}
	if errors.Is(err, io.EOF) {
		return errors.New("it is empty")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends too early: something is not closed")
	}
	return Say(err)
}

// line returns the number of the line that the byte before the offset is in.
func line(text []byte, offset int64) int {
	at := min(max(offset-1, 0), int64(len(text)))
	return 1 + bytes.Count(text[:at], []byte("\n"))
}

// Say returns an error of package json that names no type of this program, but what
// belongs in the field. Other errors it returns as they are.
func Say(err error) error {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		where := ""
		if field := Field(e); field != "" {
			where = fmt.Sprintf("%q: ", field)
		}
		return fmt.Errorf("%s%s does not belong there, but %s", where, found(e.Value), wanted(e.Type))
	}
	if quoted, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		if name, err := strconv.Unquote(quoted); err == nil {
			return fmt.Errorf("unknown field %q; is it misspelt?", name)
		}
	}
	if text, ok := strings.CutPrefix(err.Error(), "json: "); ok {
		return errors.New(text)
	}
	return err
}

// Field returns the path of the field that e is about, as whoever wrote the JSON
// knows it: without the names of embedded types, which package json puts into it. ""
// is the value itself.
func Field(e *json.UnmarshalTypeError) string {
	steps := strings.Split(e.Field, ".")
	name := steps[len(steps)-1] // where the value stands, so it is no embedded type
	path := slices.DeleteFunc(steps[:len(steps)-1], func(step string) bool {
		return step != "" && 'A' <= step[0] && step[0] <= 'Z' // our names are lowercase
	})
	return strings.Join(append(path, name), ".")
}

// found says what package json calls so.
func found(value string) string {
	switch value {
	case "string":
		return "a text"
	case "bool":
		return "true or false"
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "number":
		return "a number"
	}
	return "the " + value // "number 1.5"
}

// wanted says what a field of that type takes.
func wanted(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "a text in quotes" // whatever it is inside
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number from 0 on"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a text in quotes"
	case reflect.Slice, reflect.Array:
		return "a list in brackets"
	}
	return "an object in braces"
}
