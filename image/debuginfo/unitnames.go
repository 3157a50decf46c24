package debuginfo

import (
	"debug/dwarf"
	"strings"
)

// UnitVariable returns the variable of a name that the unit covering pc declares outside of all
// functions: a global, a variable of the file, of a namespace or of a class. The name is qualified
// in C++ and Rust.
func (i *Info) UnitVariable(name string, pc uint64) (v Variable, ok bool, err error) {
	last := unqualified(name)
	err = i.outsideFunctions(pc, func(e *entry) bool {
		if e.tag() != dwarf.TagVariable {
			return false
		}
		if own, err := e.name(); err != nil || own != last {
			return false
		}
		found, known, err := e.global()
		if err != nil || !known || found.Name != name {
			return false
		}
		v, ok = found, true
		return true
	})
	return v, ok, err
}

// Enumerator returns the enumeration and the value of an enumerator that the unit covering pc
// declares outside of all functions. It may be qualified by its enumeration, or by the scope of it.
func (i *Info) Enumerator(name string, pc uint64) (t Type, value int64, ok bool, err error) {
	last := unqualified(name)
	var of entry
	err = i.outsideFunctions(pc, func(e *entry) bool {
		switch e.tag() {
		case dwarf.TagEnumerationType:
			of = *e
		case dwarf.TagEnumerator:
			constant, has := e.attr(dwarf.AttrConstValue)
			if own, err := e.name(); err != nil || own != last || !has || of.unit == nil || !of.names(name) {
				return false
			}
			t, value, ok = i.typeOf(of.unit, of.off, of.unit.describe().Language), constant.signed(), true
		}
		return ok
	})
	return t, value, ok, err
}

// names reports whether a name may stand for an enumerator of the enumeration.
func (e *entry) names(enumerator string) bool {
	scope := strings.TrimSuffix(strings.TrimSuffix(enumerator, unqualified(enumerator)), "::")
	if scope == "" {
		return true
	}
	own, err := e.displayName(e.unit.describe().Language)
	return err == nil && (own == scope || strings.HasPrefix(own, scope+"::") && unqualified(own) == own[len(scope)+2:])
}

// outsideFunctions calls accept with the DIEs of the unit covering pc that are in no function,
// until it returns true.
func (i *Info) outsideFunctions(pc uint64, accept func(*entry) bool) error {
	p, err := i.placeAt(pc)
	if err != nil || p.unit == nil {
		return err
	}
	w, err := p.unit.walk(p.unit.first)
	if err != nil {
		return err
	}
	var e entry
	for w.next(&e) {
		if e.abbrev == nil {
			continue
		}
		if e.tag() == dwarf.TagSubprogram || e.tag() == dwarf.TagInlinedSubroutine {
			if !w.skipChildren(&e) {
				break
			}
			continue
		}
		if kept := e; accept(&kept) {
			return nil
		}
	}
	return w.err
}
