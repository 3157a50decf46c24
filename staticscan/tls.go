package staticscan

import (
	"diagnose/evidence"
	"diagnose/image"
)

// tlsBlock is the failing thread's copy of an object's thread-local storage.
type tlsBlock struct {
	start, end evidence.Addr
	module     *image.Module
}

// findTLS places the thread's blocks. A module whose block the thread never
// touched has none, which is no error.
func (w *processView) findTLS() {
	if w.thread == nil {
		return
	}
	for _, m := range w.process.Modules {
		if m.Object == nil {
			continue
		}
		segment, ok := m.Object.TLS()
		if !ok || segment.Memsz == 0 {
			continue
		}
		start, err := w.process.ThreadLocal(w.thread, m)
		if err != nil {
			continue
		}
		w.tls = append(w.tls, tlsBlock{start, start + evidence.Addr(segment.Memsz), m})
	}
}

func (w *processView) tlsBlockAt(addr evidence.Addr) *tlsBlock {
	for i := range w.tls {
		if addr >= w.tls[i].start && addr < w.tls[i].end {
			return &w.tls[i]
		}
	}
	return nil
}

// threadLocal names the thread-local variable at an address. Symbols of
// thread-local variables hold offsets in the block (ELF gABI, st_value).
func (w *processView) threadLocal(addr, hint evidence.Addr) (global, bool) {
	b := w.tlsBlockAt(addr)
	if b == nil {
		return global{}, false
	}
	offset := uint64(addr - b.start)
	g := global{name: "thread-local+" + evidence.Addr(offset).String(), addr: addr, local: true}
	sym, ok := b.module.Object.ThreadLocalAt(offset)
	if !ok {
		return g, true
	}
	g.name, g.addr, g.size = sym.Name, b.start+evidence.Addr(sym.Value), sym.Size
	info, err := b.module.Debug()
	if err != nil || info == nil {
		return g, true
	}
	near := uint64(0)
	if b.module.Contains(hint) {
		near = b.module.LinkAddr(hint)
	}
	if v, ok, err := info.ThreadLocalAt(sym.Value, near); ok && err == nil {
		g.name, g.typ = v.Name, v.Type
	}
	return g, true
}

// tlsAddress resolves a call of __tls_get_addr, whose argument points to the
// module's number and the variable's offset (Drepper, "ELF Handling For
// Thread-Local Storage", section 3.4.2).
func (w *processView) tlsAddress(target, index uint64) (uint64, bool) {
	id, err := image.Uint64(w.memory, evidence.Addr(index))
	if err != nil || id == 0 {
		return 0, false
	}
	if !w.isTLSGetter(evidence.Addr(target)) {
		return 0, false
	}
	offset, err := image.Uint64(w.memory, evidence.Addr(index+8))
	if err != nil {
		return 0, false
	}
	for i := range w.tls {
		if uint64(w.tls[i].module.TLSID) == id {
			return uint64(w.tls[i].start) + offset, true
		}
	}
	return 0, false
}

func (w *processView) isTLSGetter(target evidence.Addr) bool {
	s, ok := w.process.SymbolAt(w.callee(target))
	return ok && s.Name == "__tls_get_addr"
}
