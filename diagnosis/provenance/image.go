package provenance

import (
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/x86"
)

// Image is the Program that a process image describes.
type Image struct {
	process  *image.Process
	unwinder *unwind.Unwinder
	sites    map[evidence.Addr]ownSite
	decoded  map[evidence.Addr]*x86.Inst // nil: there is no instruction
	statics  map[evidence.Addr]*Declared // nil: no variable with static storage begins there
	members  map[memberAt]*Declared
}

// ownSite is a place of the program's own code. own: it is one; template: it is none, but one of the C++ library.
type ownSite struct {
	own, template bool
	site          *evidence.Site
}

// NewImage makes one of the failed process.
func NewImage(p *image.Process) *Image {
	return &Image{p, unwind.New(p), map[evidence.Addr]ownSite{}, map[evidence.Addr]*x86.Inst{}, map[evidence.Addr]*Declared{}, map[memberAt]*Declared{}}
}

// Own implements Program. Code without line numbers is taken for a library's.
func (i *Image) Own(pc evidence.Addr) bool { return i.look(pc).own }

// Site is the place of the program's own code at an instruction, the innermost with a line number; nil: there is none.
func (i *Image) Site(pc evidence.Addr) *evidence.Site { return i.look(pc).site }

func (i *Image) look(pc evidence.Addr) (x ownSite) {
	x, known := i.sites[pc]
	if known {
		return x
	}
	calls := i.process.Symbolize(pc, image.AtInstruction)
	for k := range calls {
		s := &calls[k].Site
		if s.File == "" || image.LibraryCode(s) {
			continue
		}
		if x.own = true; x.site == nil && s.Line > 0 {
			x.site = s
		}
	}
	if n := len(calls) - 1; n >= 0 && !x.own {
		s := &calls[n].Site
		x.template = s.File != "" && strings.HasPrefix(image.CanonicalName(s.Function), "std::") && !strings.HasSuffix(s.File, ".rs")
	}
	i.sites[pc] = x
	return x
}

// Foreign implements Program: the code is a runtime's, or that of no object.
func (i *Image) Foreign(pc evidence.Addr) bool {
	m := i.process.ModuleAt(pc)
	return m == nil || image.RuntimeModule(m.Path)
}

// OfTemplate implements Program: a place in a header of the library, in an object of the program's.
func (i *Image) OfTemplate(pc evidence.Addr) bool { return i.look(pc).template && !i.Foreign(pc) }

// Mapped implements Program.
func (i *Image) Mapped(addr evidence.Addr) bool { return i.process.MappingAt(addr) != nil }

// OfStart implements Program.
func (i *Image) OfStart(addr evidence.Addr) bool { return i.process.OfStart(addr) }

// Code implements Program.
func (i *Image) Code(addr evidence.Addr) bool {
	m := i.process.MappingAt(addr)
	return m != nil && len(m.Perms) == 3 && m.Perms[2] == 'x'
}

// Decode implements Program.
func (i *Image) Decode(pc evidence.Addr) (inst *x86.Inst, ok bool) {
	if inst, known := i.decoded[pc]; known {
		return inst, inst != nil
	}
	const longest = 15 // bytes of an instruction (Intel SDM, volume 2, 2.3.11)
	code := make([]byte, longest)
	n, _ := i.process.ReadMemory(pc, code) // the mapping may end after it
	if in, err := x86.Decode(code[:n], uint64(pc)); err == nil {
		inst = &in
	}
	i.decoded[pc] = inst
	return inst, inst != nil
}

// Function implements Program.
func (i *Image) Function(pc evidence.Addr) string {
	calls := i.process.Symbolize(pc, image.AtInstruction)
	if len(calls) == 0 {
		return ""
	}
	return image.CanonicalName(calls[len(calls)-1].Site.Function)
}
