// Command schemagen writes the JSON Schemas of the documents from the Go
// types and their doc comments, so that the schemas cannot lag behind them.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"os"
	"reflect"
	"regexp"
	"strings"

	"github.com/invopop/jsonschema"
	"golang.org/x/tools/go/packages"

	"diagnose/evidence"
	"diagnose/reports"
)

func main() {
	out := flag.String("out", "", "file to write; standard output if empty")
	name := flag.String("document", "case", "document to describe: case or heap")
	flag.Parse()
	if err := run(*name, *out); err != nil {
		fmt.Fprintln(os.Stderr, "schemagen:", err)
		os.Exit(1)
	}
}

// document is one of the documents that reports writes.
type document struct {
	value          any
	title, version string
}

var documents = map[string]document{
	"case": {&reports.Document{}, "report", reports.SchemaVersion},
	"heap": {&reports.HeapDocument{}, "summary of a heap", reports.HeapSchemaVersion},
}

func run(name, out string) error {
	if _, ok := documents[name]; !ok {
		return fmt.Errorf("no document %q", name)
	}
	docs, err := load("diagnose/evidence", "diagnose/reports")
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(schema(docs, name), "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if out == "" {
		_, err = os.Stdout.Write(text)
		return err
	}
	return os.WriteFile(out, text, 0o644)
}

func schema(docs *documentation, name string) *jsonschema.Schema {
	d := documents[name]
	r := jsonschema.Reflector{
		Anonymous:      true,
		ExpandedStruct: true,
		LookupComment:  docs.comment,
		Mapper:         docs.enumeration,
	}
	s := r.Reflect(d.value)
	s.ID = jsonschema.ID("urn:diagnose:schema:" + name + "-1")
	s.Title = "diagnose " + d.title + ", schema version " + d.version
	return s
}

// documentation holds the doc comments of types and fields and the values of
// the named string types, by "package.Type" and "package.Type.Field".
type documentation struct {
	comments map[string]string
	values   map[string][]any
}

func load(patterns ...string) (*documentation, error) {
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedFiles,
	}, patterns...)
	if err != nil {
		return nil, err
	}
	docs := &documentation{map[string]string{}, map[string][]any{}}
	for _, p := range pkgs {
		if len(p.Errors) > 0 {
			return nil, p.Errors[0]
		}
		for _, f := range p.Syntax {
			ast.Inspect(f, func(n ast.Node) bool { docs.visit(p.PkgPath, n); return true })
		}
		docs.constants(p.PkgPath, p.Types.Scope())
	}
	return docs, nil
}

func (d *documentation) visit(pkg string, n ast.Node) {
	decl, ok := n.(*ast.GenDecl)
	if !ok {
		return
	}
	for _, s := range decl.Specs {
		spec, ok := s.(*ast.TypeSpec)
		if !ok {
			continue
		}
		key := pkg + "." + spec.Name.Name
		d.comments[key] = flat(decl.Doc.Text())
		body, ok := spec.Type.(*ast.StructType)
		if !ok {
			continue
		}
		d.fields(key, body.Fields.List)
	}
}

// fields keeps each field's comment. One that has none is described by the
// last comment before it if that speaks of it by its name.
func (d *documentation) fields(key string, list []*ast.Field) {
	last := ""
	for _, field := range list {
		text := flat(field.Doc.Text() + field.Comment.Text())
		if text != "" {
			last = text
		}
		for _, name := range field.Names {
			spoken := regexp.MustCompile(`\b` + name.Name + `\b`)
			if text == "" && spoken.MatchString(last) {
				d.comments[key+"."+name.Name] = last
				continue
			}
			d.comments[key+"."+name.Name] = text
		}
	}
}

func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

func (d *documentation) constants(pkg string, scope *types.Scope) {
	for _, name := range scope.Names() {
		c, ok := scope.Lookup(name).(*types.Const)
		if !ok {
			continue
		}
		named, ok := c.Type().(*types.Named)
		if !ok || c.Val().Kind() != constant.String {
			continue
		}
		key := pkg + "." + named.Obj().Name()
		d.values[key] = append(d.values[key], constant.StringVal(c.Val()))
	}
}

// comment returns the comment of a type or of one of its fields, which is
// that of the field's type if the field has none.
func (d *documentation) comment(t reflect.Type, field string) string {
	key := t.PkgPath() + "." + t.Name()
	if field == "" {
		return d.comments[key]
	}
	if text := d.comments[key+"."+field]; text != "" {
		return text
	}
	f, ok := t.FieldByName(field)
	if !ok {
		return ""
	}
	for f.Type.Kind() == reflect.Pointer || f.Type.Kind() == reflect.Slice {
		f.Type = f.Type.Elem()
	}
	return d.comments[f.Type.PkgPath()+"."+f.Type.Name()]
}

// enumeration maps addresses to their text form and named strings to the list
// of their constants.
func (d *documentation) enumeration(t reflect.Type) *jsonschema.Schema {
	if t == reflect.TypeFor[evidence.Addr]() {
		return &jsonschema.Schema{Type: "string", Pattern: "^0x[0-9a-f]{1,16}$", Description: d.comment(t, "")}
	}
	values := d.values[t.PkgPath()+"."+t.Name()]
	if t.Kind() != reflect.String || values == nil {
		return nil
	}
	return &jsonschema.Schema{Type: "string", Enum: values, Description: d.comment(t, "")}
}
