package provenance

import (
	"slices"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
)

// Cycle is a recursion that comes back to memory where it was: each call got its argument from a word of the memory that the argument of the call before led
// to, and after some calls these words are the same ones again.
type Cycle struct {
	// Function is the one whose argument it is.
	Function string
	// Calls is after how many calls of the function the words are the same.
	Calls int
	// Words hold the pointers that lead around, as the program read them last.
	Words []Pointer
	// Alike: all of them are known to be the same member of objects of one type.
	Alike bool
	// Closing is the one of Words to which something was stored last, StoredPC where, and Stored the step; -1: the trace has no such store.
	Closing  *Pointer
	StoredPC evidence.Addr
	Stored   int
	// Before is what the word held before that; Known: something had been stored there, so that the value is not one of chance.
	Before uint64
	Known  bool
	// Ring: the pointers led around before that store as well, or it gave a word that leads to itself its first value. Lists without an end are
	// made like that.
	Ring bool
}

// Pointer is a word that holds an address.
type Pointer struct {
	flow.Location
	// Name is what the code that read it calls it; empty: that is not known. Value is what it held.
	Name  string
	Value uint64
	// member is what it is a part of, as the code that read it tells; nil: that is not known. offset is where it is from the address that led
	// there, read the step that read it.
	member *Part
	offset int64
	read   int
}

// The bounds of the search for a cycle.
const (
	mostTurns  = 64 // calls after which the words are the same
	mostWalked = 1 << 20
	fewTurns   = 3 // how often all of them are seen
)

// Recurs looks for a cycle in the last calls before step n, of the functions that belong says are those of the recursion; nil: there is none.
func Recurs(t *flow.Trace, p Program, n int, belongs func(function string) bool) *Cycle {
	f := newFollower(t, p)
	entered := map[evidence.Addr][]int{} // the steps at which a function is entered, the latest first
	var order []evidence.Addr
	for at, walked := n, 0; at >= 0 && walked < mostWalked; at, walked = t.Previous(at), walked+1 {
		before := t.Previous(at)
		if before < 0 || t.Step(before).Inst == nil || t.Step(before).Inst.Flow != x86.FlowCall {
			continue
		}
		pc := t.Step(at).PC
		list := entered[pc]
		if list == nil {
			order = append(order, pc)
		}
		if len(list) > mostTurns*fewTurns {
			break
		}
		entered[pc] = append(list, at)
	}
	for _, pc := range order {
		if name := p.Function(pc); name == "" || !belongs(name) || !f.nested(entered[pc]) {
			continue
		}
		for _, r := range x86.ArgumentRegisters {
			if c := f.cycle(entered[pc], r); c != nil {
				c.Function = p.Function(pc)
				return c
			}
		}
	}
	return nil
}

// nested reports whether none of the calls has returned: each frame is below the one of the call before.
func (f *addresses) nested(calls []int) bool {
	for i := 1; i < len(calls); i++ {
		if f.trace.Register(calls[i-1], x86.RSP) >= f.trace.Register(calls[i], x86.RSP) {
			return false
		}
	}
	return true
}

// cycle is that of the argument in a register; nil: there is none.
func (f *follower) cycle(calls []int, r x86.Reg) *Cycle {
	var hops [][]Pointer
	for i := 0; i+1 < len(calls); i++ {
		words := f.hop(calls[i], calls[i+1], r)
		if len(words) == 0 {
			break
		}
		hops = append(hops, words)
	}
	sameWords := func(a, b []Pointer) bool {
		return slices.EqualFunc(a, b, func(p, q Pointer) bool { return p.Addr == q.Addr })
	}
	for turn := 1; turn <= len(hops)/fewTurns; turn++ {
		again := true
		for i := 0; i+turn < len(hops) && again; i++ {
			again = sameWords(hops[i], hops[i+turn])
		}
		if again {
			return f.closed(turn, slices.Concat(hops[:turn]...))
		}
	}
	return nil
}

// hop are the words by which one call got its argument from that of the call before, the last one first; none: it got it otherwise.
func (f *follower) hop(call, before int, r x86.Reg) (words []Pointer) {
	const most = 512 // definitions
	l, n := flow.Register(f.trace.Step(call).Thread, r, 8), call
	for range most {
		d := f.trace.Define(l, n)
		if d.At < before { // it is the argument of the call before
			if l.Space != transfer.General || x86.Reg(l.Num) != r {
				return nil
			}
			return words
		}
		switch d.Kind {
		case flow.Copied:
			l = d.From[0]
		case flow.Computed:
			var ok bool
			if l, ok = f.pointerOf(d); !ok {
				return nil
			}
		default:
			return nil
		}
		if n = d.At; l.Size < 8 {
			return nil
		}
		if l.Space == transfer.Memory && !f.trace.OnStack(l.Addr) {
			base, ok := f.base(l, n)
			if !ok {
				return nil
			}
			p := Pointer{Location: l, offset: int64(l.Addr) - int64(f.trace.Register(n, base)), read: n}
			p.Value, _ = f.value(l, n)
			p.member = useSearch{f}.read(l, n)
			words, l = append(words, p), flow.Register(f.trace.Step(n).Thread, base, 8)
		}
	}
	return nil
}

// closed is the cycle of some words, with the last store to them.
func (f *addresses) closed(calls int, words []Pointer) *Cycle {
	c := &Cycle{Calls: calls, Words: words, Alike: true, Stored: -1}
	for i := range words {
		w := &words[i]
		c.Alike = c.Alike && w.alike(&words[0])
		d := f.trace.Define(w.Location, w.read)
		if !stores(d) || d.At <= c.Stored {
			continue
		}
		c.Closing, c.Stored, c.StoredPC = w, d.At, f.ownPlace(d.At)
		c.Before, c.Known = f.value(w.Location, d.At)
		c.Known = c.Known && stores(f.trace.Define(w.Location, d.At))
	}
	if w := c.Closing; w != nil && w.member != nil {
		w.Name = w.member.Name
	}
	c.Ring = c.Known && f.ledAround(c) || !c.Known && len(words) == 1
	return c
}

// ledAround reports whether what the closing word held before led back to it.
func (f *addresses) ledAround(c *Cycle) bool {
	const most = 1000 // pointers
	start, offset := c.Closing.Addr-evidence.Addr(c.Closing.offset), evidence.Addr(c.Closing.offset)
	at := evidence.Addr(c.Before)
	for range most {
		if at == start {
			return true
		}
		next, known := f.value(flow.Memory(at+offset, 8), c.Stored)
		if !known || next == 0 {
			return false
		}
		at = evidence.Addr(next)
	}
	return false
}

// alike reports whether two words are known to be the same member of one type.
func (p *Pointer) alike(o *Pointer) bool {
	return p.offset == o.offset && p.member != nil && o.member != nil && p.member.of != nil && o.member.of != nil && plainName(p.member.of) == plainName(o.member.of)
}

// stores reports whether an instruction made a definition, and no call of the heap.
func stores(d flow.Definition) bool {
	return d.Kind == flow.Copied || d.Kind == flow.Computed || d.Kind == flow.Constant && d.Call != "calloc"
}
