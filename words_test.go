package cellway_test

import (
	"go/ast"
	"go/token"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// avoided maps each word, or run of words, that docs/GLOSSARY.md tells us to
// avoid to the word that we use. Words that also have an innocent meaning
// stand here only together with the word that makes them guilty.
var avoided = map[string]string{
	"shard": "cell, or hand", "shards": "cells, or hands", "sharding": "cells, or hands",
	"stamp": "cell", "stamps": "cells",
	"pod": "cell", "pods": "cells",
	"customer": "tenant", "customers": "tenants",
	"org": "tenant", "orgs": "tenants", "organization": "tenant", "organisation": "tenant",
	"slot": "bucket", "slots": "buckets", "vnode": "bucket", "vnodes": "buckets",
	"route table": "map", "routing table": "map", "key table": "map", "hash ring": "map", "routing config": "map",
	"term": "epoch", "terms": "epochs",
	"cell weight": "admit", "admit weight": "admit", "drain weight": "admit",
	"migration": "move", "migrations": "moves", "migrate": "move",
	"tenant lock": "fence", "key lock": "fence",
}

// excepted lists names that use an avoided word and may, with the reason.
var excepted = map[string]string{}

func TestNamesUseTheGlossary(t *testing.T) {
	forEachPackage(t, func(_ string, p listed) {
		fset, files := parse(t, p)
		for _, file := range files {
			forEachName(file, func(pos token.Pos, kind, name string) {
				if _, ok := excepted[name]; ok {
					return
				}
				if word, better := badWord(name); word != "" {
					t.Errorf("%s: %s %s says %q; our word is %s", fset.Position(pos), kind, name, word, better)
				}
			})
		}
	})
}

func TestBadWord(t *testing.T) {
	for name, want := range map[string]string{
		"ShardID": "shard", "cellway_router_shards_total": "shards", "RoutingTable": "routing table",
		"customer_id": "customer", "HTTPSlot": "slot",
		"Timestamp": "", "ShuffleSharding": "", "shuffle_shard": "", "Podium": "", "TableWriter": "", "Origin": "", "LockFile": "",
	} {
		if got, _ := badWord(name); got != want {
			t.Errorf("badWord(%q) = %q, want %q", name, got, want)
		}
	}
}

// badWord returns the first avoided word in name, with the word to use.
func badWord(name string) (word, better string) {
	all := " " + strings.Join(words(name), " ") + " "
	all = strings.NewReplacer(" shuffle shard ", " ", " shuffle sharding ", " ", " shuffle shards ", " ").Replace(all)
	for _, word := range slices.Sorted(maps.Keys(avoided)) {
		if strings.Contains(all, " "+word+" ") {
			return word, avoided[word]
		}
	}
	return "", ""
}

// words splits MixedCase and under_scores into lower-case words.
func words(name string) (all []string) {
	var word []rune
	flush := func() {
		if len(word) > 0 {
			all = append(all, strings.ToLower(string(word)))
		}
		word = nil
	}
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
			continue
		case unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			flush() // fooBar splits before B, HTTPSlot before S
		}
		word = append(word, r)
	}
	flush()
	return all
}

var (
	metricName = regexp.MustCompile(`^cellway_[a-z0-9_]+$`)
	wordName   = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
)

// forEachName calls f for what others see of file: exported identifiers, JSON
// field names, metric names.
func forEachName(file *ast.File, f func(pos token.Pos, kind, name string)) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.IsExported() {
				f(n.Pos(), "func", n.Name.Name)
			}
		case *ast.TypeSpec:
			if n.Name.IsExported() {
				f(n.Pos(), "type", n.Name.Name)
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				if name.IsExported() {
					f(name.Pos(), "name", name.Name)
				}
			}
		case *ast.Field:
			for _, name := range n.Names {
				if name.IsExported() {
					f(name.Pos(), "field", name.Name)
				}
			}
			if n.Tag == nil {
				break
			}
			if tag, err := strconv.Unquote(n.Tag.Value); err == nil {
				name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
				f(n.Tag.Pos(), "JSON field", name)
			}
		case *ast.KeyValueExpr: // prometheus.Opts{Name: "requests_total"}
			key, _ := n.Key.(*ast.Ident)
			value, _ := n.Value.(*ast.BasicLit)
			if key != nil && key.Name == "Name" && value != nil && value.Kind == token.STRING {
				if s, err := strconv.Unquote(value.Value); err == nil && wordName.MatchString(s) {
					f(n.Pos(), "metric", s)
				}
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				if s, err := strconv.Unquote(n.Value); err == nil && metricName.MatchString(s) {
					f(n.Pos(), "metric", s)
				}
			}
		}
		return true
	})
}
