package debuginfo

import "debug/dwarf"

// Members implements Type.
func (t *dieType) Members() []Member {
	core := t.core()
	if core == nil {
		return nil
	}
	return core.members()
}

func (t *dieType) readMembers() []Member {
	if !isRecord(t.die.tag()) {
		return nil
	}
	return t.membersOf(&t.die)
}

// membersOf lists the members among a DIE's children: those of a record, or
// of a variant.
func (t *dieType) membersOf(die *entry) []Member {
	var list []Member
	err := die.children(func(child *entry) bool {
		switch child.tag() {
		case dwarf.TagMember, dwarf.TagInheritance:
			if m, ok := t.member(child); ok {
				list = append(list, m)
			}
		}
		return true
	})
	if err != nil {
		t.info.problem(err)
	}
	return list
}

// member reads one member; ok is false for static members and those without a
// fixed offset.
func (t *dieType) member(e *entry) (m Member, ok bool) {
	if e.flag(dwarf.AttrExternal) || e.flag(dwarf.AttrDeclaration) {
		return m, false
	}
	var err error
	if m.Name, err = e.name(); err != nil {
		t.info.problem(err)
	}
	if m.Type, err = e.typeOf(t.key.language); err != nil {
		t.info.problem(err)
	}
	if m.Type == nil {
		m.Type = t.unknown()
	}
	m.Base = e.tag() == dwarf.TagInheritance
	if m.Base && m.Name == "" {
		m.Name = m.Type.Name()
	}
	if v, has := e.attr(dwarf.AttrDataMemberLoc); has {
		if m.Offset, ok = v.memberOffset(); !ok {
			return m, false
		}
	}
	m.setBits(e)
	return m, true
}

// memberOffset reads an offset within a record: a constant, or DWARF 2's
// DW_OP_plus_uconst. Anything else depends on the object.
func (v value) memberOffset() (int64, bool) {
	if v.isConstant() || v.isOffset() {
		return positive(v.number), v.number <= 1<<62
	}
	if len(v.block) < 2 || v.block[0] != opPlusUconst {
		return 0, false
	}
	r := reader{data: v.block, pos: 1}
	n := r.uleb()
	return positive(n), !r.bad && r.left() == 0 && n <= 1<<62
}

// setBits sets the position of a bit field. DW_AT_data_bit_offset counts from
// the start of the record; the older DW_AT_bit_offset from the most significant
// bit of the storage unit (DWARF 4 section 5.5.6).
func (m *Member) setBits(e *entry) {
	size, ok := e.attr(dwarf.AttrBitSize)
	if !ok || size.number == 0 || size.number > 1<<16 {
		return
	}
	m.BitSize = int64(size.number)
	bits := m.Offset * 8
	if v, ok := e.attr(dwarf.AttrDataBitOffset); ok {
		bits = positive(v.number)
	} else if v, ok := e.attr(dwarf.AttrBitOffset); ok {
		storage := m.Type.Size()
		if s, ok := e.attr(dwarf.AttrByteSize); ok {
			storage = positive(s.number)
		}
		bits += storage*8 - v.signed() - m.BitSize
	}
	m.Offset, m.BitOffset = bits>>3, bits&7
}

// Variant implements Type.
func (t *dieType) Variant(discriminant func(Member) (uint64, error)) (string, []Member, bool) {
	core := t.core()
	if core == nil || !isRecord(core.die.tag()) {
		return "", nil, false
	}
	part, ok := core.variantPart()
	if !ok {
		return "", nil, false
	}
	var variants []entry
	if err := part.children(func(child *entry) bool {
		if child.tag() == dwarf.TagVariant {
			variants = append(variants, *child)
		}
		return true
	}); err != nil {
		core.info.problem(err)
	}
	chosen, ok := core.chooseVariant(&part, variants, discriminant)
	if !ok {
		return "", nil, true
	}
	name, members := core.payload(&chosen)
	return name, members, true
}

func (t *dieType) variantPart() (part entry, ok bool) {
	err := t.die.children(func(child *entry) bool {
		if child.tag() == dwarf.TagVariantPart {
			part, ok = *child, true
		}
		return !ok
	})
	if err != nil {
		t.info.problem(err)
	}
	return part, ok
}

// chooseVariant finds the variant whose DW_AT_discr_value is the
// discriminant's; one without a value is the default (DWARF 5 section 5.7.10).
func (t *dieType) chooseVariant(part *entry, variants []entry, read func(Member) (uint64, error)) (entry, bool) {
	v, ok := part.attr(dwarf.AttrDiscr)
	if !ok {
		if len(variants) == 1 {
			return variants[0], true
		}
		return entry{}, false
	}
	u, off, err := v.ref()
	if err != nil {
		t.info.problem(err)
		return entry{}, false
	}
	die, err := u.entryAt(off)
	if err != nil {
		t.info.problem(err)
		return entry{}, false
	}
	member, ok := t.member(&die)
	if !ok {
		return entry{}, false
	}
	value, err := read(member)
	if err != nil {
		return entry{}, false
	}
	size := member.Type.Size()
	fallback, hasFallback := entry{}, false
	for _, variant := range variants {
		wanted, ok := variant.attr(dwarf.AttrDiscrValue)
		switch {
		case !ok && !variant.abbrev.has(dwarf.AttrDiscrList):
			fallback, hasFallback = variant, true
		case ok && truncate(wanted.number, size) == truncate(value, size):
			return variant, true
		}
	}
	return fallback, hasFallback
}

// payload returns a variant's name and fields. rustc gives the variant one
// member of the same name, whose struct type holds the fields.
func (t *dieType) payload(variant *entry) (string, []Member) {
	members := t.membersOf(variant)
	if len(members) != 1 {
		return "", members
	}
	outer := members[0]
	if outer.Type.Kind() != KindStruct {
		return outer.Name, members
	}
	var list []Member
	for _, m := range outer.Type.Members() {
		m.Offset += outer.Offset
		list = append(list, m)
	}
	return outer.Name, list
}
