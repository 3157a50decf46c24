package staticscan

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/x86"
)

// argumentStep goes on in the caller, with the register that the value came
// in by, at the call instruction.
func (t *originSearch) argumentStep(s *backwardSlice, n *node) (*backwardSlice, *node) {
	step := evidence.OriginStep{Kind: evidence.OriginArgument, Register: regName(n.reg), Proof: evidence.Inferred}
	site := t.site(s.a.function.entry)
	step.Site = &site
	step.Text = fmt.Sprintf("it came into %s in %s", plainName(s.a.function.name), n.reg)
	if e, ok := s.parameter(n.reg); ok {
		step.Symbol, step.Type = e.Name, typeName(e.Type)
		step.Text = fmt.Sprintf("it came into %s as its argument %s", plainName(s.a.function.name), e.Name)
	}
	if v, ok := n.best(); ok {
		step.Value = addrOf(v)
	}
	if s.a.function.name == "main" {
		// What calls main hands over the command line.
		t.add(step)
		return s, nil
	}
	caller, why := t.caller(s, n.reg)
	if caller != nil {
		// The call itself is in the code, and was checked to lead here.
		step.Proof = evidence.FromCore
	}
	t.add(step)
	if caller == nil {
		t.lose(why, nil, -1)
		return s, nil
	}
	arg := caller.register(caller.now, n.reg, 0)
	t.nameArgument(caller, arg)
	return caller, arg
}

// caller is the slice of the caller, as long as there are hops left.
func (t *originSearch) caller(s *backwardSlice, r x86.Reg) (*backwardSlice, string) {
	if t.hops--; t.hops < 0 {
		return nil, "the value was followed through enough callers"
	}
	next, why := s.caller(r)
	if next != nil {
		t.guess = t.guess || next.frame.Trust.Guess() || next.unverified
	}
	return next, why
}

// caller opens the frame outward and makes sure that its call leads to the
// function of s; otherwise it says why there is none.
func (s *backwardSlice) caller(r x86.Reg) (*backwardSlice, string) {
	if !passesArgument(r) {
		return nil, fmt.Sprintf("%s carries no argument; it is what the caller left there", r)
	}
	if s.outward != nil {
		return s.outward, ""
	}
	if s.in == nil || s.index+1 >= len(s.in.Frames) || s.hop >= maxSteps {
		return nil, "the caller is not known"
	}
	f := &s.in.Frames[s.index+1]
	if f.Kind == evidence.SignalFrame {
		return nil, "the kernel called this function for a signal"
	}
	next, err := s.newSlice(s.in, s.index+1, f.Registers)
	if err != nil {
		return nil, err.Error()
	}
	if next.now < 0 || next.a.flow.insts[next.now].Flow != x86.FlowCall {
		return nil, fmt.Sprintf("no call precedes the return address in %s", next.a.function.name)
	}
	to, known := next.calledAddress()
	if known && !s.a.function.contains(to) {
		called := nameOf(s.process, to)
		// The frame f is the next slice's caller.
		if next = s.jumper(to, f); next == nil {
			return nil, fmt.Sprintf("the caller called %s, which jumped on to %s by ways that are not known", called, s.a.function.name)
		}
	}
	next.unverified = !known
	s.handOn(next)
	next.hop = s.hop + 1
	s.outward = next
	return next, ""
}

// calledAddress is where the call at s.now goes to: fixed in the code, or as
// far as the pointer that it goes through is still known.
func (s *backwardSlice) calledAddress() (evidence.Addr, bool) {
	in := &s.a.flow.insts[s.now]
	if in.HasTarget {
		return s.callee(evidence.Addr(in.Target)), true
	}
	c, ok := target(in)
	if !ok {
		return 0, false
	}
	v, ok := s.culpritValue(c)
	return s.callee(evidence.Addr(v)), ok
}

// culpritValue is what the culprit of the instruction at s.now held.
func (s *backwardSlice) culpritValue(c culprit) (uint64, bool) {
	n := s.culpritNode(c)
	if n == nil {
		return 0, false
	}
	return n.best()
}

func (s *backwardSlice) culpritNode(c culprit) *node {
	if c.inCell {
		return s.load(s.now, c.operand.Memory, max(c.operand.Size, 1), false, 0)
	}
	return s.register(s.now, c.reg, 0)
}

// handOn makes those registers known in the caller that s has not changed
// since its entry. The dynamic linker's resolver may run in between; it keeps
// all argument registers and rax (glibc, sysdeps/x86_64/dl-trampoline.h).
func (s *backwardSlice) handOn(caller *backwardSlice) {
	for _, r := range callerSaved {
		v, known := s.known(r)
		if !known || r == x86.R10 || r == x86.R11 {
			continue
		}
		if defs := s.definitions(s.now, r); len(defs) == 1 && defs[0] == atEntry {
			caller.registers.Set(image.Register(r), v)
		}
	}
}

// jumper is the function that the caller called and that then jumped to the
// function of s (a tail call), if just one of its jumps leads there. It has
// no frame any more: its stack pointer was back where it started, and the
// registers that callees keep were the caller's again.
func (s *backwardSlice) jumper(entry evidence.Addr, caller *unwind.Frame) *backwardSlice {
	a, err := s.analyse(entry)
	if err != nil {
		return nil
	}
	var found *backwardSlice
	for i := range a.flow.insts {
		in := &a.flow.insts[i]
		if in.Flow != x86.FlowJump && (in.Flow != x86.FlowBranch || !in.HasTarget) {
			continue
		}
		if in.HasTarget && !s.a.function.contains(s.callee(evidence.Addr(in.Target))) {
			continue
		}
		next := s.jumpingAt(a, in, caller)
		if !next.mayJumpTo(s.a.function) {
			continue
		}
		if found != nil {
			return nil
		}
		found = next
	}
	return found
}

// mayJumpTo reports whether one of the ways to the jump at s.now leads to a function: a
// wrapper looks the one up that it is for when it is called first.
func (s *backwardSlice) mayJumpTo(f *function) bool {
	if to, known := s.calledAddress(); known {
		return f.contains(to)
	}
	c, ok := target(&s.a.flow.insts[s.now])
	if !ok || !c.reg.General() {
		return false
	}
	return slices.ContainsFunc(s.definitions(s.now, c.reg), func(d int) bool {
		v, known := s.definedBy(d, c.reg, 0).best()
		return known && f.contains(s.callee(evidence.Addr(v)))
	})
}

// jumpingAt is the slice of a function that has jumped on to the one of s.
func (s *backwardSlice) jumpingAt(a *analysis, in *x86.Inst, caller *unwind.Frame) *backwardSlice {
	f := &unwind.Frame{Kind: evidence.Physical, Trust: evidence.TrustPrologue, CFA: s.frame.CFA, Lookup: image.AtInstruction}
	f.Registers = caller.Registers
	f.Registers.Forget(image.RSP)
	f.Registers.Set(image.RIP, in.PC)
	return s.openSlice(s.in, s.index, f, a, f.Registers)
}

// hasArgument reports whether there is a frame with an index, and a register for the nth integer argument of a call.
func (in *Input) hasArgument(frame, n int) bool {
	return in.Process != nil && frame >= 0 && frame < len(in.Frames) && n >= 0 && n < len(x86.ArgumentRegisters)
}

// CallArgument is the nth integer argument, from 0, that the frame with the
// index passed in its call, if the code before the call tells.
func CallArgument(in Input, frame, n int) (uint64, bool) {
	if !in.hasArgument(frame, n) {
		return 0, false
	}
	s, err := newWorld(&in).newSlice(&in, frame, in.Frames[frame].Registers)
	if err != nil || s.now < 0 || s.a.flow.insts[s.now].Flow != x86.FlowCall {
		return 0, false
	}
	return s.register(s.now, x86.ArgumentRegisters[n], 0).best()
}

// Called is the function that the frame with the index called, behind the stubs
// of the dynamic linker, if the code before the return address tells.
func Called(in Input, frame int) (evidence.Addr, bool) {
	if in.Process == nil || frame < 0 || frame >= len(in.Frames) {
		return 0, false
	}
	s, err := newWorld(&in).newSlice(&in, frame, in.Frames[frame].Registers)
	if err != nil || s.now < 0 || s.a.flow.insts[s.now].Flow != x86.FlowCall {
		return 0, false
	}
	return s.calledAddress()
}

// calledByProgram names the function of a library that the innermost of the
// program's own frames called, "" if there is none: as the program calls it,
// or else by its own name, or else by its library.
func (t *originSearch) calledByProgram() string {
	own := t.in.ownFrames(1)
	if len(own) == 0 || own[0] == 0 || t.in.Frames[own[0]-1].Kind == evidence.SignalFrame {
		return ""
	}
	if name := t.importedName(own[0]); name != "" {
		return name
	}
	f := &t.in.Frames[own[0]-1]
	calls := t.in.calls(f)
	if len(calls) == 0 || calls[len(calls)-1].Site.Function == "" {
		if m := t.process.ModuleAt(f.PC()); m != nil {
			return filepath.Base(m.Path)
		}
		return ""
	}
	name := evidence.ShortName(calls[len(calls)-1].Site.Function)
	if sym, ok := t.process.SymbolAt(f.LookupPC()); ok {
		name = t.in.publicName(name, sym.Addr)
	}
	return plainName(name)
}

// importedName is the name of the stub (PLT) that a frame's call goes
// through.
func (t *originSearch) importedName(frame int) string {
	s, err := t.newSlice(t.in, frame, t.in.Frames[frame].Registers)
	if err != nil || s.now < 0 || !s.a.flow.insts[s.now].HasTarget {
		return ""
	}
	target := evidence.Addr(s.a.flow.insts[s.now].Target)
	to := s.callee(target)
	if sym, ok := t.process.SymbolAt(target); ok && sym.Addr == target && to != target {
		return evidence.ShortName(strings.TrimSuffix(sym.Name, "@plt"))
	}
	return ""
}

// publicName is the name by which programs call a function of the C library
// that goes by an inner one: "fgets" for "_IO_fgets".
func (in *Input) publicName(name string, entry evidence.Addr) string {
	for _, prefix := range []string{"__GI_", "_IO_", "___", "__"} {
		public, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		if s, ok := in.Process.SymbolNamed(public); ok && s.Addr == entry {
			return public
		}
	}
	return name
}

// plainName is the C library's name of a function that it has in variants
// for different processors: "strlen" for "__strlen_avx2".
func plainName(name string) string {
	rest, ok := strings.CutPrefix(name, "__")
	if !ok {
		return name
	}
	for _, variant := range []string{"_avx", "_sse", "_ssse", "_evex", "_erms", "_unaligned", "_generic"} {
		if at := strings.Index(rest, variant); at > 0 {
			return rest[:at]
		}
	}
	return name
}

// passesArgument reports whether a register carries an argument (System V
// ABI, AMD64 supplement, figure 3.4: rax and r10 have uses of their own).
func passesArgument(r x86.Reg) bool {
	switch r {
	case x86.RDI, x86.RSI, x86.RDX, x86.RCX, x86.R8, x86.R9, x86.R10:
		return true
	}
	return false
}

// nameArgument puts the blame into the terms of the program's own function
// when the failing one was a library's.
func (t *originSearch) nameArgument(s *backwardSlice, arg *node) {
	if t.named || !t.in.isOwn(s.frame) {
		return
	}
	t.named = true
	t.place(s)
	b := &t.blame
	e, ok := s.describe(arg, 0)
	if !ok {
		return
	}
	b.Pointer, b.PointerType = e.text, typeName(e.typ)
	if b.Role != RolePointer {
		return
	}
	if bad, role := s.badTerm(arg, b.Role); role == RoleIndex {
		t.bad = bad // the sum on the way back is followed into the index
	}
	b.Accessed, b.AccessedType = "*"+e.text, ""
	if e.typ != nil {
		b.AccessedType = typeName(e.typ.Elem())
	}
}
