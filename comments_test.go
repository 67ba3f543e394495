package cellway_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A package whose first sentence needs "and" is two packages.
func TestPackageCommentSaysOneThing(t *testing.T) {
	and := regexp.MustCompile(`(?i)\band\b`)
	forEachPackage(t, func(name string, p listed) {
		want := "Package " + p.Name + " "
		if p.Name == "main" {
			want = "Command " + p.ImportPath[strings.LastIndexByte(p.ImportPath, '/')+1:] + " "
		}
		// Doc is the first sentence of the package comment, as go list cuts it.
		switch {
		case p.Doc == "":
			t.Errorf("%s has no package comment", p.ImportPath)
		case !strings.HasPrefix(p.Doc, want):
			t.Errorf("%s: its comment begins %q, want %q", p.ImportPath, p.Doc, want+"…")
		case and.MatchString(p.Doc):
			t.Errorf("%s: the first sentence has an \"and\": %q", p.ImportPath, p.Doc)
		}
	})
}

// selfExplained are methods whose contract is that of a well-known interface.
var selfExplained = list("Error", "Unwrap", "Is", "As", "String", "Len", "Less", "Swap",
	"MarshalText", "UnmarshalText", "MarshalJSON", "UnmarshalJSON", "MarshalYAML", "UnmarshalYAML",
	"ServeHTTP", "LogValue", "Set", "Type")

func TestExportedNamesHaveComments(t *testing.T) {
	forEachPackage(t, func(_ string, p listed) {
		if p.Name == "main" {
			return // nobody can import it
		}
		fset, files := parse(t, p)
		for _, file := range files {
			for _, id := range undocumented(file) {
				t.Errorf("%s: %s has no comment", fset.Position(id.Pos()), id.Name)
			}
		}
	})
}

// undocumented returns the exported names declared in file that have no
// comment of their own, beside them, or over their group.
func undocumented(file *ast.File) (bare []*ast.Ident) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			known := d.Recv != nil && (!ast.IsExported(receiver(d)) || slices.Contains(selfExplained, d.Name.Name))
			if d.Name.IsExported() && d.Doc == nil && !known {
				bare = append(bare, d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() && s.Doc == nil && (d.Doc == nil || d.Lparen.IsValid()) {
						bare = append(bare, s.Name)
					}
				case *ast.ValueSpec:
					if d.Tok == token.IMPORT || s.Doc != nil || s.Comment != nil || d.Doc != nil {
						continue
					}
					for _, name := range s.Names {
						if name.IsExported() {
							bare = append(bare, name)
						}
					}
				}
			}
		}
	}
	return bare
}

// receiver returns the name of the type that method d belongs to.
func receiver(d *ast.FuncDecl) string {
	e := d.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}
