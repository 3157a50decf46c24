package expected

import (
	"slices"
	"strings"

	"github.com/ianlancetaylor/demangle"

	"diagnose/evidence"
	"diagnose/image"
)

// dynamic is the class of an object, by its virtual table and the type_info that this refers to (Itanium C++ ABI, 2.5.2 and
// 2.9.5).
type dynamic struct {
	name string
	// ancestors are the names of all base classes, virtual ones among them.
	ancestors []string
	// offset is how far the object's part is inside the whole one.
	offset int64
	vptr   evidence.Addr
	// slots counts the functions from vptr on.
	slots int
}

// Bounds of a class.
const (
	longestTypeName = 4096
	mostBases       = 64   // of a class
	mostClasses     = 256  // of a hierarchy
	mostSlots       = 4096 // of a virtual table
)

// Names of the symbols (Itanium C++ ABI, 5.1.4.1).
const (
	tableOf    = "vtable for "
	typeInfoOf = "typeinfo for "
)

// dynamicOf reads the class of the object at an address; nil: there is none whose type_info or symbol tells it, or the object
// is under construction as a part of another.
func dynamicOf(p *image.Process, at evidence.Addr) *dynamic {
	v, err := image.Uint64(p, at)
	vptr := evidence.Addr(v)
	if err != nil || at%8 != 0 || vptr%8 != 0 || p.ModuleAt(vptr) == nil {
		return nil
	}
	if m := p.MappingAt(vptr); m == nil || m.Executable() {
		return nil
	}
	d := &dynamic{vptr: vptr}
	sym, named := p.SymbolAt(vptr)
	named = named && vptr >= sym.Addr+16 && vptr < sym.Addr+evidence.Addr(sym.Size)
	if named {
		class, isTable := strings.CutPrefix(sym.Name, tableOf)
		if !isTable {
			return nil // a construction vtable, or no table
		}
		d.name = class
	}
	top, err := image.Uint64(p, vptr-16)
	if err != nil {
		return nil
	}
	const farthest = 1 << 32
	if d.offset = -int64(top); d.offset < 0 || d.offset > farthest {
		return nil
	}
	info, err := image.Uint64(p, vptr-8)
	if err != nil {
		return nil
	}
	h := hierarchy{process: p, left: mostClasses}
	if info == 0 || !h.read(evidence.Addr(info), 0) || named && !sameClass(h.names[0], d.name) {
		return nil // compiled without type_info, or it is none
	}
	d.name, d.ancestors = h.names[0], h.names[1:]
	d.slots = slotsFrom(p, vptr)
	return d
}

// slotsFrom counts the words from an address on that are addresses of code.
func slotsFrom(p *image.Process, at evidence.Addr) int {
	for n := range mostSlots {
		v, err := image.Uint64(p, at+8*evidence.Addr(n))
		if err != nil {
			return 0
		}
		if m := p.MappingAt(evidence.Addr(v)); m == nil || !m.Executable() {
			return n
		}
	}
	return 0
}

// isOne reports whether the object is of a class or of one that derives from it.
func (d *dynamic) isOne(class string) bool {
	return sameClass(d.name, class) || slices.ContainsFunc(d.ancestors, func(a string) bool { return sameClass(a, class) })
}

// hierarchy are the names of a class and its bases. A hostile graph may branch and return to itself, so their number is
// bounded.
type hierarchy struct {
	process *image.Process
	names   []string
	left    int
}

// read adds the class of a type_info, and its bases; false: one of them is not known.
func (h *hierarchy) read(info evidence.Addr, depth int) bool {
	const deepest = 64
	if h.left--; h.left < 0 || depth > deepest {
		return false
	}
	vptr, err := image.Uint64(h.process, info)
	if err != nil {
		return false
	}
	name := h.className(info)
	kind, ok := h.process.SymbolAt(evidence.Addr(vptr))
	if !ok || name == "" || !strings.HasPrefix(kind.Name, tableOf) {
		return false
	}
	h.names = append(h.names, name)
	switch {
	case strings.HasSuffix(kind.Name, "::__class_type_info"):
		return true
	case strings.HasSuffix(kind.Name, "::__si_class_type_info"):
		base, err := image.Uint64(h.process, info+16)
		return err == nil && h.read(evidence.Addr(base), depth+1)
	case strings.HasSuffix(kind.Name, "::__vmi_class_type_info"):
		count, err := image.Uint32(h.process, info+20)
		if err != nil || count > mostBases {
			return false
		}
		for i := range evidence.Addr(count) {
			base, err := image.Uint64(h.process, info+24+16*i)
			if err != nil || !h.read(evidence.Addr(base), depth+1) {
				return false
			}
		}
		return true
	}
	return false
}

// className is the class of a type_info; empty: it has no name that can be read.
func (h *hierarchy) className(info evidence.Addr) string {
	if sym, ok := h.process.SymbolAt(info); ok && sym.Addr == info {
		if name, ok := strings.CutPrefix(sym.Name, typeInfoOf); ok {
			return name
		}
	}
	at, err := image.Uint64(h.process, info+8)
	if err != nil {
		return ""
	}
	mangled, whole, err := image.CString(h.process, evidence.Addr(at), longestTypeName)
	mangled = strings.TrimPrefix(mangled, "*")
	if err != nil || !whole || mangled == "" || strings.ContainsFunc(mangled, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	return demangled(mangled)
}

// demangled is the name of a mangled class; empty: it is none. Names come from the process, and may be made to be hard to
// demangle.
func demangled(mangled string) (name string) {
	defer func() {
		if recover() != nil {
			name = ""
		}
	}()
	const longestPower = 12 // of 2, in bytes
	text, err := demangle.ToString("_ZTI"+mangled, demangle.Verbose, demangle.MaxLength(longestPower))
	if err != nil {
		return ""
	}
	name, ok := strings.CutPrefix(text, typeInfoOf)
	if !ok {
		return ""
	}
	return name
}

// sameClass reports whether two names may be of one class. The demangler and DWARF write arguments of templates, names without
// one, and classes of functions in different forms, so these do not tell classes apart.
func sameClass(a, b string) bool {
	a, b = plainClass(a), plainClass(b)
	return a == b || strings.HasSuffix(a, "::"+b) || strings.HasSuffix(b, "::"+a)
}

// plainClass leaves out the arguments of templates, ABI tags, unnamed scopes and spaces.
func plainClass(name string) string {
	var b strings.Builder
	depth := 0
	for i := 0; i < len(name); i++ {
		switch c := name[i]; c {
		case '<', '(', '{', '[':
			depth++
		case '>', ')', '}', ']':
			depth--
		case ' ':
		default:
			if depth == 0 {
				b.WriteByte(c)
			}
		}
	}
	parts := strings.Split(b.String(), "::")
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "::")
}
