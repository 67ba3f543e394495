package routemap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/cellway/cellway"
)

// ParseContent reads what [Content.Format] writes: a whole map in JSON, as
// people edit it. A field that is unknown, differs in case or stands twice is
// refused, as is anything behind the end. What the content means is checked by
// [Build]. The error wraps [cellway.ErrInvalid] and names the line.
func ParseContent(text []byte) (Content, error) {
	bad := func(at int64, err error) error {
		line := 1 + bytes.Count(text[:min(at, int64(len(text)))], []byte("\n"))
		if errors.Is(err, cellway.ErrInvalid) {
			return fmt.Errorf("map content, line %d: %w", line, err)
		}
		return fmt.Errorf("map content, line %d: %v: %w", line, err, cellway.ErrInvalid)
	}
	check := fieldCheck{json.NewDecoder(bytes.NewReader(text)), map[string]int64{}}
	if err := check.value("", 0); err != nil {
		return Content{}, bad(check.InputOffset(), err)
	}
	if _, err := check.Token(); !errors.Is(err, io.EOF) {
		return Content{}, bad(check.InputOffset(), errors.New("there is more behind the end of the map"))
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	var c Content
	if err := dec.Decode(&c); err != nil {
		at := dec.InputOffset()
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			at = e.Offset
			if err = fmt.Errorf("no map is %s", inWords(e.Value)); e.Field != "" {
				err = fmt.Errorf("field %q can't be %s", e.Field, inWords(e.Value))
			}
		}
		// The decoder reads a whole value before it looks at its fields, and
		// gives an unknown one no type of error.
		if quoted, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			if name, err := strconv.Unquote(quoted); err == nil {
				at = check.first[name]
			}
			err = fmt.Errorf("unknown field %s", quoted)
		}
		return Content{}, bad(at, err)
	}
	return c, nil
}

// A fieldCheck refuses objects in which a field stands twice, or is written in
// another case: package json would silently drop the first of two, and take one
// for the other. Tags are named as people like.
type fieldCheck struct {
	*json.Decoder
	first map[string]int64 // where each field stands first
}

// value reads the value of a field.
func (c *fieldCheck) value(of string, depth int) error {
	t, err := c.Token()
	if err != nil {
		return noEOF(err)
	}
	if depth > 16 {
		return errors.New("lists within lists within lists")
	}
	switch t {
	case json.Delim('{'):
		seen := map[string]bool{}
		for c.More() {
			t, err := c.Token()
			if err != nil {
				return noEOF(err)
			}
			name, _ := t.(string)
			if _, ok := c.first[name]; !ok {
				c.first[name] = c.InputOffset()
			}
			if of != "tags" && strings.ContainsFunc(name, func(r rune) bool { return unicode.IsUpper(r) || r > unicode.MaxASCII }) {
				return fmt.Errorf("unknown field %q; fields are written in lower case", name)
			}
			if seen[name] {
				return fmt.Errorf("%q stands twice", name)
			}
			seen[name] = true
			if err := c.value(name, depth+1); err != nil {
				return err
			}
		}
	case json.Delim('['):
		for c.More() {
			if err := c.value("", depth+1); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	_, err = c.Token() // the closing delimiter
	return noEOF(err)
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends too early: something is not closed")
	}
	return err
}

// inWords says what package json calls so.
func inWords(value string) string {
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

// Format writes c in JSON with a record on each line, so that two maps can be
// compared line by line.
func (c Content) Format() ([]byte, error) {
	var b bytes.Buffer
	err := errors.Join(
		plainJSON(&b, c.Settings, "\n}", "  "),
		lines(&b, "cells", c.Cells),
		lines(&b, "bucket_owners", c.Owners),
		lines(&b, "entries", c.Entries),
		lines(&b, "aliases", c.Aliases),
		lines(&b, "tombstones", c.Tombstones),
		lines(&b, "holds", c.Holds),
	)
	if err != nil {
		return nil, fmt.Errorf("format map content: %w", err)
	}
	b.WriteString("\n}\n")
	return b.Bytes(), nil
}

// lines writes a field with a list, a line for each element.
func lines[T any](b *bytes.Buffer, field string, list []T) error {
	fmt.Fprintf(b, ",\n  %q: [", field)
	for i, v := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n    ")
		if err := plainJSON(b, v, "", ""); err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
	}
	if len(list) > 0 {
		b.WriteString("\n  ")
	}
	b.WriteByte(']')
	return nil
}

// plainJSON writes v without the line break behind it, without what ends it,
// and with <, > and & as they are: people read it, no browser does.
func plainJSON(b *bytes.Buffer, v any, end, indent string) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return err
	}
	b.Truncate(len(bytes.TrimSuffix(b.Bytes(), []byte(end+"\n"))))
	return nil
}
