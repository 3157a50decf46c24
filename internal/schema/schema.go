// Package schema makes JSON Schemas of the documents that the tool writes, from their Go types and
// doc comments, so that the schemas are always current.
package schema

import (
	"encoding/json"
	"go/ast"
	"go/constant"
	"go/types"
	"reflect"
	"regexp"
	"strings"

	"github.com/invopop/jsonschema"
	"golang.org/x/tools/go/packages"

	"diagnose/evidence"
)

// Document is one that the tool writes.
type Document struct {
	// Value is a pointer to its type.
	Value any
	// Name is the schema's file without its version: "case".
	Name, Title, Version string
	// Forms are the schemas of types whose JSON differs from their fields.
	Forms map[reflect.Type]*jsonschema.Schema
}

// Text is the schema as it is checked in.
func (d *Documentation) Text(doc Document) ([]byte, error) {
	text, err := json.MarshalIndent(d.Schema(doc), "", "  ")
	return append(text, '\n'), err
}

// Schema describes a document.
func (d *Documentation) Schema(doc Document) *jsonschema.Schema {
	r := jsonschema.Reflector{
		Anonymous:      true,
		ExpandedStruct: true,
		LookupComment:  d.comment,
		Mapper: func(t reflect.Type) *jsonschema.Schema {
			if form := doc.Forms[t]; form != nil {
				return form
			}
			return d.enumeration(t)
		},
	}
	s := r.Reflect(doc.Value)
	relaxEmbedded(s, reflect.TypeOf(doc.Value), map[reflect.Type]bool{})
	major, _, _ := strings.Cut(doc.Version, ".")
	s.ID = jsonschema.ID("urn:diagnose:schema:" + doc.Name + "-" + major)
	s.Title = "diagnose " + doc.Title + ", schema version " + doc.Version
	return s
}

// Documentation holds the doc comments of types and fields and the values of
// the named string types, by "package.Type" and "package.Type.Field".
type Documentation struct {
	comments map[string]string
	values   map[string][]any
}

// Load reads the comments of packages.
func Load(patterns ...string) (*Documentation, error) {
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedFiles,
	}, patterns...)
	if err != nil {
		return nil, err
	}
	docs := &Documentation{map[string]string{}, map[string][]any{}}
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

func (d *Documentation) visit(pkg string, n ast.Node) {
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

// fields stores each field's comment. A field without a comment is described by the last comment
// before it, if that contains the field's name.
func (d *Documentation) fields(key string, list []*ast.Field) {
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

func (d *Documentation) constants(pkg string, scope *types.Scope) {
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
func (d *Documentation) comment(t reflect.Type, field string) string {
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
	if n := len(f.Index) - 1; n > 0 { // of an embedded struct
		from := t.FieldByIndex(f.Index[:n]).Type
		return d.comment(from, field)
	}
	for f.Type.Kind() == reflect.Pointer || f.Type.Kind() == reflect.Slice {
		f.Type = f.Type.Elem()
	}
	return d.comments[f.Type.PkgPath()+"."+f.Type.Name()]
}

// enumeration maps addresses to their text form and named strings to the list
// of their constants.
func (d *Documentation) enumeration(t reflect.Type) *jsonschema.Schema {
	if t == reflect.TypeFor[evidence.Addr]() {
		return &jsonschema.Schema{Type: "string", Pattern: "^0x[0-9a-f]{1,16}$", Description: d.comment(t, "")}
	}
	values := d.values[t.PkgPath()+"."+t.Name()]
	if t.Kind() != reflect.String || values == nil {
		return nil
	}
	return &jsonschema.Schema{Type: "string", Enum: values, Description: d.comment(t, "")}
}
