package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// tree is what the measures are made of: the Go files of a module or a folder, without tests,
// generated files and testdata.
type tree struct {
	module     string         // import path of its root; empty: not a module
	files      []int          // lines
	functions  []int          // lines
	methods    map[string]int // by folder and receiver type
	packages   map[string]int // files by folder
	exported   int            // functions, methods and types
	documented int            // of those
	imports    map[[2]string]bool
}

type measure struct{ name, value string }

type column []measure

func readTree(dir string) (*tree, error) {
	t := &tree{methods: map[string]int{}, packages: map[string]int{}, imports: map[[2]string]bool{}}
	if text, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil {
		first, _, _ := strings.Cut(string(text), "\n")
		t.module = strings.TrimSpace(strings.TrimPrefix(first, "module"))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := e.Name()
		if e.IsDir() {
			if p != dir && (name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		folder, err := filepath.Rel(dir, filepath.Dir(p))
		if err != nil {
			return err
		}
		return t.addFile(p, filepath.ToSlash(folder))
	})
	if err == nil && len(t.files) == 0 {
		err = fmt.Errorf("%s has no Go files", dir)
	}
	return t, err
}

func (t *tree) addFile(file, folder string) error {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if ast.IsGenerated(f) {
		return nil
	}
	line := func(p token.Pos) int { return set.Position(p).Line }
	t.files = append(t.files, set.File(f.FileStart).LineCount())
	t.packages[folder]++
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			t.functions = append(t.functions, line(d.End())-line(d.Pos())+1)
			t.count(d.Name.IsExported(), d.Doc != nil)
			if d.Recv != nil {
				t.methods[path.Join(folder, receiver(d.Recv.List[0].Type))]++
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					t.count(s.Name.IsExported(), d.Doc != nil || s.Doc != nil)
				}
			}
		}
	}
	for _, i := range f.Imports {
		if p, err := strconv.Unquote(i.Path.Value); err == nil && t.module != "" {
			if other, ours := strings.CutPrefix(p, t.module+"/"); ours && top(other) != top(folder) {
				t.imports[[2]string{top(folder), top(other)}] = true
			}
		}
	}
	return nil
}

func (t *tree) count(exported, documented bool) {
	if exported {
		t.exported++
		if documented {
			t.documented++
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

func top(folder string) string {
	first, _, _ := strings.Cut(folder, "/")
	return first
}

func (t *tree) column() column {
	most, mostOf := 0, ""
	for name, n := range t.methods {
		if n > most || n == most && name < mostOf {
			most, mostOf = n, name
		}
	}
	large := slices.Max(slices.Collect(maps.Values(t.packages)))
	folders := map[string]bool{}
	for folder := range t.packages {
		folders[top(folder)] = true
	}
	delete(folders, ".")
	mutual := 0
	for pair := range t.imports {
		if pair[0] < pair[1] && t.imports[[2]string{pair[1], pair[0]}] {
			mutual++
		}
	}
	return column{
		{"files", strconv.Itoa(len(t.files))},
		{"lines", strconv.Itoa(sum(t.files))},
		{"lines of a file: median / 90 % / most", quantiles(t.files)},
		{"lines of a function: median / 90 % / most", quantiles(t.functions)},
		{"functions over 60 lines", percent(over(t.functions, 60), len(t.functions))},
		{"types with over 40 methods", strconv.Itoa(over(slices.Collect(maps.Values(t.methods)), 40))},
		{"most methods of a type", fmt.Sprintf("%d (%s)", most, path.Base(mostOf))},
		{"packages", strconv.Itoa(len(t.packages))},
		{"packages of over 25 files", strconv.Itoa(over(slices.Collect(maps.Values(t.packages)), 25))},
		{"most files of a package", strconv.Itoa(large)},
		{"top folders with Go code", strconv.Itoa(len(folders))},
		{"pairs of top folders that import each other", strconv.Itoa(mutual)},
		{"exported names with a comment", percent(t.documented, t.exported)},
	}
}

func sum(list []int) int {
	n := 0
	for _, x := range list {
		n += x
	}
	return n
}

func over(list []int, limit int) int {
	n := 0
	for _, x := range list {
		if x > limit {
			n++
		}
	}
	return n
}

func percent(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(of))
}

func quantiles(list []int) string {
	s := slices.Sorted(slices.Values(list))
	return fmt.Sprintf("%d / %d / %d", s[len(s)/2], s[len(s)*9/10], s[len(s)-1])
}
