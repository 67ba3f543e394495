package main

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseContexts reads the file of contexts. Its errors name the line, and say in words
// of the file what stands there and what belongs there.
func parseContexts(text []byte) (c contexts, err error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return c, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(doc.Content) == 0 {
		return c, nil // nothing, or comments alone
	}
	err = members(doc.Content[0], "the file", map[string]func(*yaml.Node) error{
		"current": wordInto(&c.Current, "current"),
		"contexts": func(n *yaml.Node) error {
			c.Contexts = map[string]connection{}
			return eachMember(n, "contexts", func(name string, of *yaml.Node) error {
				var k connection
				err := members(of, "context "+name, map[string]func(*yaml.Node) error{
					"url":        wordInto(&k.URL, "url"),
					"token_file": wordInto(&k.TokenFile, "token_file"),
					"ca_file":    wordInto(&k.CAFile, "ca_file"),
					"cert_file":  wordInto(&k.CertFile, "cert_file"),
					"key_file":   wordInto(&k.KeyFile, "key_file"),
				})
				c.Contexts[name] = k
				return err
			})
		},
	})
	return c, err
}

// eachMember calls f for what n, which has that name, holds by name; null is nothing.
func eachMember(n *yaml.Node, name string, f func(name string, of *yaml.Node) error) error {
	if n = target(n); n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: %s must be names with a colon and what belongs to them, not %s", n.Line, name, form(n))
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := target(n.Content[i])
		if key.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: a name in %s is %s; it must be a word", key.Line, name, form(key))
		}
		if seen[key.Value] {
			return fmt.Errorf("line %d: %s stands twice in %s", key.Line, key.Value, name)
		}
		seen[key.Value] = true
		if err := f(key.Value, n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// members is eachMember where the names are known.
func members(n *yaml.Node, name string, known map[string]func(*yaml.Node) error) error {
	return eachMember(n, name, func(field string, of *yaml.Node) error {
		take, ok := known[field]
		if !ok {
			return fmt.Errorf("line %d: %s has no %s; known are %s", of.Line, name, field, strings.Join(sortedKeys(known), ", "))
		}
		return take(of)
	})
}

// wordInto takes a word, or a few; null is none.
func wordInto(to *string, name string) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		switch n = target(n); {
		case n.Tag == "!!null":
		case n.Kind == yaml.ScalarNode:
			*to = n.Value
		default:
			return fmt.Errorf("line %d: %s must be a text, not %s", n.Line, name, form(n))
		}
		return nil
	}
}

// target is what n stands for.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// form says what n is.
func form(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "names with colons"
	case yaml.SequenceNode:
		return "a list"
	}
	return fmt.Sprintf("%q", n.Value)
}
