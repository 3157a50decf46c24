package debuginfo

import "debug/dwarf"

// maxTypeParameters bounds the type parameters of one type.
const maxTypeParameters = 32

// TypeParameters returns the types that a C++ template or a Rust generic was
// instantiated with, in order; void among them is nil.
func (t *dieType) TypeParameters() []Type {
	core := t.core()
	if core == nil || !isRecord(core.die.tag()) {
		return nil
	}
	var list []Type
	err := core.die.children(func(child *entry) bool {
		if child.tag() != dwarf.TagTemplateTypeParameter {
			return true
		}
		param, err := child.typeOf(core.key.language)
		if err != nil {
			core.info.problem(err)
		}
		list = append(list, param)
		return len(list) < maxTypeParameters
	})
	if err != nil {
		core.info.problem(err)
	}
	return list
}

// Signed reports whether a character or integer type is signed; an
// enumeration is if its underlying type is.
func (t *dieType) Signed() bool {
	core := t.core()
	if core == nil {
		return false
	}
	if core.die.tag() == dwarf.TagEnumerationType {
		if core = core.next(); core != nil {
			core = core.core()
		}
	}
	if core == nil || core.die.tag() != dwarf.TagBaseType {
		return false
	}
	v, _ := core.die.attr(dwarf.AttrEncoding)
	return v.number == ateSigned || v.number == ateSignedChar
}
