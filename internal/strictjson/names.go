package strictjson

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// Names refuses what package json would take and somebody else read otherwise: a field
// that stands twice, one whose name differs in case, one that is unknown, and text
// that could not be read whole. The text is a JSON value that decodes into what v
// points to. With newer, fields that are unknown are passed over, since a newer program
// wrote them.
func Names(text []byte, v any, newer bool) error {
	_, err := checkNames(text, v, newer)
	return err
}

// checkNames is Names, and returns where it ended.
func checkNames(text []byte, v any, newer bool) (offset int64, err error) {
	names := nameCheck{json.NewDecoder(bytes.NewReader(text)), map[reflect.Type]map[string]reflect.Type{}, newer}
	err = names.value(reflect.TypeOf(v))
	return names.InputOffset(), err
}

// A nameCheck walks over a JSON value that decodes into a type, and looks at
// its names.
type nameCheck struct {
	*json.Decoder
	known map[reflect.Type]map[string]reflect.Type // the fields of structs
	newer bool                                     // names that mean nothing here are passed over
}

// value walks over the next value, which becomes a t. A nil t is not known:
// then only names that stand twice are refused.
func (n *nameCheck) value(t reflect.Type) error {
	t = plainType(t)
	token, err := n.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		if err := n.object(t); err != nil {
			return err
		}
	case json.Delim('['):
		for n.More() {
			if err := n.value(element(t, reflect.Slice, reflect.Array)); err != nil {
				return err
			}
		}
	default:
		if s, ok := token.(string); ok {
			return whole(s)
		}
		return nil
	}
	_, err = n.Token() // the closing delimiter
	return err
}

func (n *nameCheck) object(t reflect.Type) error {
	var fields map[string]reflect.Type
	if t != nil && t.Kind() == reflect.Struct {
		fields = n.fields(t)
	}
	seen := map[string]bool{}
	for n.More() {
		token, err := n.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		if err := whole(name); err != nil {
			return err
		}
		if seen[name] {
			return fmt.Errorf("field %q stands twice", name)
		}
		seen[name] = true
		of := element(t, reflect.Map)
		if fields != nil {
			var ok bool
			of, ok = fields[name]
			if written := meant(name, fields); !ok && (!n.newer || written != "") {
				if written == "" {
					written = known(fields)
				}
				return fmt.Errorf("unknown field %q%s", name, written)
			}
		}
		if err := n.value(of); err != nil {
			return err
		}
	}
	return nil
}

// whole refuses text with the sign that stands for what could not be read, such
// as half of a surrogate pair.
func whole(s string) error {
	if strings.ContainsRune(s, utf8.RuneError) {
		return fmt.Errorf("%.40q holds what is no text", s)
	}
	return nil
}

// meant says which field has that name but for its case.
func meant(name string, fields map[string]reflect.Type) string {
	for field := range fields {
		if strings.EqualFold(field, name) {
			return fmt.Sprintf("; it is written %q", field)
		}
	}
	return ""
}

// maxKnown is how many fields are listed to who has given another.
const maxKnown = 16

// known says which fields there are.
func known(fields map[string]reflect.Type) string {
	names := slices.Sorted(maps.Keys(fields))
	switch n := len(names); {
	case n == 0:
		return "; there are none here"
	case n > maxKnown:
		return "; is it misspelt?"
	}
	return "; known are " + strings.Join(names, ", ")
}

// fields returns the fields of a struct by their names in JSON.
func (n *nameCheck) fields(t reflect.Type) map[string]reflect.Type {
	if known, ok := n.known[t]; ok {
		return known
	}
	fields := map[string]reflect.Type{}
	n.known[t] = fields
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch inner := plainType(f.Type); {
		case f.Tag.Get("json") == "-":
		case name == "" && f.Anonymous && inner != nil && inner.Kind() == reflect.Struct:
			for name, t := range n.fields(inner) {
				if _, ok := fields[name]; !ok {
					fields[name] = t
				}
			}
		case !f.IsExported():
		case name == "":
			fields[f.Name] = f.Type
		default:
			fields[name] = f.Type
		}
	}
	return fields
}

// plainType returns t without pointers, nil if t reads its JSON itself.
func plainType(t reflect.Type) reflect.Type {
	for t != nil {
		for _, own := range []reflect.Type{reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler]()} {
			if reflect.PointerTo(t).Implements(own) {
				return nil
			}
		}
		if t.Kind() != reflect.Pointer {
			return t
		}
		t = t.Elem()
	}
	return nil
}

// element returns the type of the elements of t if it is of one of those kinds.
func element(t reflect.Type, kinds ...reflect.Kind) reflect.Type {
	for _, k := range kinds {
		if t != nil && t.Kind() == k {
			return t.Elem()
		}
	}
	return nil
}
