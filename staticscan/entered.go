package staticscan

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/x86"
)

// EnteredWith is the nth integer argument, from 0, that the function of a frame was entered with. It is told by
// where that function, and those that it handed the argument on to, still have it, by whatever way the call was reached:
// in a register that calls keep, or in the frame, as it was or with a constant added. Nothing is asked of the caller,
// which may have jumped to the function. ok is false if no frame has the argument, or if two disagree.
func EnteredWith(in Input, frame, n int) (v uint64, ok bool) {
	if !in.hasArgument(frame, n) {
		return 0, false
	}
	e := entrySearch{in: &in, view: newWorld(&in)}
	e.look(frame, x86.ArgumentRegisters[n], 0)
	return e.value, e.found && !e.disagree
}

// JumpedOnWith is the nth integer argument of the function at entry, which jumped on to the function of a frame: a
// tail call, after which it has no frame of its own. ok is false if it does not do so, or if its jumps differ in where
// they leave the argument; else as EnteredWith.
func JumpedOnWith(in Input, frame, n int, entry evidence.Addr) (v uint64, ok bool) {
	if !in.hasArgument(frame, n) {
		return 0, false
	}
	e := entrySearch{in: &in, view: newWorld(&in)}
	a, err := e.view.analyse(entry)
	if err != nil || a.function.entry != entry || len(a.flow.orphans) > 0 {
		return 0, false
	}
	f := run(a.flow.graph, e.view.surroundings(), x86.ArgumentRegisters[n])
	for _, c := range e.view.leaves(a) {
		if !e.view.beginsAt(c.To, &in.Frames[frame]) {
			continue
		}
		at, _ := f.index(uint64(c.PC))
		st := f.before(at)
		before := e.looked
		for _, to := range x86.ArgumentRegisters {
			if v := st.regs[to]; v.isEntered() {
				e.look(frame, to, uint64(v.off))
			}
		}
		e.disagree = e.disagree || e.looked == before // by this way nothing has the argument
	}
	return e.value, e.found && !e.disagree
}

// entrySearch looks for an argument in the frames that it was handed on to.
type entrySearch struct {
	in              *Input
	view            *processView
	value           uint64
	found, disagree bool
	looked          int // frames, each for one register
}

// mostLooked bounds the frames that are looked at.
const mostLooked = 32

// look searches one frame, whose function was entered with the argument plus added in a register.
func (e *entrySearch) look(frame int, r x86.Reg, added uint64) {
	f := &e.in.Frames[frame]
	if e.looked++; e.looked > mostLooked || f.Kind == evidence.SignalFrame || f.Trust.Guess() {
		return
	}
	s, err := e.view.newSlice(e.in, frame, f.Registers)
	if err != nil || s.now < 0 || len(s.a.flow.orphans) > 0 {
		return
	}
	st := run(s.a.flow.graph, e.view.surroundings(), r).before(s.now)
	for _, kept := range x86.KeptRegisters {
		if v, known := s.known(kept); known && st.regs[kept].isEntered() {
			e.add(v - uint64(st.regs[kept].off) - added)
		}
	}
	for _, w := range st.slots {
		if w.base != 0 || !w.value.isEntered() || s.entrySP == 0 || s.a.stackAddresses[value{kind: stack, off: w.off}] {
			continue
		}
		if v, err := image.Uint64(s.memory, s.entrySP+evidence.Addr(w.off)); err == nil {
			e.add(v - uint64(w.value.off) - added)
		}
	}
	if !s.callsInner() {
		return
	}
	for _, to := range x86.ArgumentRegisters {
		if v := st.regs[to]; v.isEntered() {
			e.look(frame-1, to, added+uint64(v.off))
		}
	}
}

func (e *entrySearch) add(v uint64) {
	e.disagree = e.disagree || e.found && e.value != v
	e.value, e.found = v, true
}

// isEntered reports whether a value differs by a known number from that of the register that is followed.
func (v value) isEntered() bool { return v.kind == entered && !v.varies }

// callsInner reports whether the call at s.now leads straight to the function of the next inner frame.
func (s *backwardSlice) callsInner() bool {
	if s.index == 0 || s.a.flow.insts[s.now].Flow != x86.FlowCall {
		return false
	}
	inner := &s.in.Frames[s.index-1]
	to, known := s.calledAddress()
	return known && inner.Kind == evidence.Physical && s.beginsAt(to, inner)
}

// beginsAt reports whether the function that covers a frame begins at an address.
func (w *processView) beginsAt(entry evidence.Addr, f *unwind.Frame) bool {
	a, err := w.analyse(f.LookupPC())
	return err == nil && a.function.entry == entry
}
