package staticscan

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/image/x86"
)

// copies are the functions of the C library that copy from their second
// argument to their first.
var copies = map[string]bool{"memcpy": true, "memmove": true, "mempcpy": true, "strcpy": true, "stpcpy": true, "strncpy": true, "stpncpy": true}

// byLibrary is for a store of a function that the program called: the value is
// told in the terms of its call.
func (t *storeTrail) byLibrary(frame int) bool {
	s := t.calling(frame)
	if s == nil {
		return false
	}
	t.throughCall(s, t.calledByProgram())
	return true
}

// throughCall is for a function of a library that stored: what its call says. The
// slice stands at the call.
func (t *storeTrail) throughCall(s *backwardSlice, name string) {
	t.named = true
	t.place(s)
	t.blame.Through = name
	to, from := t.destination(s, name), s.register(s.now, x86.RSI, 0)
	if e, ok := s.describe(to, 0); ok {
		t.blame.Accessed, t.blame.AccessedType = e.text, typeName(e.typ)
	}
	start, known := to.best()
	if !t.meantWhole(s, to, name) {
		t.meantBy(s, to, 1, true)
		if known && t.From == nil {
			t.meantAt(s, evidence.Addr(start), 1, false)
		}
		if known && t.MeantSize == 0 {
			t.meantThrough(s, evidence.Addr(start))
		}
	}
	step := t.step(s, s.now, evidence.OriginCell)
	switch name := fortified(name); {
	case copies[name]:
		t.copyStep(s, step, from, start, known)
	case name == "memset":
		t.walkBack(s, from)
	default:
		step.Kind = evidence.OriginResult
		step.Symbol, step.Text = name, "it was put there by "+name
		t.add(step)
	}
}

// destination is the argument of a call by which the function was told where to
// store: by what is known of it, or else the one that leads nearest before what it
// stored.
func (t *storeTrail) destination(s *backwardSlice, name string) *node {
	for _, h := range handedTo[fortified(name)] {
		if h.access.Writes() {
			return s.register(s.now, x86.ArgumentRegisters[h.pointer], 0)
		}
	}
	const most = 1 << 16
	nearest, best := lostNode("no argument leads there"), uint64(most)
	for _, r := range x86.ArgumentRegisters {
		n := s.register(s.now, r, 0)
		if v, ok := n.best(); ok && uint64(t.addr)-v < best {
			nearest, best = n, uint64(t.addr)-v
		}
	}
	return nearest
}

// calling opens a frame at its call; of a function that it called itself, with what
// that function has left in the registers.
func (t *storeTrail) calling(frame int) *backwardSlice {
	if frame == 1 {
		if inner, err := t.newSlice(t.in, 0, t.in.Frames[0].Registers); err == nil && inner.now >= 0 {
			if s, _ := inner.caller(x86.RDI); s != nil {
				return s
			}
		}
	}
	s, err := t.newSlice(t.in, frame, t.in.Frames[frame].Registers)
	if err != nil || s.now < 0 || s.a.flow.insts[s.now].Flow != x86.FlowCall {
		return nil
	}
	return s
}

// copyStep says which memory the copied bytes came from.
func (t *storeTrail) copyStep(s *backwardSlice, step evidence.OriginStep, from *node, start uint64, known bool) {
	name, cellName := "memory", ""
	if e, ok := s.describe(from, 0); ok {
		name, cellName = e.text, e.text
		step.Symbol, step.Type = e.text, typeName(e.typ)
	}
	step.Text = fmt.Sprintf("it was copied by %s from %s", t.blame.Through, name)
	source, ok := from.best()
	if ok && known && uint64(t.addr) >= start {
		offset := uint64(t.addr) - start
		cell := evidence.Addr(source + offset)
		step.Cell = &cell
		step.Text += fmt.Sprintf(" at %v, %d bytes from its start", cell, offset)
		b := &t.blame
		b.Cell, b.CellSize, b.CellName, b.Loaded = &cell, 1, cellName, t.blame.Site
	}
	t.add(step)
}
