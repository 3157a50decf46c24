package staticscan

import (
	"errors"
	"fmt"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	typed "diagnose/image/value"
	"diagnose/image/x86"
)

// RoleValue is the part of a value that a store put into memory.
const RoleValue Role = "value"

// Store is what put a value into a word of memory.
type Store struct {
	// Blame says what the program calls the memory (Accessed), what it stored
	// there (Pointer, as far as it has a name) and where that came from. Its Cell
	// is the memory that the value was read from.
	Blame
	// Width is how many bytes the instruction stored; 0: not known. At is where it stored them; nil: not known.
	Width int
	At    *evidence.Addr
	// Again says that the value was made from the one that the word had before.
	Again bool
	// From is the address that the code started from, a variable's or a pointer's,
	// nil if it is not known. Meant names what is there, and MeantSize is the size
	// of it, 0 for what a pointer leads to: a store outside is out of bounds.
	From      *evidence.Addr
	Meant     string
	MeantSize uint64
	// Holder is the memory that the pointer was read from which led there; nil if it was in none, or
	// if that is not known.
	Holder *evidence.Addr
}

// Stored goes back from a store. The first frame's pc is the instruction that
// has just stored the byte at addr; nothing was executed since.
func Stored(in Input, addr evidence.Addr, opts OriginOptions) (Store, error) {
	if in.Process == nil || len(in.Frames) == 0 {
		return Store{}, errors.New(notKnown + "no process or no frames")
	}
	st := newStoreTrail(&in, addr, opts)
	if err := st.start(); err != nil {
		return Store{}, fmt.Errorf(notKnown+"%w", err)
	}
	return st.result(), nil
}

func newStoreTrail(in *Input, addr evidence.Addr, opts OriginOptions) *storeTrail {
	if opts.Hops <= 0 {
		opts.Hops = defaultHops
	}
	t := &originSearch{in: in, processView: newWorld(in), hops: opts.Hops}
	t.blame.Role = RoleValue
	st := &storeTrail{originSearch: t, addr: addr}
	if opts.Before != nil {
		t.memory = &overlay{in.Process, *opts.Before}
		st.word = *opts.Before
	}
	return st
}

func (t *storeTrail) result() Store {
	t.Blame = t.blame
	return t.Store
}

// storeTrail is the work of one Stored.
type storeTrail struct {
	*originSearch
	Store
	addr evidence.Addr
	// word is what the store overwrote, as far as it is looked at; empty: not known.
	word Overwritten
}

func (t *storeTrail) start() error {
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
func (t *storeTrail) byInstruction(s *backwardSlice) {
	in := &s.a.flow.insts[s.now]
	to := storeOperand(in)
	if to == nil {
		t.lose("the instruction is not known to write to memory: "+in.Text(), s, s.now)
		return
	}
	t.describeAccess(s, to)
	t.Width = to.Size
	if at, known := to.Memory.Address(s.known); known && !to.Implicit {
		t.At = addrOf(at)
	}
	size, varies := s.stores(to)
	t.meantBy(s, s.addressOf(s.now, &to.Memory, 0), size, varies)
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
	case strings.HasPrefix(in.Op, "movs") && to.Memory.Base == x86.RDI && from.IsMemory && t.copiedByString(s):
	case from.IsMemory:
		t.copied(s, s.load(s.now, from.Memory, max(from.Size, 1), false, 0))
	case from.Reg.General():
		n := s.register(s.now, from.Reg, 0)
		if t.Again {
			t.againStep(s)
			t.blame.Split = n.varies(0)
		}
		t.describeValue(s, n, RoleValue)
		t.walkBack(s, n)
	default:
		offset, size := t.partOf(s, to)
		if n := s.inVector(s.now, from.RegName, offset, size); n != nil {
			t.copied(s, n)
			return
		}
		t.lose("it was in a vector register, whose value is not followed", s, s.now)
	}
}

// partOf is where the word that is looked at lies in what an instruction stored, and how
// much of it. The byte that the store changed first is no element's beginning.
func (t *storeTrail) partOf(s *backwardSlice, to *x86.Operand) (offset, size int) {
	start, end := t.addr, t.addr+vectorHalf
	if t.word.Addr <= t.addr && t.addr < t.word.end() {
		start, end = t.word.Addr, t.word.end()
	}
	if at, known := to.Memory.Address(s.known); known {
		start, end = max(start, evidence.Addr(at)), min(end, evidence.Addr(at)+evidence.Addr(to.Size))
		offset = int(start - evidence.Addr(at))
	}
	for size = vectorHalf; size > 1 && evidence.Addr(size) > end-start; {
		size /= 2
	}
	return offset, size
}

func (t *storeTrail) againStep(s *backwardSlice) {
	step := t.step(s, s.now, evidence.OriginCell)
	step.Text = "it was made from the value that was there before"
	step.Symbol, step.Cell = t.blame.Accessed, &t.addr
	step.Proof = evidence.FromCore
	t.add(step)
}

func (t *storeTrail) copied(s *backwardSlice, n *node) {
	if n == nil {
		t.lose("it is of a size that is not followed", s, s.now)
		return
	}
	t.describeValue(s, n, RoleValue)
	t.walkBack(s, n)
}

// storeOperand is the memory operand that an instruction writes.
func storeOperand(in *x86.Inst) *x86.Operand {
	for n := range in.Operands {
		if op := &in.Operands[n]; op.IsMemory && op.Access.Writes() {
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
		case op.IsMemory && op.Access.Writes():
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
func (t *storeTrail) meantBy(s *backwardSlice, n *node, size int, varies bool) {
	terms, offset := linear(n)
	if t.isDataOrTLS(uint64(offset)) {
		t.meantData(s, evidence.Addr(offset), size, varies || len(terms) > 0)
		t.meantArray(s, evidence.Addr(offset), terms)
		return
	}
	for i, x := range terms {
		if start, ok := s.frameAddress(x); ok {
			at := start + evidence.Addr(offset)
			if len(terms) == 2 {
				at = s.arrayNear(at, terms[1-i].factor)
			}
			t.meantLocal(s, at, size, varies || len(terms) > 1, terms[i].node.pos)
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
	if start.op == opLoad {
		if at, ok := s.location(start); ok {
			t.Holder = &at
		}
	}
	v, ok := start.best()
	if !ok {
		if v, ok = pointer.best(); !ok {
			return
		}
	}
	e, ok := s.describe(pointer, 0)
	if !ok && len(terms) == 1 && !varies && t.meantPart(s, evidence.Addr(v), offset, size) {
		return
	}
	indexed, moved := varies || len(terms) > 1, start != pointer
	if ok && indexed && !moved && t.meantMember(e, evidence.Addr(v), offset, size) {
		return
	}
	t.meantAt(s, evidence.Addr(v), targetSize(e.typ), moved)
	if ok && t.MeantSize == 0 {
		t.Meant = "*" + grouped(e.text)
		if indexed && moved {
			t.meantMember(e, evidence.Addr(v), offset, size)
		}
	}
}

// meantPart is for a register that no variable of the program's is in, with an address in a variable: where a function
// returns a struct, that of the result. It may be the address of any part that begins there, so what is at a constant offset from it
// in the variable is meant.
func (t *storeTrail) meantPart(s *backwardSlice, start evidence.Addr, offset int64, size int) bool {
	addr := start + evidence.Addr(offset)
	if offset < 0 || size <= 0 {
		return false
	}
	end := addr + evidence.Addr(size)
	if v, ok := s.memoryVariable(start, s.now); ok {
		if v.Type == nil || end > v.addr+evidence.Addr(v.Type.Size()) {
			return false
		}
		t.meantLocal(s, addr, size, false, s.now)
		return true
	}
	if g, ok := t.globalAt(start, s.codeAt(s.now)); ok && t.isData(uint64(start)) && end <= g.addr+evidence.Addr(g.size) {
		t.meantData(s, addr, size, false)
		return true
	}
	return false
}

// pointerOf is the summand that is the pointer; of one alone nothing else can be.
func pointerOf(s *backwardSlice, terms []term) *node {
	if i := s.pointerTerm(terms); i >= 0 {
		return terms[i].node
	}
	if len(terms) == 1 && terms[0].factor == 1 {
		return terms[0].node
	}
	return nil
}

// meantMember is for an index into an array in the struct that a pointer leads to; false: there is none.
func (t *storeTrail) meantMember(e expression, start evidence.Addr, offset int64, size int) bool {
	if e.typ == nil || e.typ.Kind() != debuginfo.KindPointer || e.typ.Elem() == nil {
		return false
	}
	kind := e.typ.Elem().Kind()
	if kind != debuginfo.KindStruct && kind != debuginfo.KindUnion || offset < 0 || offset >= e.typ.Elem().Size() {
		return false
	}
	p := walk(e.typ.Elem(), offset, int64(max(size, 1)), true)
	if p.array == nil || p.size <= 0 {
		return false
	}
	at := start + evidence.Addr(p.offset)
	t.From, t.Meant, t.MeantSize = &at, grouped(e.text)+"->"+strings.TrimPrefix(withoutIndex(p.path), "."), uint64(p.size)
	return true
}

// meantThrough is for an address that the code has no formula for any more: a
// pointer variable in scope leads to a struct with an array that starts there.
func (t *storeTrail) meantThrough(s *backwardSlice, at evidence.Addr) {
	frame := s.typedFrame()
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

// meantData is for static data. With an index, compilers put constants of the program into the address, which may then be before the variable that is
// meant: what is at the address is meant only if it may have elements.
func (t *storeTrail) meantData(s *backwardSlice, addr evidence.Addr, size int, varies bool) {
	g, ok := t.globalAt(addr, s.codeAt(s.now))
	if varies && (!ok || g.typ != nil && !hasParts(g.typ)) {
		return
	}
	n := s.nameData(addr, max(size, 1), varies, s.codeAt(s.now))
	beyond := !varies && n.size > 0 && addr+evidence.Addr(size) > n.addr+evidence.Addr(n.size)
	if ok && (varies && n.array == nil || beyond) && g.size > 0 {
		t.From, t.Meant, t.MeantSize = &g.addr, g.name, g.size
	} else if n.size > 0 {
		t.From, t.Meant, t.MeantSize = &n.addr, withoutIndex(n.name), uint64(n.size)
	}
}

// hasParts reports whether a variable of a type may have elements.
func hasParts(t debuginfo.Type) bool {
	switch t.Kind() {
	case debuginfo.KindArray, debuginfo.KindStruct, debuginfo.KindUnion:
		return true
	}
	return false
}

// meantArray is for an index with a constant that the compiler has put into the
// address: what is there is no array, but one of such elements lies beside it.
func (t *storeTrail) meantArray(s *backwardSlice, addr evidence.Addr, terms []term) {
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
func (t *storeTrail) meantLocal(s *backwardSlice, addr evidence.Addr, size int, varies bool, pos int) {
	t.From = &addr
	v, ok := s.memoryVariable(addr, pos)
	if !ok {
		if v, ok = s.memoryVariable(addr, s.now); !ok {
			return
		}
	}
	p := walk(v.Type, int64(addr-v.addr), int64(max(size, 1)), varies)
	if varies && p.array == nil || !varies && !p.covers(int64(addr-v.addr), int64(size)) {
		p = part{size: v.Type.Size()}
	}
	at := v.addr + evidence.Addr(p.offset)
	t.From, t.Meant, t.MeantSize = &at, withoutIndex(v.Name+p.path), uint64(max(p.size, 0))
}

// arrayNear is for an index with a constant that the compiler has put into the address:
// the beginning of the local array of elements of that size which is nearest, if the
// address is in no variable.
func (s *backwardSlice) arrayNear(addr evidence.Addr, element int64) evidence.Addr {
	if _, ok := s.memoryVariable(addr, s.now); ok {
		return addr
	}
	found, nearest := addr, evidence.Addr(64)
	for _, v := range s.visible(s.now) {
		if !v.inMemory || v.Type.Kind() != debuginfo.KindArray || v.Type.Elem() == nil || v.Type.Elem().Size() != element {
			continue
		}
		if d := max(v.addr, addr) - min(v.addr, addr); d < nearest {
			found, nearest = v.addr, d
		}
	}
	return found
}

// targetSize is the size of the struct that a pointer leads to, or else 1: a pointer to a number may lead into an array of them.
func targetSize(pointer debuginfo.Type) int {
	if pointer == nil || pointer.Kind() != debuginfo.KindPointer || pointer.Elem() == nil {
		return 1
	}
	switch t := pointer.Elem(); t.Kind() {
	case debuginfo.KindStruct, debuginfo.KindUnion:
		return int(min(max(t.Size(), 1), maxStruct))
	}
	return 1
}

// maxStruct bounds the size of a struct that a pointer leads to.
const maxStruct = 1 << 30

// meantAt is for the variable at an address, which may be no variable's, or the part of it that has the size. Of an array, or where a loop
// moved the pointer on, it is all elements.
func (t *storeTrail) meantAt(s *backwardSlice, addr evidence.Addr, size int, moved bool) {
	t.From = &addr
	if v, ok := s.memoryVariable(addr, s.now); ok {
		t.meantLocal(s, addr, size, moved || v.Type.Kind() == debuginfo.KindArray, s.now)
		return
	}
	if t.isData(uint64(addr)) {
		g, ok := t.globalAt(addr, s.codeAt(s.now))
		t.meantData(s, addr, size, moved || size == 1 || ok && g.typ != nil && g.typ.Kind() == debuginfo.KindArray)
	}
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
