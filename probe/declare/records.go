package declare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"diagnose/image/debuginfo"
)

// recordOf returns how a structure or union is declared here or in an outer scope; nil: it is not.
func (d *Declarations) recordOf(t debuginfo.Type) *record {
	for ; d != nil; d = d.outer {
		if r := d.tags[t]; r != nil {
			return r
		}
	}
	return nil
}

// refer declares a structure or union if that is needed.
func (d *Declarations) refer(t debuginfo.Type) *record {
	if r := d.recordOf(t); r != nil {
		return r
	}
	if len(d.tags) == mostTypes {
		d.fail(fmt.Sprintf("the code needs more than %d types of the program", mostTypes))
	}
	r := &record{tag: fmt.Sprintf("%st%s_%d", own, d.prefix, len(d.tags))}
	if d.err == nil {
		d.tags[t] = r
		d.write("%s %s;\n", keywordOf(t), r.tag)
	}
	return r
}

// define writes the definitions that the objects of a type need. What their pointers lead to is defined later, so that a structure
// that is reached while one is defined can have it inside.
func (d *Declarations) define(t debuginfo.Type, depth int) {
	if t == nil || depth > mostDepth || d.tired() {
		return
	}
	t = debuginfo.Complete(t)
	if t == nil {
		return
	}
	switch t.Kind() {
	case debuginfo.KindPointer:
		d.later(t.Elem())
	case debuginfo.KindArray:
		d.define(t.Elem(), depth+1)
	case debuginfo.KindFunc:
		if p, ok := debuginfo.PrototypeOf(t); ok {
			d.definePrototype(p, depth+1)
		}
	case debuginfo.KindStruct, debuginfo.KindUnion:
		r := d.refer(t)
		if r.defining || r.defined || t.Size() <= 0 || t.Size() > mostSize {
			return
		}
		r.defining = true
		members := d.namedMembers(t, 0)
		d.defineMembers(members, depth)
		r.defined = true
		for _, tag := range append([]string{r.tag}, d.aliases[r.tag]...) {
			d.write("%s", d.body(t, members, tag))
		}
	}
}

// later has a type defined at the end.
func (d *Declarations) later(t debuginfo.Type) {
	if t != nil && len(d.pending) < mostTypes {
		d.pending = append(d.pending, t)
	}
}

// finish defines what pointers lead to.
func (d *Declarations) finish() {
	for len(d.pending) > 0 && d.err == nil {
		t := d.pending[0]
		d.pending = d.pending[1:]
		d.define(t, 0)
	}
}

// member is a member that the code names, or an unnamed one with such members.
type member struct {
	debuginfo.Member
	inside []member
	// written: C can have it.
	written bool
}

func (m *member) bit() int64 { return m.Offset*8 + m.BitOffset }

// bits is the size of the member in bits.
func (m *member) bits() int64 {
	if m.BitSize > 0 {
		return m.BitSize
	}
	return m.Type.Size() * 8
}

// namedMembers returns the members that the code names, in the order of their places. Those of base classes and of members without
// a name are members of the object itself, as in C++ and C11 6.7.2.1.
func (d *Declarations) namedMembers(t debuginfo.Type, depth int) []member {
	var list []member
	seen := map[string]bool{}
	for _, m := range t.Members() {
		if m.Type == nil || depth > mostDepth || d.tired() {
			continue
		}
		core := debuginfo.Complete(m.Type)
		if core == nil {
			continue
		}
		x := member{Member: m}
		isRecord := core.Kind() == debuginfo.KindStruct || core.Kind() == debuginfo.KindUnion
		switch {
		case m.Base || m.Name == "" && isRecord:
			if x.inside = d.namedMembers(core, depth+1); len(x.inside) == 0 {
				continue
			}
			x.Name = ""
		case !d.isWanted(m.Name) || seen[m.Name]:
			continue
		default:
			seen[m.Name] = true
		}
		list = append(list, x)
	}
	slices.SortStableFunc(list, func(a, b member) int { return cmp.Compare(a.bit(), b.bit()) })
	return list
}

// isWanted reports whether the code of this scope or of one inside of it names a member. The names of the file's scope are those of
// all of the code.
func (d *Declarations) isWanted(name string) bool {
	for ; d != nil; d = d.outer {
		if d.names[name] {
			return true
		}
	}
	return false
}

// defineMembers defines what members are made of: first the types of which objects are inside, then those that pointers lead to.
func (d *Declarations) defineMembers(list []member, depth int) {
	for i := range list {
		if len(list[i].inside) > 0 {
			d.defineMembers(list[i].inside, depth+1)
			continue
		}
		d.define(list[i].Type, depth+1)
	}
}

// body writes the definition of a structure or union, and has the compiler compare its layout with the program's. Alignment is 1, and
// the bytes between the members are written down, so nothing depends on rules of layout.
func (d *Declarations) body(t debuginfo.Type, list []member, tag string) string {
	var b strings.Builder
	whole := keywordOf(t) + " " + tag
	fmt.Fprintf(&b, "%s {%s\n} __attribute__((packed));\n_Static_assert(sizeof(%s) == %d, \"\");\n", whole, d.members(t, list), whole, t.Size())
	for i := range list {
		if m := &list[i]; m.written && m.Name != "" && m.BitSize == 0 {
			fmt.Fprintf(&b, "_Static_assert(__builtin_offsetof(%s, %s) == %d, \"\");\n", whole, m.Name, m.Offset)
		}
	}
	return b.String()
}

// members writes the members of a structure or union with the bytes between them.
func (d *Declarations) members(t debuginfo.Type, list []member) string {
	var b strings.Builder
	p := padding{b: &b, made: &d.paddings}
	size := t.Size() * 8
	seen := map[string]bool{}
	for i := range list {
		m := &list[i]
		if t.Kind() == debuginfo.KindUnion {
			p.at = 0
		}
		if m.bit() < p.at || m.bits() <= 0 || m.bit()+m.bits() > size || !d.declarable(m, seen) {
			continue
		}
		if t.Kind() == debuginfo.KindUnion && m.bit() != 0 {
			continue
		}
		p.to(m.bit(), m.BitSize > 0)
		switch {
		case len(m.inside) > 0:
			core := debuginfo.Complete(m.Type)
			fmt.Fprintf(&b, "\n%s {%s\n} __attribute__((packed));", keywordOf(core), d.members(core, m.inside))
		case m.BitSize > 0:
			fmt.Fprintf(&b, "\n%s : %d;", d.declare(m.Name, m.Type, 0), m.BitSize)
		default:
			b.WriteString(d.named(m))
		}
		p.at, m.written = m.bit()+m.bits(), true
	}
	if t.Kind() == debuginfo.KindUnion {
		p.at = 0
	}
	p.to(size, false)
	return b.String()
}

// named writes a member under its name and its aliases.
func (d *Declarations) named(m *member) string {
	text := fmt.Sprintf("\n%s;", d.declare(m.Name, m.Type, 0))
	if len(d.aliases[m.Name]) == 0 {
		return text
	}
	for _, alias := range d.aliases[m.Name] {
		text += " " + d.declare(alias, m.Type, 0) + ";"
	}
	return "\nunion {" + text + " } __attribute__((packed));"
}

// declarable reports whether C can have the member where it is, and notes the names that it brings.
func (d *Declarations) declarable(m *member, seen map[string]bool) bool {
	if len(m.inside) > 0 {
		for i := range m.inside {
			if len(m.inside[i].inside) == 0 && seen[m.inside[i].Name] {
				return false
			}
		}
		for i := range m.inside {
			seen[m.inside[i].Name] = m.inside[i].Name != ""
		}
		return m.BitSize == 0 && m.BitOffset == 0
	}
	core := debuginfo.Complete(m.Type)
	if core == nil || seen[m.Name] || m.BitSize > 0 && (m.BitSize > core.Size()*8 || scalar(core) == "" || core.Kind() == debuginfo.KindFloat || core.Kind() == debuginfo.KindComplex) {
		return false
	}
	if r := d.recordOf(core); r != nil && !r.defined {
		return false // it has itself inside, or its size is not known
	}
	seen[m.Name] = true
	return isSized(m.Type)
}

// padding writes the bytes and bits between members.
type padding struct {
	b    *strings.Builder
	at   int64 // in bits
	made *int  // counts the members of all
}

// to fills up to a bit. A bit field begins there if bits is set; other members begin at a byte.
func (p *padding) to(bit int64, bits bool) {
	if n := min(bit, (p.at+7)&^7) - p.at; n > 0 {
		if bits || p.at%8 != 0 {
			fmt.Fprintf(p.b, "\nunsigned char : %d;", n)
		}
		p.at += n
	}
	if n := (bit - p.at) / 8; n > 0 {
		fmt.Fprintf(p.b, "\n%s %sp%d[%d];", opaque, own, *p.made, n)
		*p.made++
		p.at += n * 8
	}
	if n := bit - p.at; n > 0 {
		fmt.Fprintf(p.b, "\nunsigned char : %d;", n)
		p.at = bit
	}
}
