package staticscan

import (
	"fmt"
	"path/filepath"
	"sort"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
)

// processView is the process with what this package learns about it while it works.
// It is not safe for concurrent use.
type processView struct {
	process *image.Process
	memory  image.Memory
	thread  *image.Thread
	// writable are the ranges of objects' writable segments, sorted.
	writable []dataRange
	globals  map[evidence.Addr]global
	code     map[evidence.Addr]*analysis
	// returning: whether the functions that were looked at may return.
	returning map[evidence.Addr]bool
	tls       []tlsBlock
	stacks    []*image.Mapping
}

type dataRange struct {
	start, end evidence.Addr
	module     *image.Module
}

// global is a variable with static storage and what DWARF says of it.
type global struct {
	name  string
	addr  evidence.Addr
	size  uint64
	typ   debuginfo.Type
	local bool // thread-local
}

func newWorld(in *Input) *processView {
	w := &processView{process: in.Process, memory: in.Process, thread: in.Thread, globals: map[evidence.Addr]global{}, code: map[evidence.Addr]*analysis{},
		returning: map[evidence.Addr]bool{}}
	for _, m := range in.Process.Modules {
		w.addRanges(m)
	}
	sort.Slice(w.writable, func(i, j int) bool { return w.writable[i].start < w.writable[j].start })
	for i := range in.Process.Threads {
		if s := in.Process.MappingAt(in.Process.Threads[i].Registers.SP()); s != nil {
			w.stacks = append(w.stacks, s)
		}
	}
	w.findTLS()
	return w
}

const segmentWritable = 2 // elf.PF_W

func (w *processView) addRanges(m *image.Module) {
	if m.Object == nil {
		for i := range w.process.Mappings {
			p := &w.process.Mappings[i]
			if p.Writable() && p.Start >= m.Start && p.End <= m.End {
				w.writable = append(w.writable, dataRange{p.Start, p.End, m})
			}
		}
		return
	}
	for _, s := range m.Object.Segments() {
		if s.Flags&segmentWritable != 0 && s.Memsz > 0 {
			w.writable = append(w.writable, dataRange{m.Addr(s.Vaddr), m.Addr(s.Vaddr + s.Memsz), m})
		}
	}
}

// owner is the object whose writable segment holds addr.
func (w *processView) owner(addr evidence.Addr) *image.Module {
	i := sort.Search(len(w.writable), func(i int) bool { return w.writable[i].end > addr })
	if i == len(w.writable) || w.writable[i].start > addr {
		return nil
	}
	return w.writable[i].module
}

// isData reports whether addr is a variable of an object: in a writable
// segment, but neither made read-only after relocation nor one of the
// linker's tables.
func (w *processView) isData(addr uint64) bool {
	m := w.owner(evidence.Addr(addr))
	if m == nil {
		return false
	}
	if p := w.process.MappingAt(evidence.Addr(addr)); p != nil && !p.Writable() {
		return false
	}
	return !w.linkerTable(m, evidence.Addr(addr))
}

func (w *processView) linkerTable(m *image.Module, addr evidence.Addr) bool {
	if m.Object == nil {
		return false
	}
	s := m.Object.SectionAt(m.LinkAddr(addr))
	if s == nil {
		return false
	}
	switch s.Name {
	case ".got", ".got.plt", ".dynamic", ".init_array", ".fini_array", ".ctors", ".dtors", ".jcr",
		".data.rel.ro", ".data.rel.ro.local", ".tm_clone_table", ".tdata", ".tbss":
		return true
	}
	return strings.HasPrefix(s.Name, ".data.rel.ro")
}

// isFixed reports whether the word at addr keeps its value once the program
// is loaded.
func (w *processView) isFixed(addr uint64) bool {
	at := evidence.Addr(addr)
	if m := w.owner(at); m != nil {
		return !w.isData(addr)
	}
	if w.process.ModuleAt(at) == nil {
		return false
	}
	p := w.process.MappingAt(at)
	return p != nil && !p.Writable()
}

func (w *processView) sameVariable(a, b uint64) bool {
	if !w.isData(a) || !w.isData(b) {
		return false
	}
	x, ok := w.process.SymbolAt(evidence.Addr(a))
	if !ok {
		return a>>12 == b>>12
	}
	y, ok := w.process.SymbolAt(evidence.Addr(b))
	return ok && x.Addr == y.Addr
}

func (w *processView) onStack(addr evidence.Addr) bool {
	for _, s := range w.stacks {
		if s.Contains(addr) {
			return true
		}
	}
	return false
}

// heapLike reports whether addr is writable memory that is neither an
// object's nor a stack.
func (w *processView) heapLike(addr evidence.Addr) bool {
	p := w.process.MappingAt(addr)
	return p != nil && p.Writable() && w.owner(addr) == nil && !w.onStack(addr)
}

// globalAt names the variable that covers addr. hint is the code that uses it.
func (w *processView) globalAt(addr, hint evidence.Addr) (global, bool) {
	if g, ok := w.threadLocal(addr, hint); ok {
		return g, true
	}
	s, ok := w.process.SymbolAt(addr)
	if !ok {
		return global{}, false
	}
	if g, ok := w.globals[s.Addr]; ok {
		return g, true
	}
	g := global{name: s.Name, addr: s.Addr, size: s.Size}
	if v, ok := w.describe(s, hint); ok {
		g.typ = v.Type
		if !strings.HasSuffix(s.Name, "::"+v.Name) && v.Name != "" {
			g.name = v.Name
		}
		if v.Type != nil && v.Type.Size() > 0 {
			g.size = max(g.size, uint64(v.Type.Size()))
		}
	}
	w.globals[s.Addr] = g
	return g, true
}

// describe finds the DWARF variable of a symbol: in the symbol's own object,
// or, for a variable that was copied into the executable (R_X86_64_COPY),
// in the object that defines it.
func (w *processView) describe(s image.Symbol, hint evidence.Addr) (debuginfo.Variable, bool) {
	m := s.Module
	if m == nil {
		return debuginfo.Variable{}, false
	}
	near := uint64(0)
	if m.Contains(hint) {
		near = m.LinkAddr(hint)
	}
	if v, ok := variableIn(m, m.LinkAddr(s.Addr), near); ok {
		return v, true
	}
	if m != w.process.Exe || m.Object == nil {
		return debuginfo.Variable{}, false
	}
	own, ok := m.Object.SymbolAt(m.LinkAddr(s.Addr))
	if !ok {
		return debuginfo.Variable{}, false
	}
	for _, other := range w.process.Modules {
		if other == m || other.Object == nil {
			continue
		}
		if def, ok := other.Object.SymbolNamed(own.Name); ok && def.Size == own.Size {
			if v, ok := variableIn(other, def.Value, 0); ok {
				return v, true
			}
		}
	}
	return debuginfo.Variable{}, false
}

func variableIn(m *image.Module, link, hint uint64) (debuginfo.Variable, bool) {
	info, err := m.Debug()
	if err != nil || info == nil {
		return debuginfo.Variable{}, false
	}
	v, ok, err := info.GlobalAt(link, hint)
	return v, ok && err == nil
}

// named is a place with its name.
type named struct {
	name string
	typ  debuginfo.Type
	addr evidence.Addr
	size int
	// whole: addr and size are those of an array whose index is not known;
	// array is its type.
	whole bool
	array debuginfo.Type
	// choice: as of a part.
	choice bool
}

// nameData names size bytes of static data.
func (w *processView) nameData(addr evidence.Addr, size int, varies bool, hint evidence.Addr) named {
	n := named{addr: addr, size: size, whole: varies}
	g, ok := w.globalAt(addr, hint)
	if !ok {
		n.name = placeName(w.process, addr)
		if varies {
			n.name += "[...]"
		}
		return n
	}
	offset := int64(addr - g.addr)
	if g.typ == nil {
		n.name = g.name
		switch {
		case varies:
			n.name += "[...]"
			n.addr, n.size = g.addr, int(g.size)
		case offset != 0:
			n.name += fmt.Sprintf("+%#x", offset)
		}
		return n
	}
	p := walk(g.typ, offset, int64(size), varies)
	n.name, n.typ, n.choice = g.name+p.path, p.typ, p.choice
	if !varies {
		return n
	}
	n.array = p.array
	n.addr, n.size = g.addr+evidence.Addr(p.offset), int(p.size)
	if p.array == nil {
		n.name, n.typ = g.name+"[...]", nil
		n.addr, n.size = g.addr, int(g.size)
	}
	return n
}

// placeName names an address that has no symbol by section, or by module.
func placeName(p *image.Process, addr evidence.Addr) string {
	m := p.ModuleAt(addr)
	if m == nil {
		return addr.String()
	}
	base := filepath.Base(m.Path)
	if m.Object != nil {
		if s := m.Object.SectionAt(m.LinkAddr(addr)); s != nil {
			return fmt.Sprintf("%s(%s+%#x)", base, s.Name, m.LinkAddr(addr)-s.Addr)
		}
	}
	return fmt.Sprintf("%s+%#x", base, uint64(addr)-uint64(m.Start))
}

// nameValue names what an abstract address points to.
func (w *processView) nameValue(at value, size int, hint evidence.Addr) named {
	if at.kind != loaded {
		return w.nameData(evidence.Addr(at.off), size, at.varies, hint)
	}
	addr, _ := at.address()
	if w.isData(uint64(addr)) {
		return w.nameData(addr, size, at.varies, hint)
	}
	pointer := w.nameValue(at.cell.at, 8, hint)
	n := named{addr: addr, size: size, whole: at.varies}
	if name, p, ok := through(pointer.name, pointer.typ, at.off, int64(size), at.varies); ok {
		n.name, n.typ = name, p.typ
		return n
	}
	n.name = "[" + pointer.name + "]"
	if at.off != 0 {
		n.name += fmt.Sprintf("%+#x", at.off)
	}
	return n
}
