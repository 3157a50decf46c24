package debuginfo

import (
	"debug/dwarf"
	"sync"
)

// typeKey names a type: a DIE, the dimension of an array from which it counts,
// and the language of the user, since shared units have none.
type typeKey struct {
	unit      *unit
	off       uint64
	dimension int
	language  int64
}

// dieType is a Type over a DIE, which is read on demand.
type dieType struct {
	key  typeKey
	info *Info
	die  entry
	once sync.Once
	name string
	// bare is the type without typedefs and qualifiers. core is the same type,
	// but its definition where bare is a declaration. Finding it may need a
	// search of all units, so core is used only where bare does not suffice.
	bare, core  func() *dieType
	members     func() []Member
	enumerators func() map[uint64]string
	sized       sync.Once
	bytes       int64
}

// DWARF attribute encodings of base types (DWARF 5 table 7.11).
const (
	ateBoolean      = 0x02
	ateComplexFloat = 0x03
	ateFloat        = 0x04
	ateSigned       = 0x05
	ateSignedChar   = 0x06
	ateUnsigned     = 0x07
	ateUnsignedChar = 0x08
	ateDecimalFloat = 0x0f
	ateUTF          = 0x10
	ateUCS          = 0x11
	ateASCII        = 0x12
)

// maxTypes bounds the cache of types; beyond it types are not cached.
const maxTypes = 1 << 18

// typeOf returns the type at a DIE. An unreadable DIE yields an unknown type.
func (i *Info) typeOf(u *unit, off uint64, language int64) Type {
	return i.dieTypeOf(typeKey{unit: u, off: off, language: language})
}

func (i *Info) dieTypeOf(key typeKey) *dieType {
	i.mu.Lock()
	t := i.types[key]
	i.mu.Unlock()
	if t != nil {
		return t
	}
	t = &dieType{key: key, info: i}
	die, err := key.unit.entryAt(key.off)
	if err != nil {
		i.problem(err)
		die = entry{unit: key.unit, off: key.off, abbrev: &abbrev{}}
	}
	t.die = die
	t.bare = sync.OnceValue(t.findBare)
	t.core = sync.OnceValue(func() *dieType {
		if bare := t.bare(); bare != nil {
			return bare.complete()
		}
		return nil
	})
	t.members = sync.OnceValue(t.readMembers)
	t.enumerators = sync.OnceValue(t.readEnumerators)
	i.mu.Lock()
	defer i.mu.Unlock()
	if other := i.types[key]; other != nil {
		return other
	}
	if len(i.types) < maxTypes {
		i.types[key] = t
	}
	return t
}

// typeOf returns the type that a DIE's DW_AT_type names, nil for none, which
// is void.
func (e *entry) typeOf(language int64) (Type, error) {
	t, err := e.dieTypeOf(language)
	if t == nil || err != nil {
		return nil, err
	}
	return t, nil
}

func (e *entry) dieTypeOf(language int64) (*dieType, error) {
	v, ok, err := e.inherited(dwarf.AttrType)
	if err != nil || !ok {
		return nil, err
	}
	u, off, err := v.ref()
	if err != nil {
		return nil, err
	}
	return e.unit.src.info.dieTypeOf(typeKey{unit: u, off: off, language: language}), nil
}

// next is the type that this one is made of; nil for none.
func (t *dieType) next() *dieType {
	next, err := t.die.dieTypeOf(t.key.language)
	if err != nil {
		t.info.problem(err)
		return nil
	}
	return next
}

// isAlias reports typedefs and qualifiers.
func isAlias(tag dwarf.Tag) bool {
	switch tag {
	case dwarf.TagTypedef, dwarf.TagConstType, dwarf.TagVolatileType, dwarf.TagRestrictType,
		dwarf.TagAtomicType, dwarf.TagImmutableType, dwarf.TagPackedType, dwarf.TagSharedType,
		dwarf.TagTemplateAlias, dwarf.TagSubrangeType:
		return true
	}
	return false
}

// findBare strips typedefs and qualifiers; nil is void.
func (t *dieType) findBare() *dieType {
	at := t
	for range maxHops {
		if !isAlias(at.die.tag()) {
			return at
		}
		next := at.next()
		if next == nil {
			if at.die.tag() == dwarf.TagSubrangeType {
				return at
			}
			return nil
		}
		at = next
	}
	t.info.problem(t.die.unit.src.bad(t.die.unit.section, t.die.off, "types refer to each other in a circle"))
	return t.unknown()
}

func (t *dieType) unknown() *dieType {
	u := &dieType{key: t.key, info: t.info, die: entry{unit: t.die.unit, off: t.die.off, abbrev: &abbrev{}}}
	u.bare = func() *dieType { return u }
	u.core = u.bare
	u.members = func() []Member { return nil }
	u.enumerators = func() map[uint64]string { return nil }
	return u
}

// complete returns the definition of a declared struct, union, class or
// enumeration, from its type unit or by its name; t itself when none is found.
func (t *dieType) complete() *dieType {
	if t.die.abbrev == nil || !isRecord(t.die.tag()) && t.die.tag() != dwarf.TagEnumerationType {
		return t
	}
	if v, ok := t.die.attr(dwarf.AttrSignature); ok {
		u, off, err := v.ref()
		if err == nil {
			return t.info.dieTypeOf(typeKey{unit: u, off: off, language: t.key.language})
		}
		t.info.problem(err)
		return t
	}
	if !t.die.flag(dwarf.AttrDeclaration) {
		return t
	}
	name, err := t.die.displayName(t.key.language)
	if err != nil || name == "" {
		return t
	}
	found, ok, err := t.info.definition(name, t.die.tag(), t.key.unit, t.key.language)
	if err != nil {
		t.info.problem(err)
	}
	if !ok {
		return t
	}
	return found
}

func isRecord(tag dwarf.Tag) bool {
	switch tag {
	case dwarf.TagStructType, dwarf.TagClassType, dwarf.TagUnionType, dwarf.TagInterfaceType:
		return true
	}
	return false
}

// Kind implements Type.
func (t *dieType) Kind() Kind {
	core := t.bare()
	if core == nil {
		return KindVoid
	}
	switch core.die.tag() {
	case dwarf.TagBaseType:
		return core.baseKind()
	case dwarf.TagSubrangeType:
		return KindInt
	case dwarf.TagEnumerationType:
		return KindEnum
	case dwarf.TagPointerType, dwarf.TagReferenceType, dwarf.TagRvalueReferenceType:
		return KindPointer
	case dwarf.TagPtrToMemberType:
		if core.memberPointerSize() == 8 {
			return KindInt // an offset
		}
		return KindUnknown
	case dwarf.TagStructType, dwarf.TagClassType, dwarf.TagInterfaceType:
		return KindStruct
	case dwarf.TagUnionType:
		return KindUnion
	case dwarf.TagArrayType:
		return KindArray
	case dwarf.TagSubroutineType, dwarf.TagSubprogram:
		return KindFunc
	case dwarf.TagUnspecifiedType:
		if core.Name() == "decltype(nullptr)" {
			return KindPointer
		}
		return KindVoid
	}
	return KindUnknown
}

func (t *dieType) baseKind() Kind {
	v, _ := t.die.attr(dwarf.AttrEncoding)
	switch v.number {
	case ateBoolean:
		return KindBool
	case ateComplexFloat:
		return KindComplex
	case ateFloat, ateDecimalFloat:
		return KindFloat
	case ateSigned:
		return KindInt
	case ateUnsigned:
		// rustc's unit type is a base type without a size
		return KindUint
	case ateSignedChar, ateUnsignedChar, ateUTF, ateUCS, ateASCII:
		// Rust's i8 and u8 have the encodings of characters
		if t.key.language == langRust && v.number != ateUTF {
			if v.number == ateSignedChar {
				return KindInt
			}
			return KindUint
		}
		return KindChar
	}
	return KindUnknown
}

// memberPointerSize is 8 for a pointer to a data member and 16 for one to a
// member function (Itanium C++ ABI section 2.3).
func (t *dieType) memberPointerSize() int64 {
	if next := t.next(); next != nil {
		if core := next.bare(); core != nil && core.die.tag() == dwarf.TagSubroutineType {
			return 16
		}
	}
	return 8
}

// Size implements Type.
func (t *dieType) Size() int64 {
	t.sized.Do(func() { t.bytes = t.size(0) })
	return t.bytes
}

// size bounds the depth of arrays of arrays.
func (t *dieType) size(depth int) int64 {
	core := t.core()
	if core == nil || depth > maxHops {
		return 0
	}
	tag := core.die.tag()
	if v, ok := core.die.attr(dwarf.AttrByteSize); ok && v.isConstant() && (tag != dwarf.TagArrayType || core.key.dimension == 0) {
		return positive(v.number)
	}
	switch tag {
	case dwarf.TagPointerType, dwarf.TagReferenceType, dwarf.TagRvalueReferenceType:
		return 8
	case dwarf.TagUnspecifiedType:
		if core.Kind() == KindPointer {
			return 8
		}
	case dwarf.TagPtrToMemberType:
		return core.memberPointerSize()
	case dwarf.TagEnumerationType, dwarf.TagSubrangeType:
		if next := core.next(); next != nil {
			return next.size(depth + 1)
		}
	case dwarf.TagArrayType:
		elem := core.element()
		count := core.Count()
		if elem == nil || count <= 0 {
			return 0
		}
		size := elem.size(depth + 1)
		if size > 0 && count > (1<<62)/size {
			return 0
		}
		return size * count
	}
	return 0
}

// positive returns 0, not known, for a size that no object can have.
func positive(n uint64) int64 {
	if n > 1<<62 {
		return 0
	}
	return int64(n)
}

// Elem implements Type.
func (t *dieType) Elem() Type {
	core := t.bare()
	if core == nil {
		return nil
	}
	var elem *dieType
	switch core.die.tag() {
	case dwarf.TagArrayType:
		elem = core.element()
	case dwarf.TagPointerType, dwarf.TagReferenceType, dwarf.TagRvalueReferenceType:
		elem = core.next()
	}
	if elem == nil || elem.Kind() == KindVoid {
		return nil
	}
	return elem
}

// Reference implements Type.
func (t *dieType) Reference() bool {
	core := t.bare()
	if core == nil {
		return false
	}
	tag := core.die.tag()
	return tag == dwarf.TagReferenceType || tag == dwarf.TagRvalueReferenceType
}

// Enumerator implements Type.
func (t *dieType) Enumerator(value int64) (string, bool) {
	core := t.core()
	if core == nil || core.die.tag() != dwarf.TagEnumerationType {
		return "", false
	}
	name, ok := core.enumerators()[truncate(uint64(value), core.Size())]
	return name, ok
}

func truncate(v uint64, size int64) uint64 {
	if size <= 0 || size >= 8 {
		return v
	}
	return v & (1<<(8*size) - 1)
}

func (t *dieType) readEnumerators() map[uint64]string {
	names := map[uint64]string{}
	size := t.Size()
	err := t.die.children(func(child *entry) bool {
		if child.tag() != dwarf.TagEnumerator {
			return true
		}
		v, ok := child.attr(dwarf.AttrConstValue)
		name, err := child.name()
		if !ok || err != nil {
			return true
		}
		key := truncate(uint64(v.signed()), size)
		if _, taken := names[key]; !taken {
			names[key] = name
		}
		return true
	})
	if err != nil {
		t.info.problem(err)
	}
	return names
}
