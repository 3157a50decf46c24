package value

import (
	"fmt"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
)

// namer names addresses; *image.Process is one.
type namer interface {
	SymbolAt(addr evidence.Addr) (image.Symbol, bool)
}

// formatter formats one variable.
type formatter struct {
	memory image.Memory
	names  namer
	opts   Options
	// left is how many values may still be formatted.
	left int
}

func newFormatter(m image.Memory, opts Options) *formatter {
	opts = opts.withDefaults()
	names, _ := m.(namer)
	return &formatter{memory: m, names: names, opts: opts, left: opts.Values}
}

// top formats a variable: like value, but a pointer to a structure shows the
// structure, and any pointer whether what it points to can be read.
func (w *formatter) top(o object, t debuginfo.Type) evidence.Value {
	v := w.value(o, t, 0)
	if w.opts.Shallow {
		return v
	}
	elem := t.Elem()
	if t.Kind() != debuginfo.KindPointer || v.Address == nil || *v.Address == 0 || t.Reference() || elem == nil {
		return v
	}
	switch elem.Kind() {
	case debuginfo.KindChar, debuginfo.KindFunc, debuginfo.KindVoid, debuginfo.KindUnknown:
		return v
	}
	target := w.value(object{source: memorySource{w.memory, *v.Address}}, elem, 0)
	switch {
	case target.Unavailable != "":
		v.Text += " (" + target.Why() + ")"
	case !aggregate(elem):
	case len(target.Fields) == 0 && target.Text != "":
		v.Fields = []evidence.Variable{{Name: "*", Type: elem.Name(), Value: target}}
	default:
		v.Fields, v.Elided = target.Fields, target.Elided
	}
	return v
}

func aggregate(t debuginfo.Type) bool {
	switch t.Kind() {
	case debuginfo.KindStruct, debuginfo.KindUnion:
		return true
	}
	return false
}

// value formats the object o of type t. depth counts the levels above it.
func (w *formatter) value(o object, t debuginfo.Type, depth int) evidence.Value {
	if t == nil {
		return evidence.NoValue("its type is not known")
	}
	if w.left <= 0 {
		return evidence.NoValueBecause("not shown", "the variable has too many parts")
	}
	w.left--
	switch t.Kind() {
	case debuginfo.KindStruct, debuginfo.KindUnion:
		return w.structure(o, t, depth)
	case debuginfo.KindArray:
		return w.array(o, t.Elem(), t.Count(), depth)
	case debuginfo.KindPointer:
		return w.pointer(o, t, depth)
	case debuginfo.KindFunc:
		if addr, ok := o.address(); ok {
			return evidence.Value{Text: addr.String() + w.symbol(addr), Address: &addr}
		}
	}
	size := t.Size()
	if size == 0 && t.Name() == "()" {
		return evidence.Value{Text: "()"} // Rust's unit
	}
	if size <= 0 || size > maxScalar {
		return evidence.NoValue(fmt.Sprintf("a %s of %d bytes", describe(t), size))
	}
	data, err := o.read(size)
	if err != nil {
		return missing(err)
	}
	return w.scalar(data, t)
}

func describe(t debuginfo.Type) string {
	if name := t.Name(); name != "" {
		return name
	}
	return "value"
}

// short is the text of a value inside an aggregate's short form.
func short(v evidence.Value) string {
	if v.Unavailable != "" {
		return "<" + v.Why() + ">"
	}
	return v.Text
}

// summary joins parts into "{a, b}" of at most the allowed length.
func (w *formatter) summary(parts []string, elided bool) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, part := range parts {
		if i > 0 {
			b.WriteString(", ")
		}
		if b.Len()+len(part) > w.opts.TextBytes {
			elided = false
			b.WriteString("...")
			break
		}
		b.WriteString(part)
	}
	if elided {
		if len(parts) > 0 {
			b.WriteString(", ")
		}
		b.WriteString("...")
	}
	b.WriteByte('}')
	return b.String()
}

// symbol is " <name+0x10>" for an address that has one, with a space before.
func (w *formatter) symbol(addr evidence.Addr) string {
	if w.names == nil || addr == 0 {
		return ""
	}
	s, ok := w.names.SymbolAt(addr)
	if !ok || s.Name == "" || addr < s.Addr {
		return ""
	}
	if offset := uint64(addr - s.Addr); offset != 0 {
		return fmt.Sprintf(" <%s+%d>", s.Name, offset)
	}
	return " <" + s.Name + ">"
}
