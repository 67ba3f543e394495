package strictjson

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
)

// Explain returns why text could not be decoded into what v points to, for which
// package json has its own words, err. It names the field, what stands there and what
// belongs there, and no type of this program. The offset is where that ends in text,
// below 0 if it is about all of it. With newer, fields that are unknown are passed over,
// as by [Names].
func Explain(text []byte, v any, newer bool, err error) (offset int64, _ error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return -1, errors.New("it is empty")
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		if strings.HasPrefix(e.Error(), "unexpected end") {
			return -1, errEndsEarly
		}
		return e.Offset, badSyntax(text, e)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return -1, errEndsEarly
	}
	if at, odd := mismatch(text, 0, reflect.TypeOf(v), ""); odd != nil {
		return at, odd
	}
	if at, odd := checkNames(text, v, newer); odd != nil { // one in another case, or an unknown one
		return at, odd
	}
	if own, ok := strings.CutPrefix(err.Error(), "json: "); ok {
		return -1, errors.New(own)
	}
	return -1, err
}

var errEndsEarly = errors.New("it ends too early: something is not closed")

// belongs says what belongs where package json met a character that does not, by what
// it was doing. What is not in it is told without.
var belongs = []struct{ doing, say string }{
	{"looking for beginning of value", "a value belongs there: a text in quotes, a number, true, false, null, a list in brackets or an object in braces"},
	{"looking for beginning of object key string", "the name of a field in quotes belongs there, or no comma before it"},
	{"after object key:value pair", "a comma or } belongs there"},
	{"after object key", "a colon belongs there"},
	{"after array element", "a comma or ] belongs there"},
	{"after top-level value", "it is after the end; remove it"},
	{"in string escape code", `in a text a backslash is written \\`},
	{"hexadecimal character escape", `after \u four hexadecimal digits belong`},
	{"in string literal", "in a text it is written as an escape, as a line break is \\n"},
	{"in literal", "texts stand in quotes, and true, false and null are written so"},
	{"numeric literal", "it is in a number; texts stand in quotes"},
}

// badSyntax says which character can't stand where it does.
func badSyntax(text []byte, e *json.SyntaxError) error {
	what := offender(text, e)
	for _, b := range belongs {
		if strings.Contains(e.Error(), b.doing) {
			return fmt.Errorf("%q can't stand there: %s", what, b.say)
		}
	}
	return fmt.Errorf("%q can't stand there", what)
}

// offender is the character that e is about: the last that was read, or the next one,
// if that is what e names.
func offender(text []byte, e *json.SyntaxError) rune {
	at := min(max(e.Offset-1, 0), int64(len(text)-1))
	if next := e.Offset; next >= 0 && next < int64(len(text)) && text[next] != text[at] && strings.Contains(e.Error(), fmt.Sprintf("invalid character %q ", rune(text[next]))) {
		at = next
	}
	what, _ := utf8.DecodeRune(text[at:])
	return what
}

// mismatch returns the first value in raw that can't become what t has there, which
// is at path. The offset is where that value ends, if raw begins at from.
func mismatch(raw []byte, from int64, t reflect.Type, path string) (at int64, _ error) {
	for t.Kind() == reflect.Pointer {
		if reads(t) {
			break
		}
		t = t.Elem()
	}
	lead := len(raw) - len(bytes.TrimLeft(raw, " \t\r\n"))
	raw, from = bytes.TrimSpace(raw), from+int64(lead)
	end := from + int64(len(raw))
	if len(raw) == 0 || string(raw) == "null" {
		return 0, nil
	}
	odd := func() (int64, error) { return end, mismatched(raw, t, path) }
	switch {
	case reads(t) || isBytes(t):
		into := reflect.New(t)
		err := json.Unmarshal(raw, into.Interface())
		if err == nil {
			return 0, nil
		}
		if own := ownWords(err); own != nil && raw[0] == '"' {
			return end, fmt.Errorf("%s%w", colon(path), own)
		}
		return odd()
	case t.Kind() == reflect.Struct:
		if raw[0] != '{' {
			return odd()
		}
		fields := (&nameCheck{known: map[reflect.Type]map[string]reflect.Type{}}).fields(t)
		return members(raw, from, func(name string) (reflect.Type, string) { return fields[name], join(path, name) })
	case t.Kind() == reflect.Map:
		if raw[0] != '{' {
			return odd()
		}
		return members(raw, from, func(name string) (reflect.Type, string) { return t.Elem(), join(path, name) })
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		if raw[0] != '[' {
			return odd()
		}
		i := -1
		return members(raw, from, func(string) (reflect.Type, string) { i++; return t.Elem(), fmt.Sprintf("%s[%d]", path, i) })
	case t.Kind() == reflect.Interface:
		return 0, nil
	}
	if json.Unmarshal(raw, reflect.New(t).Interface()) != nil {
		return odd()
	}
	return 0, nil
}

// members looks through what an object or a list holds.
func members(raw []byte, from int64, of func(name string) (reflect.Type, string)) (int64, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	open, err := d.Token()
	if err != nil {
		return 0, nil
	}
	for d.More() {
		name := ""
		if open == json.Delim('{') {
			token, err := d.Token()
			if err != nil {
				return 0, nil
			}
			name, _ = token.(string)
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return 0, nil
		}
		t, path := of(name)
		if t == nil {
			continue
		}
		if at, err := mismatch(value, from+d.InputOffset()-int64(len(value)), t, path); err != nil {
			return at, err
		}
	}
	return 0, nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func colon(path string) string {
	if path == "" {
		return ""
	}
	return fmt.Sprintf("field %q: ", path)
}

var (
	readsJSON = reflect.TypeFor[json.Unmarshaler]()
	readsText = reflect.TypeFor[encoding.TextUnmarshaler]()
	timeType  = reflect.TypeFor[time.Time]()
)

// reads reports whether a t reads its JSON itself.
func reads(t reflect.Type) bool {
	of := reflect.PointerTo(t)
	return of.Implements(readsJSON) || of.Implements(readsText)
}

// isBytes reports whether a t is a text in base64 in JSON.
func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

// ownWords returns an error of one of our types, which says itself what belongs
// there. Those of package json and of others have words of their own.
func ownWords(err error) error {
	if _, ok := errors.AsType[*time.ParseError](err); ok {
		return nil
	}
	if text := err.Error(); strings.HasPrefix(text, "json: ") || strings.HasPrefix(text, "Time.") || strings.HasPrefix(text, "illegal base64") {
		return nil
	}
	return err
}

// mismatched says what is at path, and what must be.
func mismatched(raw []byte, t reflect.Type, path string) error {
	if path == "" {
		return fmt.Errorf("it must be %s, not %s", wanted(t), found(raw, t))
	}
	if tooLarge(raw, t) {
		return fmt.Errorf("field %q: the number %.40s is too large", path, raw)
	}
	return fmt.Errorf("field %q must be %s, not %s", path, wanted(t), found(raw, t))
}

// tooLarge reports whether raw is a number of t's kind for which there is no room.
func tooLarge(raw []byte, t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return len(raw) > 0 && !bytes.ContainsAny(raw, `"[{.eEtfn`)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return len(raw) > 0 && !bytes.ContainsAny(raw, `"[{.eEtfn-`)
	case reflect.Float32, reflect.Float64:
		return raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9'
	}
	return false
}

// found says what raw is, beside a t that it is not.
func found(raw []byte, t reflect.Type) string {
	switch raw[0] {
	case '"':
		if t == timeType || reads(t) || isBytes(t) {
			return fmt.Sprintf("%.60s", raw)
		}
		return "a text"
	case '[':
		return "a list"
	case '{':
		return "an object"
	case 't', 'f':
		return string(raw)
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("%.40s", raw)
	}
	return "a number"
}

// wanted says what a t takes.
func wanted(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == timeType {
		return `a time such as "2027-01-31T12:00:00Z"`
	}
	if reflect.PointerTo(t).Implements(readsText) {
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
		if isBytes(t) {
			return "a text in quotes, in base64"
		}
		return "a list in brackets"
	}
	return "an object in braces"
}
