package watchtrace

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/value"
)

// nameOf names the variable with static storage that contains an address, in
// source syntax; empty if none does.
func nameOf(p *image.Process, addr evidence.Addr) string {
	name, _ := nameAndType(p, addr, 0)
	return name
}

// nameAndType also gives the type of the part, nil without debug information.
func nameAndType(p *image.Process, addr evidence.Addr, size int) (string, debuginfo.Type) {
	s, found := p.SymbolAt(addr)
	if !found || s.Module == nil {
		return "", nil
	}
	offset := int64(addr - s.Addr)
	if info, err := s.Module.Debug(); err == nil && info != nil {
		if v, found, err := info.GlobalAt(s.Module.LinkAddr(s.Addr), 0); err == nil && found && v.Type != nil {
			if path, leaf, ok := value.Path(v.Type, offset, size); ok {
				return v.Name + path, leaf
			}
			return fmt.Sprintf("%s+%#x", v.Name, offset), nil
		}
	}
	if offset == 0 {
		return s.Name, nil
	}
	return fmt.Sprintf("%s+%#x", s.Name, offset), nil
}

// TypeNamed returns the program's type with a name, in source syntax; nil if no debug
// information has it. Pointers and arrays have no such names.
func TypeNamed(p *image.Process, name string) debuginfo.Type {
	for _, m := range p.Modules {
		if image.RuntimeModule(m.Path) {
			continue
		}
		info, err := m.Debug()
		if err != nil || info == nil {
			continue // another module may have it
		}
		if t, found, err := info.TypeNamed(name, 0); err == nil && found {
			return t
		}
	}
	return nil
}
