package staticscan

import (
	"errors"
	"fmt"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

// CallSite is an instruction that hands control to another function.
type CallSite struct {
	PC evidence.Addr
	// To is the function, behind the stubs of the dynamic linker; 0: the stopped
	// process does not tell.
	To evidence.Addr
	// Library is what the program calls it, if it is no function of the program's own.
	Library string
	// Tail: a jump, which leaves no frame of the function that made it.
	Tail bool
}

// OwnFrames are the indexes of the innermost frames of the program's own, at most
// so many.
func OwnFrames(in Input, most int) []int {
	if in.Process == nil {
		return nil
	}
	return in.ownFrames(most)
}

// OwnFrame is the index of the innermost frame of the program's own, -1 if there
// is none.
func OwnFrame(in Input) int {
	own := in.ownFrames(1)
	if in.Process == nil || len(own) == 0 {
		return -1
	}
	return own[0]
}

// CallOf is the call that a frame is in. Of the innermost frame it is the
// instruction that the thread stands at, if that calls or jumps.
func CallOf(in Input, frame int) (CallSite, bool) {
	if in.Process == nil || frame < 0 || frame >= len(in.Frames) {
		return CallSite{}, false
	}
	s, err := newWorld(&in).newSlice(&in, frame, in.Frames[frame].Registers)
	if err != nil {
		return CallSite{}, false
	}
	return s.callSite()
}

func (s *backwardSlice) callSite() (CallSite, bool) {
	if s.now < 0 {
		return CallSite{}, false
	}
	inst := &s.a.flow.insts[s.now]
	if inst.Flow != x86.FlowCall && inst.Flow != x86.FlowJump {
		return CallSite{}, false
	}
	c := CallSite{PC: evidence.Addr(inst.PC), Tail: inst.Flow == x86.FlowJump}
	if to, known := s.calledAddress(); known && s.process.ModuleAt(to) != nil {
		c.To = to
	}
	target := c.To
	if inst.HasTarget {
		target = evidence.Addr(inst.Target)
	}
	if name, ok := s.stubName(target); ok {
		c.Library = name
	} else if c.To != 0 && s.isLibrary(c.To) {
		sym, _ := s.process.SymbolAt(c.To)
		c.Library = plainName(sym.Name)
	}
	return c, true
}

// stubName is the function of a library that a stub of the dynamic linker is for; ok is
// false for other code, and for functions of the program's own objects.
func (w *processView) stubName(stub evidence.Addr) (name string, ok bool) {
	sym, found := w.process.SymbolAt(stub)
	name, isStub := strings.CutSuffix(sym.Name, "@plt")
	if !found || !isStub || stub >= sym.Addr+evidence.Addr(max(sym.Size, 1)) && stub != sym.Addr {
		return "", false
	}
	if to := w.callee(stub); w.process.ModuleAt(to) != nil && w.process.ModuleAt(to) != sym.Module {
		return plainName(name), w.isLibrary(to)
	}
	// It is bound when it is called first.
	for _, m := range w.process.Modules {
		if m == sym.Module || m.Object == nil || image.RuntimeModule(m.Path) {
			continue
		}
		if def, ok := m.Object.SymbolNamed(name); ok && def.Value != 0 {
			return "", false
		}
	}
	return plainName(name), true
}

// LibraryAt reports whether the code at an address, which a jump leads to, is a library's
// function or the stub for one.
func LibraryAt(p *image.Process, to evidence.Addr) bool {
	w := &processView{process: p, memory: p}
	if sym, ok := p.SymbolAt(to); ok && sym.Addr == to && strings.HasSuffix(sym.Name, "@plt") {
		_, ok := w.stubName(to)
		return ok
	}
	return w.isLibrary(to)
}

// maxTailCalls bounds how many functions in a row may have jumped on.
const maxTailCalls = 4

// TailCalls are the jumps by which the function at entry, or those of the program's
// own that it jumps on to, may have come to the function that covers pc; if none
// leads there by its own target, those that leave the program's own code.
func TailCalls(in Input, entry, pc evidence.Addr) []CallSite {
	if in.Process == nil {
		return nil
	}
	w := newWorld(&in)
	var exact, others []CallSite
	seen := map[evidence.Addr]bool{}
	for next, depth := []evidence.Addr{entry}, 0; len(next) > 0 && depth < maxTailCalls; depth++ {
		var further []evidence.Addr
		for _, f := range next {
			a, err := w.analyse(f)
			if err != nil || seen[a.function.entry] {
				continue
			}
			seen[a.function.entry] = true
			for _, c := range w.leaves(a) {
				switch {
				case w.covers(c.To, pc):
					exact = append(exact, c)
				case w.isLibrary(c.To):
					others = append(others, c)
				default:
					further = append(further, c.To)
				}
			}
		}
		next = further
	}
	if len(exact) > 0 {
		return exact
	}
	return others
}

// leaves are the jumps out of a function to known places.
func (w *processView) leaves(a *analysis) []CallSite {
	var list []CallSite
	for i := range a.flow.insts {
		in := &a.flow.insts[i]
		if in.Flow != x86.FlowJump && in.Flow != x86.FlowBranch {
			continue
		}
		if to := w.fixedTarget(in); to != 0 && !a.function.contains(to) && w.process.ModuleAt(to) != nil {
			list = append(list, CallSite{PC: evidence.Addr(in.PC), To: to, Tail: true})
		}
	}
	return list
}

// fixedTarget is the function, behind the stubs of the dynamic linker, that a call or a jump leads to; 0: its address is neither in the
// instruction nor in a word of memory that the instruction names.
func (w *processView) fixedTarget(in *x86.Inst) evidence.Addr {
	to := evidence.Addr(in.Target)
	if op, ok := explicit(in, 0); !in.HasTarget && ok && op.IsMemory && op.Memory.Base == x86.RIP {
		v, err := image.Uint64(w.memory, evidence.Addr(op.Memory.Target))
		if err != nil {
			return 0
		}
		to = evidence.Addr(v)
	} else if !in.HasTarget {
		return 0
	}
	return w.callee(to)
}

// covers reports whether the function at entry has the code at pc.
func (w *processView) covers(entry, pc evidence.Addr) bool {
	a, err := w.analyse(entry)
	return err == nil && a.function.contains(pc)
}

// isLibrary reports whether a function is none of the program's own.
func (w *processView) isLibrary(entry evidence.Addr) bool {
	m := w.process.ModuleAt(entry)
	if m == nil {
		return false
	}
	s, _ := w.process.SymbolAt(entry)
	return image.Machinery(&evidence.Site{Module: m.Path, Function: s.Name})
}

// Library reports whether the function at an address is none of the program's own.
func Library(p *image.Process, entry evidence.Addr) bool {
	return (&processView{process: p}).isLibrary(entry)
}

// IsCall and IsReturn tell what the instruction at an address does.
func IsCall(p *image.Process, pc evidence.Addr) bool   { return flowAt(p, pc) == x86.FlowCall }
func IsReturn(p *image.Process, pc evidence.Addr) bool { return flowAt(p, pc) == x86.FlowReturn }

func flowAt(p *image.Process, pc evidence.Addr) x86.Flow {
	const longest = 15
	code, _ := readCode(p, p.ModuleAt(pc), pc, longest)
	inst, err := x86.Decode(code, uint64(pc))
	if err != nil {
		return x86.FlowNext
	}
	return inst.Flow
}

// StoredByCall goes back from a store to addr that a function of a library made,
// whose call, or jump, the innermost frame is about to execute.
func StoredByCall(in Input, addr evidence.Addr, opts OriginOptions) (Store, error) {
	if in.Process == nil || len(in.Frames) == 0 {
		return Store{}, errors.New(notKnown + "no process or no frames")
	}
	st := newStoreTrail(&in, addr, opts)
	s, err := st.newSlice(&in, 0, in.Frames[0].Registers)
	if err != nil {
		return Store{}, fmt.Errorf(notKnown+"%w", err)
	}
	c, ok := s.callSite()
	if !ok {
		return Store{}, fmt.Errorf(notKnown+"the instruction at %v calls nothing", in.Frames[0].PC())
	}
	name := ""
	if inst := &s.a.flow.insts[s.now]; inst.HasTarget {
		name = st.libraryName(evidence.Addr(inst.Target))
	}
	if name == "" {
		name = st.libraryName(c.To)
	}
	st.throughCall(s, name)
	return st.result(), nil
}

// Behind is the address behind the instruction at pc; 0 if there is none that is known.
func Behind(p *image.Process, pc evidence.Addr) evidence.Addr {
	const longest = 15
	code, _ := readCode(p, p.ModuleAt(pc), pc, longest)
	inst, err := x86.Decode(code, uint64(pc))
	if err != nil {
		return 0
	}
	return pc + evidence.Addr(inst.Len)
}

// Returns are the instructions by which the function at a place returns.
func Returns(p *image.Process, pc evidence.Addr) []evidence.Addr {
	f, err := functionAt(p, pc)
	if err != nil {
		return nil
	}
	insts, _ := f.decode(p)
	var list []evidence.Addr
	for i := range insts {
		if insts[i].Flow == x86.FlowReturn {
			list = append(list, evidence.Addr(insts[i].PC))
		}
	}
	return list
}
