package expected

import (
	"slices"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
	"diagnose/image/x86"
)

// mostNulls bounds the pointers of which each may be the one: more say nothing.
const mostNulls = 4

// nullPage is below the lowest address that a program can map (mmap_min_addr(5)).
const nullPage = 64 << 10

// Null returns the pointers of which one is null, where neither a register nor its origin tells which one is. They are those
// that the failing statement uses, whose types have such a member, and that are not known to have another value; without the
// source those that the debug information says are null.
func Null(in Input) []evidence.LikelyNull {
	if !in.usable() || in.Failure.Kind != evidence.NullPointer || in.Failure.Fault == nil {
		return nil
	}
	f := in.Failure.Fault
	frame, level := in.siteFrame()
	if frame != 0 || f.Addr >= nullPage || f.Access == evidence.Execute || !fromNull(&in) {
		return nil
	}
	s := in.scopeAt(frame, level)
	if s == nil {
		return nil
	}
	var list []evidence.LikelyNull
	if src, _ := in.code(in.Failure.Site); src != nil {
		statement, _ := statementAt(src, in.Failure.Site)
		list = s.nullsIn(statement, f)
	} else {
		list = s.nullVariables(f)
	}
	if known := slices.DeleteFunc(slices.Clone(list), func(x evidence.LikelyNull) bool { return !x.Null }); len(known) > 0 {
		list = known
	}
	if len(list) > mostNulls {
		return nil
	}
	return list
}

// fromNull reports whether the failing instruction accesses memory at an address that is fixed in it, or at a fixed distance from
// a register that is zero and that the program has no name for.
func fromNull(in *Input) bool {
	regs := &in.Frames[0].Registers
	var code [15]byte
	n, _ := in.Process.ReadMemory(regs.PC(), code[:])
	inst, err := x86.Decode(code[:max(n, 0)], uint64(regs.PC()))
	if err != nil {
		return false
	}
	found := false
	for i := range inst.Operands {
		o := &inst.Operands[i]
		if !o.IsMemory || o.Access == "" {
			continue
		}
		m := &o.Memory
		at, exact := m.Address(func(r x86.Reg) (uint64, bool) { return regs.Get(r) })
		if m.Segment != x86.SegNone || !exact || evidence.Addr(at) != in.Failure.Fault.Addr {
			return false
		}
		if !m.Absolute {
			base, known := regs.Get(m.Base)
			if m.Index != x86.RegNone || !known || base != 0 || in.named() {
				return false
			}
		}
		found = true
	}
	return found
}

// named reports whether the scan found a name of the program's for the bad pointer, which is a register's otherwise.
func (in *Input) named() bool {
	b := in.Blame
	return b != nil && b.Role != "" && (b.Cell != nil || b.Result != "" || b.Pointer != b.Register)
}

// statementAt are the tokens of the statement that has a place, between braces; the whole line, if the place has no column. braced: a
// brace opens at its end, or the tokens are in the braces of an initialiser.
func statementAt(list []token, site *evidence.Site) (statement []token, braced bool) {
	if site.Column == 0 {
		return slices.DeleteFunc(slices.Clone(list), func(t token) bool { return t.line != site.Line }), false
	}
	i := -1
	for k := range list {
		if list[k].line < site.Line || list[k].line == site.Line && list[k].column <= site.Column {
			i = k
		}
	}
	if i < 0 || list[i].line != site.Line {
		return nil, false
	}
	ends := func(t token) bool { return t.text == ";" || t.text == "{" || t.text == "}" }
	start, end := i, i
	for start > 0 && !ends(list[start-1]) {
		start--
	}
	for end < len(list) && !ends(list[end]) {
		end++
	}
	braced = end < len(list) && list[end].text == "{" ||
		start > 1 && list[start-1].text == "{" && slices.Contains([]string{"=", "(", ",", "return"}, list[start-2].text)
	start, end = clauseAt(list, i, start, end)
	return list[start:max(start, end)], braced
}

// clauseAt is the part of a statement that token i is in, from start to end: the condition after if, while, for or switch, or what follows it.
func clauseAt(list []token, i, start, end int) (from, to int) {
	for start+1 < end {
		if list[start].text == "else" || list[start].text == "do" {
			start++
			continue
		}
		if !slices.Contains([]string{"if", "while", "for", "switch"}, list[start].text) || list[start+1].text != "(" {
			break
		}
		closed := closing(list[:end], start+1)
		if closed < 0 {
			return start, end
		}
		if i <= closed {
			return start, closed + 1
		}
		start = closed + 1
	}
	return start, end
}

// nullsIn are the pointers that are used in a statement to reach the address of the fault.
func (s *scope) nullsIn(line []token, f *evidence.Fault) (list []evidence.LikelyNull) {
	for _, c := range chainsOf(line) {
		for i := range c.links {
			x, ok := s.nullAt(&c, i, f)
			if ok && !slices.Contains(list, x) {
				list = append(list, x)
			}
		}
	}
	return list
}

// nullAt is the pointer before link i of a chain, if the rest of the chain leads from null to the address of the fault.
func (s *scope) nullAt(c *chain, i int, f *evidence.Fault) (x evidence.LikelyNull, ok bool) {
	base := chain{root: c.root, links: c.links[:i], text: c.root}
	if i > 0 {
		base.text = c.text[:c.links[i-1].end]
	}
	o, found := s.read(&base)
	if !found || o.typ.Kind() != debuginfo.KindPointer {
		return x, false
	}
	v, known := s.number(o)
	if known && v != 0 {
		return x, false
	}
	at, accessed := object{typ: o.typ, bytes: make([]byte, max(o.typ.Size(), 0)), known: true}, ""
	for k := i; k < len(c.links); k++ {
		l := c.links[k]
		if k > i && (l.arrow || l.star || at.typ.Kind() == debuginfo.KindPointer) {
			break // a second pointer
		}
		next, ok := s.follow(at, l)
		if !ok || !next.known {
			return x, false
		}
		at, accessed = next, c.text[:l.end]
		if l.star {
			accessed = "*" + accessed
		}
	}
	if accessed == "" || !holds(at, f) {
		return x, false
	}
	return evidence.LikelyNull{Pointer: base.text, Type: o.typ.Name(), Accessed: accessed, Offset: uint64(f.Addr), Null: known, Proof: evidence.Inferred}, true
}

// holds reports whether an access is one of the object: of a part of an aggregate, or of a scalar from its start on.
func holds(o object, f *evidence.Fault) bool {
	size := evidence.Addr(max(o.typ.Size(), 0))
	if o.bytes != nil || f.Addr < o.addr || f.Addr+evidence.Addr(max(f.Size, 1)) > o.addr+size {
		return false
	}
	switch o.typ.Kind() {
	case debuginfo.KindStruct, debuginfo.KindUnion, debuginfo.KindArray:
		return true
	}
	return f.Addr == o.addr
}

// nullVariables are the local pointers that are null, by the debug information, and whose type has a member at the address.
func (s *scope) nullVariables(f *evidence.Fault) (list []evidence.LikelyNull) {
	for _, v := range s.locals {
		if v.Type == nil || v.Type.Kind() != debuginfo.KindPointer || v.Type.Elem() == nil {
			continue
		}
		o := s.objectOf(v)
		if n, known := s.number(o); !known || n != 0 {
			continue
		}
		for _, m := range v.Type.Elem().Members() {
			part := object{typ: m.Type, addr: evidence.Addr(m.Offset), known: true}
			if m.Type == nil || m.Base || m.Name == "" || part.addr != f.Addr || !holds(part, f) {
				continue
			}
			list = append(list, evidence.LikelyNull{Pointer: v.Name, Type: v.Type.Name(), Accessed: v.Name + "->" + m.Name, Offset: uint64(f.Addr),
				Null: true, Proof: evidence.Inferred})
		}
	}
	return list
}
