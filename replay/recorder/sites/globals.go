package sites

import (
	"bytes"
	"debug/elf"
	"slices"
	"strings"

	"diagnose/agent"
	"diagnose/image/object"
	"diagnose/image/x86"
	"diagnose/replay/patch"
)

// globalSite is an instruction of an object that accesses a variable shared by all threads, at
// its link-time address.
type globalSite struct {
	at       uint64
	code     []byte
	relative uint8 // offset of its displacement from the next instruction; 0: it has none
	// after: later instructions use the address or value that this one loads, before the next
	// global site. So another thread may also run right after it.
	after bool
}

// globalSites are the global sites of an object that a jump can replace, by address. all counts
// every one.
type globalSites struct {
	sites []globalSite
	all   int
}

// instrumentedMark is in objects that call their own points: agent/tsan/start.c.
var instrumentedMark = []byte("diagnose_point_within\x00")

// findGlobals searches an object's functions. A jump takes five bytes. An instruction with the
// address of a variable in it has at least six, so none is too short. An instruction that is
// the target of a jump to its middle is left out.
func findGlobals(f *object.File) (globalSites, error) {
	var found globalSites
	shared := sharedRanges(f)
	if len(shared) == 0 || instrumented(f) {
		return found, nil
	}
	for _, segment := range f.Segments() {
		if segment.Flags&uint32(elf.PF_X) == 0 {
			continue
		}
		code := make([]byte, min(segment.Filesz, uint64(1)<<32))
		if _, err := f.ReadAddr(code, segment.Vaddr); err != nil {
			return globalSites{}, err
		}
		s := globalSearch{siteSearch: newSiteSearch(f, code, segment.Vaddr), shared: shared, fixed: f.Type() == uint16(elf.ET_EXEC)}
		s.search(&found)
		s.close()
	}
	slices.SortFunc(found.sites, func(a, b globalSite) int { return int(int64(a.at - b.at)) })
	return found, nil
}

// sharedRanges are the link-time addresses of an object's variables: memory that is writable
// after loading, without the linker's own tables.
func sharedRanges(f *object.File) (list []Addresses) {
	var out []Addresses
	if relro, ok := f.Program(elf.PT_GNU_RELRO); ok {
		out = append(out, Addresses{relro.Vaddr, relro.Vaddr + relro.Memsz})
	}
	for _, s := range f.Sections() {
		if strings.HasPrefix(s.Name, ".got") || s.Name == ".dynamic" {
			out = append(out, Addresses{s.Addr, s.Addr + s.Size})
		}
	}
	for _, s := range f.Segments() {
		if s.Flags&uint32(elf.PF_W) == 0 {
			continue
		}
		left := []Addresses{{s.Vaddr, s.Vaddr + s.Memsz}}
		for _, o := range out {
			var next []Addresses
			for _, a := range left {
				if o.End <= a.Start || o.Start >= a.End {
					next = append(next, a)
					continue
				}
				if a.Start < o.Start {
					next = append(next, Addresses{a.Start, o.Start})
				}
				if o.End < a.End {
					next = append(next, Addresses{o.End, a.End})
				}
			}
			left = next
		}
		list = append(list, left...)
	}
	return list
}

// instrumented reports whether an object's code has points.
func instrumented(f *object.File) bool {
	for _, s := range f.Segments() {
		if s.Flags&uint32(elf.PF_W) != 0 {
			continue
		}
		data := make([]byte, min(s.Filesz, uint64(1)<<32))
		if _, err := f.ReadAddr(data, s.Vaddr); err == nil && bytes.Contains(data, instrumentedMark) {
			return true
		}
	}
	return false
}

// globalSearch searches one segment.
type globalSearch struct {
	siteSearch
	shared []Addresses
	fixed  bool // the object is loaded where it was linked
}

func (s *globalSearch) search(found *globalSites) {
	for _, at := range s.findFunctions() {
		s.targets.addAddress(s.base + uint64(at))
	}
	parts := s.parts()
	for _, p := range parts {
		s.outline(p, func(o *x86.Outline) {
			if o.HasTarget {
				s.targets.addAddress(o.Target)
			}
		})
	}
	for _, p := range parts {
		s.pick(p, found)
	}
}

// parts returns the code that decodes from end to end: the functions that unwinding tables name
// or, if they name less than half of a section, the whole section.
func (s *globalSearch) parts() (list []function) {
	for _, r := range s.sections() {
		var named []function
		covered := 0
		for _, f := range slices.Compact(slices.Clone(s.extents())) {
			if f.start >= r[0] && f.end <= r[1] {
				named = append(named, f)
				covered += f.end - f.start
			}
		}
		if 2*covered < r[1]-r[0] {
			named = []function{{r[0], r[1]}}
		}
		list = append(list, named...)
	}
	return slices.DeleteFunc(list, func(f function) bool { return !s.outline(f, func(*x86.Outline) {}) })
}

// outline visits the instructions of a part. It returns false if the part does not decode.
func (s *globalSearch) outline(f function, each func(*x86.Outline)) bool {
	for at := f.start; at < f.end; {
		o, err := s.outliner.Next(s.code[at:f.end], s.base+uint64(at))
		if err != nil {
			return false
		}
		each(&o)
		at += o.Len
	}
	return true
}

// walk decodes a part that is known to decode.
func (s *globalSearch) walk(f function, each func(*x86.Inst)) {
	for at := f.start; at < f.end; {
		inst := s.decode(at, f.end)
		each(&inst)
		at += inst.Len
	}
}

// pick adds the global sites of a part.
func (s *globalSearch) pick(f function, found *globalSites) {
	open := -1 // the site whose followers are examined
	s.walk(f, func(inst *x86.Inst) {
		o := s.global(inst)
		if open >= 0 && (o != nil || inst.Flow == x86.FlowJump || inst.Flow == x86.FlowReturn) {
			open = -1
		} else if open >= 0 && follows(inst) {
			site := &found.sites[open]
			site.after = !s.targets.has(site.at + uint64(len(site.code)))
			open = -1
		}
		if o == nil {
			return
		}
		found.all++
		relative, _, err := patch.Displacement(inst)
		if err != nil || inst.Flow != x86.FlowNext || inst.Len < jumpLen || s.entered(inst.PC+1, inst.PC+uint64(inst.Len)) {
			return
		}
		found.sites = append(found.sites, globalSite{at: inst.PC, code: bytes.Clone(inst.Bytes), relative: uint8(relative)})
		open = len(found.sites) - 1
	})
}

// global returns the operand of an instruction that is a shared variable; nil: it has none.
func (s *globalSearch) global(inst *x86.Inst) *x86.Operand {
	if inst.Flow != x86.FlowNext {
		return nil // a jump through memory uses the linker's table, or a table of code
	}
	for i := range inst.Operands {
		o := &inst.Operands[i]
		if !o.IsMemory || o.Implicit || o.Access == "" || o.Memory.Segment != x86.SegNone {
			continue
		}
		m := &o.Memory
		at := m.Target
		if m.Base != x86.RIP && !m.Absolute {
			// An array's address, with an index.
			if !s.fixed || m.Base == x86.RSP || m.Base == x86.RBP {
				continue
			}
			at = uint64(m.Disp)
		}
		if slices.ContainsFunc(s.shared, func(a Addresses) bool { return at >= a.Start && at < a.End }) {
			return o
		}
	}
	return nil
}

// follows reports whether an instruction may access the variable whose address the previous one
// loaded, or calls a function that may.
func follows(inst *x86.Inst) bool {
	if inst.Flow == x86.FlowCall {
		return true
	}
	return slices.ContainsFunc(inst.Operands, func(o x86.Operand) bool {
		return o.IsMemory && o.Access != "" && !o.Implicit && o.Memory.Segment == x86.SegNone && !o.Memory.Absolute &&
			o.Memory.Base != x86.RIP && o.Memory.Base != x86.RSP && o.Memory.Base != x86.RBP
	})
}

// apart leaves out sites that share bytes with the patch of a system call.
func (g *globalSites) apart(patched []Site) []globalSite {
	return slices.DeleteFunc(slices.Clone(g.sites), func(s globalSite) bool {
		return slices.ContainsFunc(patched, func(p Site) bool {
			return p.At < s.at+uint64(len(s.code)) && s.at < p.At+max(uint64(p.Length), syscallLen)
		})
	})
}

// raw is the site as the engine expects it, in an object loaded with a bias.
func (s *globalSite) raw(bias uint64) agent.RawPointSite {
	r := agent.RawPointSite{At: s.at + bias, Length: uint8(len(s.code)), Relative: s.relative}
	copy(r.Bytes[:], s.code)
	if s.after {
		r.Behind = 1
	}
	return r
}
