package debuginfo

import "debug/dwarf"

// Complete returns the definition that a type stands for, without typedefs and qualifiers; nil is void. It is the same value for
// the same definition as long as the cache of types is not full. A type that is not of this package is returned as it is.
func Complete(t Type) Type {
	d, ours := t.(*dieType)
	if !ours {
		return t
	}
	if core := d.core(); core != nil {
		return core
	}
	return nil
}

// Prototype is what a function type says of its functions. Of a function without a prototype the parameters are not known.
type Prototype struct {
	// Result and Parameters have nil for void, and for types that the DWARF does not have.
	Result     Type
	Parameters []Type
	// Open: there may be more parameters.
	Open bool
}

// PrototypeOf reads a function type; ok is false for other types.
func PrototypeOf(t Type) (p Prototype, ok bool) {
	d, ours := Complete(t).(*dieType)
	if !ours || d.Kind() != KindFunc {
		return p, false
	}
	if next := d.next(); next != nil {
		p.Result = next
	}
	err := d.die.children(func(child *entry) bool {
		switch child.tag() {
		case dwarf.TagFormalParameter:
			parameter, err := child.typeOf(d.key.language)
			if err != nil {
				d.info.problem(err)
			}
			p.Parameters = append(p.Parameters, parameter)
		case dwarf.TagUnspecifiedParameters:
			p.Open = true
		}
		return len(p.Parameters) < mostParameters
	})
	if err != nil {
		d.info.problem(err)
	}
	p.Open = p.Open || len(p.Parameters) == mostParameters || len(p.Parameters) == 0 && !d.die.flag(dwarf.AttrPrototyped)
	return p, true
}
