package failure

import (
	"strings"

	"diagnose/evidence"
	"diagnose/image"
)

// baseSearch looks for std::exception among the bases of a class. A hostile graph of classes may
// branch and return to itself, so the total number of classes is bounded.
type baseSearch struct {
	*exceptionReader
	left int
}

// offset returns the offset of std::exception in an object of the class with the type_info (Itanium
// ABI 2.9.5). Virtual bases are not followed: their offset is in the object's own virtual table.
func (b *baseSearch) offset(info evidence.Addr) (int64, bool) {
	b.left--
	if b.left < 0 {
		return 0, false
	}
	name, err := b.typeInfoName(info)
	if err != nil {
		return 0, false
	}
	if name == "St9exception" {
		return 0, true
	}
	vptr, err := readPointer(b, info)
	if err != nil {
		return 0, false
	}
	sym, ok := b.SymbolAt(vptr)
	switch {
	case ok && strings.Contains(sym.Name, "__si_class_type_info"):
		base, err := readPointer(b, info+16)
		if err != nil {
			return 0, false
		}
		return b.offset(base)
	case ok && strings.Contains(sym.Name, "__vmi_class_type_info"):
		return b.among(info)
	}
	return 0, false
}

// among tries each base of a class with several.
func (b *baseSearch) among(info evidence.Addr) (int64, bool) {
	count, err := image.Uint32(b, info+20)
	if err != nil {
		return 0, false
	}
	for i := evidence.Addr(0); i < evidence.Addr(count) && b.left > 0; i++ {
		base, err := readPointer(b, info+24+16*i)
		if err != nil {
			return 0, false
		}
		flags, err := image.Uint64(b, info+32+16*i)
		if err != nil {
			return 0, false
		}
		const isVirtual = 1
		if flags&isVirtual != 0 {
			b.left--
			continue
		}
		if offset, ok := b.offset(base); ok {
			return offset + int64(flags)>>8, true
		}
	}
	return 0, false
}
