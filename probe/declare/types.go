package declare

import (
	"fmt"
	"strings"

	"diagnose/image/debuginfo"
	"diagnose/image/value"
)

// mostSize bounds the size in bytes of an object that is declared with its type.
const mostSize = 1 << 40

// opaque is a type of which the code can take the address only.
const opaque = "unsigned char"

// declare writes a declaration of inner with a type, in C's syntax.
func (d *Declarations) declare(inner string, t debuginfo.Type, depth int) string {
	if t != nil {
		t = debuginfo.Complete(t)
	}
	switch {
	case t == nil || t.Kind() == debuginfo.KindVoid:
		return spaced("void", inner)
	case depth > mostDepth || d.tired():
		return spaced(opaque, inner)
	}
	switch t.Kind() {
	case debuginfo.KindPointer:
		to := t.Elem()
		if to != nil {
			to = debuginfo.Complete(to)
		}
		if to != nil && (to.Kind() == debuginfo.KindArray || to.Kind() == debuginfo.KindFunc) {
			return d.declare("(*"+inner+")", to, depth+1)
		}
		return d.declare("*"+inner, to, depth+1)
	case debuginfo.KindArray:
		return d.declareArray(inner, t, depth)
	case debuginfo.KindFunc:
		if p, ok := debuginfo.PrototypeOf(t); ok {
			return d.declarePrototype(inner, p, depth+1)
		}
		return spaced("void", inner+"()")
	case debuginfo.KindStruct, debuginfo.KindUnion:
		return spaced(keywordOf(t)+" "+d.refer(t).tag, inner)
	}
	if name := scalar(t); name != "" {
		return spaced(name, inner)
	}
	if size := t.Size(); size > 0 && size <= mostSize {
		return fmt.Sprintf("struct { %s %sbytes[%d]; } %s", opaque, own, size, inner)
	}
	return spaced(opaque, inner)
}

func spaced(name, inner string) string {
	if inner == "" {
		return name
	}
	return name + " " + inner
}

func (d *Declarations) declareArray(inner string, t debuginfo.Type, depth int) string {
	elem := t.Elem()
	count := ""
	if n := t.Count(); n >= 0 && n <= mostSize {
		count = fmt.Sprint(n)
	}
	if elem == nil || !isSized(elem) || t.Size() > mostSize {
		// An array of objects without a size, such as a row whose length is a variable's.
		return fmt.Sprintf("%s %s[]", opaque, inner)
	}
	return d.declare(fmt.Sprintf("%s[%s]", inner, count), elem, depth+1)
}

// isSized reports whether C can have arrays and members of a type.
func isSized(t debuginfo.Type) bool {
	t = debuginfo.Complete(t)
	if t == nil || t.Kind() == debuginfo.KindVoid || t.Kind() == debuginfo.KindFunc {
		return false
	}
	return t.Size() > 0 && t.Size() <= mostSize
}

func (d *Declarations) declarePrototype(inner string, p debuginfo.Prototype, depth int) string {
	var list []string
	for _, t := range p.Parameters {
		list = append(list, d.declare("", t, depth+1))
		if t == nil || !isSized(t) && debuginfo.Complete(t).Kind() != debuginfo.KindFunc {
			return d.declare(inner+"()", p.Result, depth+1) // what it takes is not known
		}
	}
	switch {
	case p.Open && len(list) == 0:
		return d.declare(inner+"()", p.Result, depth+1)
	case p.Open:
		list = append(list, "...")
	case len(list) == 0:
		list = []string{"void"}
	}
	return d.declare(inner+"("+strings.Join(list, ", ")+")", p.Result, depth+1)
}

func (d *Declarations) definePrototype(p debuginfo.Prototype, depth int) {
	for _, t := range append(p.Parameters, p.Result) {
		if t != nil {
			d.define(t, depth+1)
		}
	}
}

func keywordOf(t debuginfo.Type) string {
	if t.Kind() == debuginfo.KindUnion {
		return "union"
	}
	return "struct"
}

// scalar is a type of C with the kind, the size and the sign of a type; empty: there is none.
func scalar(t debuginfo.Type) string {
	size := t.Size()
	switch t.Kind() {
	case debuginfo.KindBool:
		if size == 1 {
			return "_Bool"
		}
		return integer(size, false)
	case debuginfo.KindChar:
		if name := t.Name(); size == 1 && (name == "char" || name == "const char") {
			return "char"
		}
		return integer(size, value.Signed(t) || size == 4 && t.Name() == "wchar_t")
	case debuginfo.KindInt, debuginfo.KindUint, debuginfo.KindEnum:
		return integer(size, value.Signed(t))
	case debuginfo.KindFloat:
		return map[int64]string{4: "float", 8: "double", 16: "long double"}[size]
	case debuginfo.KindComplex:
		return map[int64]string{8: "float _Complex", 16: "double _Complex", 32: "long double _Complex"}[size]
	}
	return ""
}

func integer(size int64, signed bool) string {
	name := map[int64]string{1: "char", 2: "short", 4: "int", 8: "long", 16: "__int128"}[size]
	switch {
	case name == "":
		return ""
	case signed:
		return "signed " + name
	}
	return "unsigned " + name
}
