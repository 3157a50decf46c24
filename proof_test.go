package diagnose_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// prover is the only file that may make a proof, and level the one that names the level.
const (
	prover = "evidence/grounds.go"
	level  = "evidence/proof.go"
)

// Nothing but evidence.Cause.Prove makes a cause proved. Other code may only compare with the level.
func TestOnlyProveProves(t *testing.T) {
	files := token.NewFileSet()
	seen := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || path == prover {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		for _, n := range proofs(file, path) {
			t.Errorf("%s: only %s makes a proof", files.Position(n.Pos()), prover)
		}
		seen++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 100 {
		t.Errorf("only %d files were searched", seen)
	}
}

// The search finds each way to make a proof, and no comparison.
func TestProofsAreFound(t *testing.T) {
	for code, made := range map[string]int{
		"func f(c *evidence.Cause) { c.Proof = evidence.Proved }":                                   1,
		"var c = evidence.Cause{Proof: evidence.Proved}":                                            1,
		"var p = evidence.Proved":                                                                   1,
		"func f() evidence.Proof { return evidence.Proved }":                                        1,
		"func f(c *evidence.Cause) { set(c, evidence.Proved) }":                                     1,
		"func f(c *evidence.Cause) { c.Proof = \"proved\" }":                                        1,
		"func f(c *evidence.Cause, s string) { c.Proof = evidence.Proof(s) }":                       1,
		"var g = &evidence.Grounds{}":                                                               1,
		"var g evidence.Grounds":                                                                    1,
		"var g = new(evidence.Grounds)":                                                             1,
		"func f(c, d *evidence.Cause) { c.Grounds = d.Grounds }":                                    1,
		"func f(c *evidence.Cause) bool { return c.Proof == evidence.Proved }":                      0,
		"func f(c *evidence.Cause) bool { return evidence.Proved != c.Proof }":                      0,
		"func f(c *evidence.Cause) { switch c.Proof { case evidence.Proved: } }":                    0,
		"var rank = map[evidence.Proof]int{evidence.Proved: 0}":                                     0,
		"func f(c *evidence.Cause) { c.Proof = evidence.Replayed; if c.Grounds != nil { return } }": 0,
		"func f(c *evidence.Cause) string { return c.Grounds.Claim.Thing }":                         0,
		"type t struct { Grounds *evidence.Grounds `json:\"grounds\"` }":                            1,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "a.go", "package a\n"+code, 0)
		if err != nil {
			t.Fatal(err)
		}
		if found := proofs(file, "a/a.go"); len(found) != made {
			t.Errorf("%d proofs were found in %s", len(found), code)
		}
	}
}

// proofs are the places of a file that make a proof, or could.
func proofs(file *ast.File, path string) (list []ast.Node) {
	own := strings.HasPrefix(path, "evidence/")
	compared := map[ast.Node]bool{}
	add := func(n ast.Node) { list = append(list, n) }
	// is reports whether an expression is a name of package evidence.
	is := func(e ast.Expr, name string) bool {
		if x, ok := e.(*ast.SelectorExpr); ok {
			pkg, ok := x.X.(*ast.Ident)
			return ok && pkg.Name == "evidence" && x.Sel.Name == name
		}
		x, ok := e.(*ast.Ident)
		return ok && own && x.Name == name
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil || compared[n] {
			return false
		}
		switch x := n.(type) {
		case *ast.BinaryExpr:
			if x.Op == token.EQL || x.Op == token.NEQ {
				compared[x.X], compared[x.Y] = is(x.X, "Proved"), is(x.Y, "Proved")
			}
		case *ast.CaseClause:
			for _, e := range x.List {
				compared[e] = is(e, "Proved")
			}
		case *ast.KeyValueExpr:
			compared[x.Key] = is(x.Key, "Proved") || own && x.Key != nil && isName(x.Key, "Grounds")
		case *ast.CompositeLit:
			if own && is(x.Type, "Grounds") {
				add(x)
			}
		case *ast.CallExpr:
			if is(x.Fun, "Proof") {
				add(x)
			}
		case *ast.AssignStmt:
			for _, e := range x.Lhs {
				if s, ok := e.(*ast.SelectorExpr); ok && s.Sel.Name == "Grounds" {
					add(x)
				}
			}
		case *ast.BasicLit:
			if x.Value == `"proved"` && path != level {
				add(x)
			}
		case *ast.SelectorExpr:
			if is(x, "Proved") || is(x, "Grounds") {
				add(x)
				return false
			}
			compared[x.Sel] = true // a field of that name
		case *ast.Ident:
			if is(x, "Proved") && path != level {
				add(x)
			}
		}
		return true
	})
	return list
}

func isName(e ast.Expr, name string) bool {
	x, ok := e.(*ast.Ident)
	return ok && x.Name == name
}
