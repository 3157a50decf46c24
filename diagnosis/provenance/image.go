package provenance

import (
	"diagnose/evidence"
	"diagnose/image"
)

// Image is the Program that a process image describes.
type Image struct {
	process *image.Process
	own     map[evidence.Addr]bool
}

// NewImage makes one of the failed process.
func NewImage(p *image.Process) *Image { return &Image{p, map[evidence.Addr]bool{}} }

// Own implements Program. Code without line numbers is taken for a library's.
func (i *Image) Own(pc evidence.Addr) bool {
	own, known := i.own[pc]
	if !known {
		calls := i.process.Symbolize(pc, image.AtInstruction)
		for k := range calls {
			if s := &calls[k].Site; s.File != "" && !image.LibraryCode(s) {
				own = true
			}
		}
		i.own[pc] = own
	}
	return own
}

// Foreign implements Program: the code is a runtime's, or that of no object.
func (i *Image) Foreign(pc evidence.Addr) bool {
	m := i.process.ModuleAt(pc)
	return m == nil || image.RuntimeModule(m.Path)
}

// Mapped implements Program.
func (i *Image) Mapped(addr evidence.Addr) bool { return i.process.MappingAt(addr) != nil }

// Code implements Program.
func (i *Image) Code(addr evidence.Addr) bool {
	m := i.process.MappingAt(addr)
	return m != nil && len(m.Perms) == 3 && m.Perms[2] == 'x'
}

// Function implements Program.
func (i *Image) Function(pc evidence.Addr) (name, module string) {
	calls := i.process.Symbolize(pc, image.AtInstruction)
	if len(calls) == 0 {
		return "", ""
	}
	s := &calls[len(calls)-1].Site
	return image.CanonicalName(s.Function), s.Module
}
