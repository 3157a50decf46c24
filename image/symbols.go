package image

import (
	"diagnose/evidence"
	"diagnose/image/object"
)

// Symbol is a data or code symbol of the process.
type Symbol struct {
	Name   string // demangled unless the options say otherwise
	Addr   evidence.Addr
	Size   uint64
	Module *Module
}

// symbolAt returns the ELF symbol of a module that covers addr, or else the Go function; the module may be nil.
func (n *namer) symbolAt(m *Module, addr evidence.Addr) (Symbol, bool) {
	if m == nil || m.Object == nil {
		return Symbol{}, false
	}
	m.findDebugFile()
	s, ok := m.Object.SymbolAt(m.LinkAddr(addr))
	if !ok {
		return m.goSymbolAt(addr)
	}
	return n.symbol(m, s), true
}

// symbolNamed looks up an ELF symbol by its mangled name in the modules, in their order.
func (n *namer) symbolNamed(modules []*Module, name string) (Symbol, bool) {
	for _, m := range modules {
		if m.Object == nil {
			continue
		}
		if s, ok := m.Object.SymbolNamed(name); ok && s.Kind != object.SymbolTLS {
			return n.symbol(m, s), true
		}
	}
	return Symbol{}, false
}

func (n *namer) symbol(m *Module, s object.Symbol) Symbol {
	return Symbol{Name: n.symbolName(s.Name), Addr: m.Addr(s.Value), Size: s.Size, Module: m}
}
