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

// SymbolAt returns the ELF symbol that covers addr.
func (p *Process) SymbolAt(addr evidence.Addr) (Symbol, bool) {
	m := p.ModuleAt(addr)
	if m == nil || m.Object == nil {
		return Symbol{}, false
	}
	m.findDebugFile()
	s, ok := m.Object.SymbolAt(m.LinkAddr(addr))
	if !ok {
		return Symbol{}, false
	}
	return p.symbol(m, s), true
}

// SymbolNamed looks up an ELF symbol by its mangled name in all modules, in
// load order. Thread-local symbols have no address and are not found.
func (p *Process) SymbolNamed(name string) (Symbol, bool) {
	for _, m := range p.loadOrder {
		if m.Object == nil {
			continue
		}
		if s, ok := m.Object.SymbolNamed(name); ok && s.Kind != object.SymbolTLS {
			return p.symbol(m, s), true
		}
	}
	return Symbol{}, false
}

func (p *Process) symbol(m *Module, s object.Symbol) Symbol {
	return Symbol{Name: p.symbolName(s.Name), Addr: m.Addr(s.Value), Size: s.Size, Module: m}
}
