package staticscan

import (
	"errors"
	"fmt"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	typed "diagnose/image/value"
	"diagnose/internal/x86"
)

// RoleValue is the part of a value that a store put into memory.
const RoleValue Role = "value"

// Store is what put a value into a word of memory.
type Store struct {
	// Blame says what the program calls the memory (Accessed), what it stored
	// there (Pointer, as far as it has a name) and where that came from. Its Cell
	// is the memory that the value was read from.
	Blame
	// Width is how many bytes the instruction stored; 0: not known.
	Width int
	// Again says that the value was made from the one that the word had before.
	Again bool
	// From is the address that the code started from, a variable's or a pointer's,
	// nil if it is not known. Meant names what is there, and MeantSize is the size
	// of it, 0 for what a pointer leads to: a store outside is out of bounds.
	From      *evidence.Addr
	Meant     string
	MeantSize uint64
}

// Stored goes back from a store. The first frame's pc is the instruction that
// has just stored the byte at addr; nothing was executed since.
func Stored(in Input, addr evidence.Addr, opts OriginOptions) (Store, error) {
	if in.Process == nil || len(in.Frames) == 0 {
		return Store{}, errors.New(notKnown + "no process or no frames")
	}
	if opts.Hops <= 0 {
		opts.Hops = defaultHops
	}
	t := &trail{in: &in, world: newWorld(&in), hops: opts.Hops}
	st := &storeTrail{trail: t, addr: addr}
	if err := st.start(); err != nil {
		return Store{}, fmt.Errorf(notKnown+"%w", err)
	}
	st.Blame = t.blame
	return st.Store, nil
}

// storeTrail is the work of one Stored.
type storeTrail struct {
	*trail
	Store
	addr evidence.Addr
}

func (t *storeTrail) start() error {
	t.blame.Role = RoleValue
	own := t.in.ownFrames(1)
	if len(own) > 0 && own[0] > 0 {
		if t.byLibrary(own[0]) {
			return nil
		}
	}
	s, err := t.newSlice(t.in, 0, t.in.Frames[0].Registers)
	if err != nil {
		return err
	}
	if s.now < 0 {
		return fmt.Errorf("the code before %v does not decode to it", t.in.Frames[0].PC())
	}
	t.place(s)
	t.named = t.in.isOwn(s.frame)
	t.byInstruction(s)
	return nil
}

// byInstruction is for a store of the function's own.
func (t *storeTrail) byInstruction(s *slice) {
	in := &s.a.flow.insts[s.now]
	to := storeOperand(in)
	if to == nil {
		t.lose("the instruction is not known to write to memory: "+in.Text(), s, s.now)
		return
	}
	t.describeAccess(s, to)
	t.Width = to.Size
	t.meantBy(s, s.addressOf(s.now, &to.Memory, 0), to.Size, false)
	t.Again = to.Access == evidence.ReadWrite
	from, ok := source(in)
	switch {
	case in.Op == "xchg" || in.Op == "xadd" || in.Op == "cmpxchg":
		t.lose("the instruction exchanged it with a register", s, s.now)
	case !ok:
		if t.Again {
			t.againStep(s)
			return
		}
		t.lose("what it stored is in no operand: "+in.Text(), s, s.now)
	case from.IsImm:
		if t.Again {
			t.againStep(s)
			return
		}
		t.walkBack(s, constNode(uint64(from.Imm), s.now))
	case from.IsMemory:
		t.copied(s, s.load(s.now, from.Memory, max(from.Size, 1), false, 0))
	case from.Reg.General():
		if t.Again {
			t.againStep(s)
		}
		n := s.register(s.now, from.Reg, 0)
		t.describeValue(s, n, RoleValue)
		t.walkBack(s, n)
	default:
		t.byVector(s, from.Reg)
	}
}

func (t *storeTrail) againStep(s *slice) {
	step := t.step(s, s.now, evidence.OriginCell)
	step.Text = "it was made from the value that was there before"
	step.Symbol, step.Cell = t.blame.Accessed, &t.addr
	step.Proof = evidence.FromCore
	t.add(step)
}

func (t *storeTrail) copied(s *slice, n *node) {
	t.describeValue(s, n, RoleValue)
	t.walkBack(s, n)
}

// storeOperand is the memory operand that an instruction writes.
func storeOperand(in *x86.Inst) *x86.Operand {
	for n := range in.Operands {
		if op := &in.Operands[n]; op.IsMemory && writes(op.Access) {
			return op
		}
	}
	return nil
}

// source is the operand whose value is stored: the one behind the memory, of
// push and string instructions the implied one.
func source(in *x86.Inst) (*x86.Operand, bool) {
	if in.Op == "push" {
		return explicit(in, 0)
	}
	seen := false
	for n := range in.Operands {
		op := &in.Operands[n]
		switch {
		case op.IsMemory && writes(op.Access):
			seen = true
		case seen && !op.Implicit:
			return op, true
		}
	}
	for n := range in.Operands {
		if op := &in.Operands[n]; op.IsMemory && op.Access == evidence.Read {
			return op, true
		}
	}
	return nil, false
}

// meantBy finds what an address was built on: a global, a local of the function,
// or what a pointer leads to; of an array in it, the array.
func (t *storeTrail) meantBy(s *slice, n *node, size int, varies bool) {
	terms, offset := linear(n)
	if t.isDataOrTLS(uint64(offset)) {
		t.meantData(s, evidence.Addr(offset), size, varies || len(terms) > 0)
		t.meantArray(s, evidence.Addr(offset), terms)
		return
	}
	for i, x := range terms {
		if start, ok := s.frameAddress(x); ok {
			t.meantLocal(s, start+evidence.Addr(offset), size, varies || len(terms) > 1, terms[i].node.pos)
			return
		}
	}
	pointer := pointerOf(s, terms)
	if pointer == nil {
		return
	}
	start := pointer
	for range maxDepth {
		if start.op != opCopy || start.a == nil {
			break
		}
		start = start.a // where a loop began to move it on
	}
	v, ok := start.best()
	if !ok {
		if v, ok = pointer.best(); !ok {
			return
		}
	}
	t.meantAt(s, evidence.Addr(v))
	if e, ok := s.describe(pointer, 0); ok && t.MeantSize == 0 {
		t.Meant = "*" + grouped(e.text)
		t.meantMember(e, evidence.Addr(v), offset, size, varies || len(terms) > 1)
	}
}

// pointerOf is the summand that is the pointer; of one alone nothing else can be.
func pointerOf(s *slice, terms []term) *node {
	if i := s.pointerTerm(terms); i >= 0 {
		return terms[i].node
	}
	if len(terms) == 1 && terms[0].factor == 1 {
		return terms[0].node
	}
	return nil
}

// meantMember is for an array in the struct that a pointer leads to.
func (t *storeTrail) meantMember(e expression, start evidence.Addr, offset int64, size int, varies bool) {
	if e.typ == nil || e.typ.Kind() != debuginfo.KindPointer || e.typ.Elem() == nil {
		return
	}
	kind := e.typ.Elem().Kind()
	if kind != debuginfo.KindStruct && kind != debuginfo.KindUnion || offset < 0 || offset >= e.typ.Elem().Size() {
		return
	}
	p := walk(e.typ.Elem(), offset, int64(max(size, 1)), varies)
	if p.array == nil || p.size <= 0 {
		return
	}
	at := start + evidence.Addr(p.offset)
	t.From, t.Meant, t.MeantSize = &at, grouped(e.text)+"->"+strings.TrimPrefix(withoutIndex(p.path), "."), uint64(p.size)
}

// meantThrough is for an address that the code has no formula for any more: a
// pointer variable in scope leads to a struct with an array that starts there.
func (t *storeTrail) meantThrough(s *slice, at evidence.Addr) {
	frame := &typed.Frame{Process: s.process, Thread: s.thread, Module: s.a.function.module, Registers: s.registers, CFA: s.frame.CFA}
	for _, v := range s.visible(s.now) {
		if v.Type.Kind() != debuginfo.KindPointer || v.Type.Elem() == nil || v.Type.Elem().Kind() != debuginfo.KindStruct || v.Name == "" {
			continue
		}
		start := typed.Read(frame, v.Variable, typed.Options{}).Value.Address
		if start == nil || at < *start || at-*start >= evidence.Addr(v.Type.Elem().Size()) {
			continue
		}
		p := walk(v.Type.Elem(), int64(at-*start), 1, true)
		if first := *start + evidence.Addr(p.offset); p.array != nil && first == at {
			t.From, t.Meant, t.MeantSize = &at, v.Name+"->"+strings.TrimPrefix(withoutIndex(p.path), "."), uint64(p.size)
			return
		}
	}
}

// withoutIndex cuts the index off that is not known.
func withoutIndex(path string) string {
	if i := strings.Index(path, "["); i > 0 {
		return path[:i]
	}
	return path
}

// meantData is for static data.
func (t *storeTrail) meantData(s *slice, addr evidence.Addr, size int, varies bool) {
	n := s.nameData(addr, max(size, 1), varies, s.codeAt(s.now))
	if g, ok := t.globalAt(addr, s.codeAt(s.now)); ok && varies && n.array == nil && g.size > 0 {
		t.From, t.Meant, t.MeantSize = &g.addr, g.name, g.size
	} else if n.size > 0 {
		t.From, t.Meant, t.MeantSize = &n.addr, withoutIndex(n.name), uint64(n.size)
	}
}

// meantArray is for an index with a constant that the compiler has put into the
// address: what is there is no array, but one of such elements lies beside it.
func (t *storeTrail) meantArray(s *slice, addr evidence.Addr, terms []term) {
	g, ok := t.globalAt(addr, s.codeAt(s.now))
	if !ok || g.typ == nil || g.typ.Kind() != debuginfo.KindStruct || len(terms) != 1 || t.MeantSize != g.size {
		return
	}
	var found *debuginfo.Member
	distance := int64(0)
	members := g.typ.Members()
	for i := range members {
		m := &members[i]
		if m.Type == nil || m.Type.Kind() != debuginfo.KindArray || m.Type.Elem() == nil || m.Type.Elem().Size() != terms[0].factor {
			continue
		}
		d := m.Offset - int64(addr-g.addr)
		if d = max(d, -d); found == nil || d < distance {
			found, distance = m, d
		}
	}
	if found != nil {
		at := g.addr + evidence.Addr(found.Offset)
		t.From, t.Meant, t.MeantSize = &at, g.name+"."+found.Name, uint64(found.Type.Size())
	}
}

// meantLocal is for a variable in the function's frame.
func (t *storeTrail) meantLocal(s *slice, addr evidence.Addr, size int, varies bool, pos int) {
	t.From = &addr
	v, ok := s.memoryVariable(addr, pos)
	if !ok {
		if v, ok = s.memoryVariable(addr, s.now); !ok {
			return
		}
	}
	p := walk(v.Type, int64(addr-v.addr), int64(max(size, 1)), varies)
	if varies && p.array == nil {
		p = part{size: v.Type.Size()}
	}
	at := v.addr + evidence.Addr(p.offset)
	t.From, t.Meant, t.MeantSize = &at, v.Name+withoutIndex(p.path), uint64(max(p.size, 0))
}

// meantAt is for the variable at an address, which may be no variable's.
func (t *storeTrail) meantAt(s *slice, addr evidence.Addr) {
	t.From = &addr
	if v, ok := s.memoryVariable(addr, s.now); ok {
		t.meantLocal(s, addr, 1, v.Type.Kind() == debuginfo.KindArray, s.now)
		return
	}
	if t.isData(uint64(addr)) {
		t.meantData(s, addr, 1, true)
	}
}

// maxBeforeVector is how far before a vector store its load is looked for.
const maxBeforeVector = 16

// byVector finds the load that a vector register was filled by, in the
// instructions before.
func (t *storeTrail) byVector(s *slice, r x86.Reg) {
	insts := s.a.flow.insts
	for i := s.now - 1; i >= 0 && i >= s.now-maxBeforeVector; i-- {
		in := &insts[i]
		if in.Flow != x86.FlowNext {
			break
		}
		to, ok := explicit(in, 0)
		if !ok || to.IsMemory || to.Reg != r || !writes(to.Access) {
			continue
		}
		if from, ok := explicit(in, 1); ok && from.IsMemory {
			t.copied(s, s.load(i, from.Memory, max(from.Size, 1), false, 0))
			return
		}
		break
	}
	t.lose("it was in a vector register, whose value is not followed", s, s.now)
}

// copies are the functions of the C library that copy from their second
// argument to their first.
var copies = map[string]bool{"memcpy": true, "memmove": true, "mempcpy": true, "strcpy": true, "stpcpy": true, "strncpy": true,
	"stpncpy": true, "memcpy_chk": true, "memmove_chk": true, "strcpy_chk": true, "strncpy_chk": true}

// byLibrary is for a store of a function that the program called: the value is
// told in the terms of its call.
func (t *storeTrail) byLibrary(frame int) bool {
	s := t.calling(frame)
	if s == nil {
		return false
	}
	t.named = true
	t.place(s)
	t.blame.Through = t.calledByProgram()
	to, from := s.register(s.now, x86.RDI, 0), s.register(s.now, x86.RSI, 0)
	if e, ok := s.describe(to, 0); ok {
		t.blame.Accessed, t.blame.AccessedType = e.text, typeName(e.typ)
	}
	start, known := to.best()
	t.meantBy(s, to, 1, true)
	if known && t.From == nil {
		t.meantAt(s, evidence.Addr(start))
	}
	if known && t.MeantSize == 0 {
		t.meantThrough(s, evidence.Addr(start))
	}
	step := t.step(s, s.now, evidence.OriginCell)
	switch name := t.blame.Through; {
	case copies[name]:
		t.copyStep(s, step, from, start, known)
	case name == "memset":
		t.walkBack(s, from)
	default:
		step.Kind = evidence.OriginResult
		step.Symbol, step.Text = name, "it was put there by "+name
		t.add(step)
	}
	return true
}

// calling opens a frame at its call; of a function that it called itself, with what
// that function has left in the registers.
func (t *storeTrail) calling(frame int) *slice {
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
func (t *storeTrail) copyStep(s *slice, step evidence.OriginStep, from *node, start uint64, known bool) {
	name := "memory"
	if e, ok := s.describe(from, 0); ok {
		name = e.text
		step.Symbol, step.Type = e.text, typeName(e.typ)
	}
	step.Text = fmt.Sprintf("it was copied by %s from %s", t.blame.Through, name)
	source, ok := from.best()
	if ok && known && uint64(t.addr) >= start {
		offset := uint64(t.addr) - start
		cell := evidence.Addr(source + offset)
		step.Cell = &cell
		step.Text += fmt.Sprintf(" at %v, %d bytes behind its start", cell, offset)
		b := &t.blame
		b.Cell, b.CellSize, b.CellName, b.Loaded = &cell, 1, name, t.blame.Site
	}
	t.add(step)
}

// AtStore makes the frames of a process that stands right behind a store those
// of the store itself.
func AtStore(in Input, pc evidence.Addr) Input {
	if len(in.Frames) == 0 {
		return in
	}
	frames := append(in.Frames[:0:0], in.Frames...)
	first := &frames[0]
	first.Registers.Set(image.RIP, uint64(pc))
	first.Lookup = image.AtInstruction
	first.Calls = nil
	in.Frames = frames
	return in
}

// Read is the memory that the innermost frame's instruction is about to read, and
// what the program calls it, as far as it has words; ok is false if it reads none,
// or it is not known where.
func Read(in Input) (addr evidence.Addr, size int, name string, ok bool) {
	if in.Process == nil || len(in.Frames) == 0 {
		return 0, 0, "", false
	}
	s, err := newWorld(&in).newSlice(&in, 0, in.Frames[0].Registers)
	if err != nil || s.now < 0 {
		return 0, 0, "", false
	}
	inst := &s.a.flow.insts[s.now]
	for n := range inst.Operands {
		op := &inst.Operands[n]
		if !op.IsMemory || op.Access != evidence.Read && op.Access != evidence.ReadWrite || op.Memory.Segment != x86.SegNone {
			continue
		}
		if at, known := op.Memory.Address(s.known); known {
			e, _ := s.describePlace(s.addressOf(s.now, &op.Memory, 0), op.Size, s.now, 0)
			return evidence.Addr(at), op.Size, e.text, true
		}
	}
	return 0, 0, "", false
}
