package watchtrace

import (
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/value"
)

// Around returns the parts of the static variable from an address on, limited
// to most: the memory that code with this address may access. It leaves out the
// members of libc's locks.
func Around(p *image.Process, addr evidence.Addr, most int) []Target {
	s, found := p.SymbolAt(addr)
	if !found || s.Module == nil || image.RuntimeModule(s.Module.Path) {
		return nil
	}
	info, err := s.Module.Debug()
	if err != nil || info == nil {
		return nil
	}
	v, found, err := info.GlobalAt(s.Module.LinkAddr(s.Addr), 0)
	if err != nil || !found || v.Type == nil {
		return nil
	}
	var list []Target
	size := v.Type.Size()
	for offset := int64(addr - s.Addr); offset < size && len(list) < most; {
		path, leaf, ok := value.Path(v.Type, offset, 0)
		step := int64(1)
		if ok && leaf != nil && leaf.Size() > 0 {
			step = leaf.Size()
			if name := v.Name + path; !insideLock(path) && step <= 8 {
				list = append(list, Target{Name: name, Type: leaf.Name(), Addr: s.Addr + evidence.Addr(offset), Size: int(step), Group: groupOf(name)})
			}
		}
		offset += step
	}
	return list
}

// insideLock reports whether a path leads into a type of libc's own.
func insideLock(path string) bool {
	return strings.Contains(path, ".__data") || strings.Contains(path, ".__size") || strings.Contains(path, ".__align")
}
