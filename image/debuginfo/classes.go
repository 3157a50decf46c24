package debuginfo

import "debug/dwarf"

// Class is a class of C++ with a name.
type Class struct {
	// Name is qualified. Ancestors are the names of its base classes and of theirs, virtual ones among them.
	Name      string
	Ancestors []string
	// Polymorphic: it or an ancestor has a virtual function.
	Polymorphic bool
	// Complete: the DWARF has the class and all ancestors, and not only declarations.
	Complete bool
}

// mostAncestors bounds the bases of a class, and the bases of these.
const mostAncestors = 256

// ClassOf returns the class that a type is, without typedefs and qualifiers; false: it is none, or it has no name.
func ClassOf(t Type) (Class, bool) {
	d, ok := t.(*dieType)
	if !ok || d == nil {
		return Class{}, false
	}
	core := d.core()
	if core == nil {
		return Class{}, false
	}
	name, ok := core.className()
	if !ok {
		return Class{}, false
	}
	c := Class{Name: name, Complete: true}
	core.addClass(&c)
	return c, true
}

func (t *dieType) className() (string, bool) {
	switch t.die.tag() {
	case dwarf.TagStructType, dwarf.TagClassType:
	default:
		return "", false
	}
	name, err := t.die.displayName(t.key.language)
	return name, err == nil && name != ""
}

// addClass adds what a class declares, and its bases.
func (t *dieType) addClass(c *Class) {
	if t.die.flag(dwarf.AttrDeclaration) {
		c.Complete = false
		return
	}
	var bases []*dieType
	err := t.die.children(func(child *entry) bool {
		switch child.tag() {
		case dwarf.TagInheritance:
			base, err := child.dieTypeOf(t.key.language)
			if err != nil || base == nil {
				c.Complete = false
				break
			}
			bases = append(bases, base)
		case dwarf.TagSubprogram:
			c.Polymorphic = c.Polymorphic || child.isVirtual()
		}
		return true
	})
	if err != nil {
		t.info.problem(err)
		c.Complete = false
	}
	for _, base := range bases {
		core := base.core()
		if core == nil || len(c.Ancestors) >= mostAncestors {
			c.Complete = false
			return
		}
		name, ok := core.className()
		if !ok {
			c.Complete = false
			continue
		}
		c.Ancestors = append(c.Ancestors, name)
		core.addClass(c)
	}
}

func (e *entry) isVirtual() bool {
	v, ok := e.attr(dwarf.AttrVirtuality)
	return ok && v.number != 0
}

// Virtual is a virtual function that a class declares.
type Virtual struct {
	// Name is the function's own.
	Name  string
	Class Class
}

// mostVirtuals bounds the functions of one slot.
const mostVirtuals = 64

// VirtualsAt returns the virtual functions with an index in the virtual table (DW_AT_vtable_elem_location, DWARF 5 section
// 5.7.8) that the classes in the unit covering pc declare. Classes of type units are not among them.
func (i *Info) VirtualsAt(pc uint64, slot int) ([]Virtual, error) {
	p, err := i.placeAt(pc)
	if err != nil || p.unit == nil {
		return nil, err
	}
	w, err := p.unit.walk(p.unit.first)
	if err != nil {
		return nil, err
	}
	language := p.unit.describe().Language
	var list []Virtual
	var e entry
	for w.next(&e) && len(list) < mostVirtuals {
		if e.abbrev == nil || e.tag() != dwarf.TagClassType && e.tag() != dwarf.TagStructType || e.flag(dwarf.AttrDeclaration) {
			continue
		}
		names, err := e.virtualsIn(slot)
		if err != nil {
			return nil, err
		}
		if names == nil {
			continue
		}
		if c, ok := ClassOf(i.typeOf(e.unit, e.off, language)); ok {
			for _, name := range names {
				list = append(list, Virtual{name, c})
			}
		}
	}
	return list, w.err
}

// virtualsIn are the names of a class's functions with an index.
func (e *entry) virtualsIn(slot int) (names []string, err error) {
	childErr := e.children(func(child *entry) bool {
		if child.tag() != dwarf.TagSubprogram || !child.isVirtual() {
			return true
		}
		v, ok := child.attr(dwarf.AttrVtableElemLoc)
		if !ok || !v.isSlot(slot) {
			return true
		}
		var name string
		if name, err = child.name(); err == nil && name != "" {
			names = append(names, name)
		}
		return err == nil
	})
	if err == nil {
		err = childErr
	}
	return names, err
}

// isSlot reports whether a location is DW_OP_constu of an index, which is what compilers write.
func (v value) isSlot(slot int) bool {
	if len(v.block) < 2 || v.block[0] != opConstu {
		return false
	}
	r := reader{data: v.block, pos: 1}
	n := r.uleb()
	return !r.bad && r.left() == 0 && n == uint64(slot)
}
