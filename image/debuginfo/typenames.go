package debuginfo

import (
	"debug/dwarf"
	"fmt"
	"strings"
)

// maxNameParts bounds the types in one type's name, and maxNameLength its
// length.
const (
	maxNameParts  = 1000
	maxNameLength = 4096
)

// namer counts the parts of a name that is being made.
type namer struct{ parts int }

// Name implements Type.
func (t *dieType) Name() string {
	t.once.Do(func() {
		t.name = t.declare("", &namer{})
		if len(t.name) > maxNameLength {
			t.name = t.name[:maxNameLength] + "..."
		}
	})
	return t.name
}

// declare writes a declaration of inner with the type, in C's syntax, which may
// put inner in the middle: "int (*inner)[4]".
func (t *dieType) declare(inner string, n *namer) string {
	if t == nil {
		return spaced("void", inner)
	}
	if n.parts++; n.parts > maxNameParts || len(inner) > maxNameLength {
		return spaced("...", inner)
	}
	if name := t.ownName(); name != "" {
		return spaced(name, inner)
	}
	next := t.next()
	switch t.die.tag() {
	case dwarf.TagPointerType:
		return next.declarePointer("*", inner, n)
	case dwarf.TagReferenceType:
		return next.declarePointer("&", inner, n)
	case dwarf.TagRvalueReferenceType:
		return next.declarePointer("&&", inner, n)
	case dwarf.TagPtrToMemberType:
		return next.declarePointer(t.containerName(n)+"::*", inner, n)
	case dwarf.TagConstType:
		return next.declareQualified("const", inner, n)
	case dwarf.TagVolatileType:
		return next.declareQualified("volatile", inner, n)
	case dwarf.TagRestrictType:
		return next.declareQualified("restrict", inner, n)
	case dwarf.TagAtomicType:
		return next.declareQualified("_Atomic", inner, n)
	case dwarf.TagArrayType:
		return t.declareArray(inner, n)
	case dwarf.TagSubroutineType, dwarf.TagSubprogram:
		return next.declare(inner+t.parameterList(n), n)
	case dwarf.TagSubrangeType, dwarf.TagPackedType, dwarf.TagSharedType, dwarf.TagImmutableType:
		return next.declare(inner, n)
	}
	return spaced("?", inner)
}

func spaced(name, inner string) string {
	if inner == "" {
		return name
	}
	return name + " " + inner
}

// ownName is the DIE's own name, or a substitute for a record without one.
func (t *dieType) ownName() string {
	tag := t.die.tag()
	if tag == dwarf.TagSubprogram || tag == dwarf.TagSubroutineType {
		return ""
	}
	if v, ok := t.die.attr(dwarf.AttrSignature); ok && !t.die.abbrev.has(dwarf.AttrName) {
		if u, off, err := v.ref(); err == nil && (u != t.key.unit || off != t.key.off) {
			key := t.key
			key.unit, key.off = u, off
			if target := t.info.dieTypeOf(key); !target.die.abbrev.has(dwarf.AttrSignature) {
				return target.ownName()
			}
		}
	}
	name, err := t.die.displayName(t.key.language)
	if err != nil {
		t.info.problem(err)
		return "?"
	}
	keyword := ""
	switch tag {
	case dwarf.TagStructType:
		keyword = "struct"
	case dwarf.TagClassType, dwarf.TagInterfaceType:
		keyword = "class"
	case dwarf.TagUnionType:
		keyword = "union"
	case dwarf.TagEnumerationType:
		keyword = "enum"
	}
	switch {
	case keyword == "":
		return name
	case name == "":
		return keyword + " {...}"
	case qualifies(t.key.language):
		return name
	}
	return keyword + " " + name
}

// declarePointer puts a pointer's sign before inner, in parentheses if the
// target's declaration would otherwise bind more tightly.
func (t *dieType) declarePointer(sign, inner string, n *namer) string {
	switch {
	case t != nil && t.ownName() == "" && (t.die.tag() == dwarf.TagArrayType || t.die.tag() == dwarf.TagSubroutineType):
		inner = "(" + sign + inner + ")"
	case inner != "" && isLetter(inner[0]):
		inner = sign + " " + inner
	default:
		inner = sign + inner
	}
	return t.declare(inner, n)
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

// declareQualified puts a qualifier before a name, but after a pointer's sign.
func (t *dieType) declareQualified(qualifier, inner string, n *namer) string {
	if t != nil && t.ownName() == "" {
		switch t.die.tag() {
		case dwarf.TagPointerType, dwarf.TagPtrToMemberType:
			return t.declare(spaced(qualifier, inner), n)
		}
	}
	return qualifier + " " + t.declare(inner, n)
}

func (t *dieType) declareArray(inner string, n *namer) string {
	dims := t.dimensions()
	var b strings.Builder
	b.WriteString(inner)
	if inner != "" && strings.HasSuffix(inner, ")") || inner == "" {
		// as in "char [16]" and "int (*)[4]"
	} else if !strings.HasSuffix(inner, "]") && !strings.HasSuffix(inner, "*") {
		b.WriteByte(' ')
	}
	for _, count := range dims[min(t.key.dimension, len(dims)):] {
		if count < 0 {
			b.WriteString("[]")
		} else {
			fmt.Fprintf(&b, "[%d]", count)
		}
	}
	return t.next().declare(b.String(), n)
}

func (t *dieType) parameterList(n *namer) string {
	var list []string
	err := t.die.children(func(child *entry) bool {
		switch child.tag() {
		case dwarf.TagFormalParameter:
			p, err := child.dieTypeOf(t.key.language)
			if err != nil {
				t.info.problem(err)
			}
			list = append(list, p.declare("", n))
		case dwarf.TagUnspecifiedParameters:
			list = append(list, "...")
		}
		return len(list) < 64
	})
	if err != nil {
		t.info.problem(err)
	}
	if len(list) == 0 && !qualifies(t.key.language) {
		list = []string{"void"}
	}
	return "(" + strings.Join(list, ", ") + ")"
}

func (t *dieType) containerName(n *namer) string {
	v, ok := t.die.attr(dwarf.AttrContainingType)
	if !ok {
		return "?"
	}
	u, off, err := v.ref()
	if err != nil {
		t.info.problem(err)
		return "?"
	}
	return t.info.dieTypeOf(typeKey{unit: u, off: off, language: t.key.language}).declare("", n)
}
