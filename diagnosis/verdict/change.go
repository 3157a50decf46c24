package verdict

import (
	"bytes"
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/x86"
	"diagnose/replay"
)

// prove makes the experiments on a memory error: the failure must go away
// without the store, and stay with it.
func (w *work) prove(c *chain, cause *evidence.Cause) {
	cause.Experiments = append(cause.Experiments, w.unchanged(w.rec))
	for _, x := range c.changes() {
		e := w.without(&x)
		cause.Experiments = append(cause.Experiments, e)
		if cause.Experiments[0].Agrees() && e.Agrees() {
			cause.Proof = evidence.Proved
			return
		}
	}
}

// change is what an experiment does.
type change struct {
	what    string
	options replay.FreeRequest
	// breaks makes those of one replay; nil: it has none.
	breaks func() []replay.Break
}

// changes are the experiments that a chain suggests, the gentlest first.
func (c *chain) changes() []change {
	switch {
	case c.dead:
		return nil // what passes there is chance
	case c.unwritten && len(c.links) == 0:
		return c.valueReplaced()
	case c.given && len(c.links) == 0:
		return c.textReplaced()
	case len(c.links) == 0:
		return c.heapChanges()
	}
	var list []change
	for i := range slices.Backward(c.links) {
		l := &c.links[i]
		switch {
		case l.returned != nil:
			list = append(list, c.replaced(l.returned)...)
		case c.victim.damaged() && i > 0: // what came behind the damage
		case l.idle || l.inner || l.access.By == evidence.ByHeap:
		case c.firstValue(l):
			list = append(list, c.otherStored(l)...)
		default:
			list = append(list, l.undone(i == len(c.links)-1 || c.victim.damaged()))
			if x := c.confined(l); x != nil && (c.victim.damaged() || l.bounds != "") {
				list = append(list, *x)
			}
		}
	}
	return append(append(list, c.heapChanges()...), c.valueReplaced()...)
}

// undone takes back what a store put there. last: it is the one that the chain ends at.
func (l *link) undone(last bool) change {
	if l.access.By == evidence.ByCall {
		return change{what: "what the call stored taken back", options: replay.FreeRequest{Edits: l.takenBack()}}
	}
	what := "the store skipped"
	if !last {
		what = "the store in " + where(&l.seen) + " skipped"
	}
	pass := l.plan.Passes[max(l.log.Variables[l.access.Variable].Pass-1, 0)]
	var edits []replay.Edit
	for _, hit := range l.hits {
		edits = append(edits, replay.Edit{Kind: replay.EditUndo, OnHit: true, Hit: hit})
	}
	return change{what: what, options: replay.FreeRequest{Watching: replay.Watching{Watches: pass.Watches, Backend: replay.BackendPtrace}, Edits: edits}}
}

// padding is how much larger an object is made to see whether it was too small.
const padding = 256

// heapChanges are those to the allocation or the free of the victim's object.
func (c *chain) heapChanges() []change {
	f := c.victim.finding
	if c.made == nil || c.made.call == nil || f == nil || f.Object == nil {
		return nil
	}
	is, what, edit := releases(f.Object.Addr), "the free withheld", replay.Edit{Kind: replay.EditSkipCall}
	do, all := (*replay.Stopped).SkipCall, "each free made there withheld"
	switch c.victim.kind {
	case evidence.CauseHeapUnderflow:
		return nil // there is no room to be had before an object
	case evidence.CauseHeapOverflow:
		is, what, edit = c.made.call.asks(f.Object.Size), "the object padded", replay.Edit{Kind: replay.EditPad, Bytes: padding}
		do, all = func(s *replay.Stopped) error { return s.Pad(padding) }, "each object allocated there padded"
	}
	var list []change
	at, err := c.moment(*c.made.call, is)
	if err == nil {
		edit.At = at
		list = append(list, change{what: what, options: replay.FreeRequest{Edits: []replay.Edit{edit}}})
	} else {
		c.failedPart(err)
	}
	if c.made.seen.Site != nil {
		list = append(list, change{what: all, options: replay.FreeRequest{}, breaks: func() []replay.Break { return c.eachCall(do) }})
	}
	return list
}

// eachCall does something at each call of the heap's function that the link's place
// makes.
func (c *chain) eachCall(do func(*replay.Stopped) error) []replay.Break {
	const most = 5000 // each time the stack is walked
	calls := 0
	return []replay.Break{{PC: c.made.call.entry, Changes: true, Do: func(s *replay.Stopped) error {
		if calls++; calls > most {
			return fmt.Errorf("verdict: %s is called more than %d times", c.made.call.name, most)
		}
		p, err := s.Process()
		if err != nil {
			return err
		}
		site, err := ownPlace(p)
		if err != nil || site == nil || *site != (place{c.made.seen.Site.File, c.made.seen.Site.Function, c.made.seen.Site.Line}) {
			return err
		}
		return do(s)
	}}}
}

// place is a line of the program's.
type place struct {
	file, function string
	line           int
}

// ownPlace is where the stopped thread is in the program's own code; nil if it is not
// known.
func ownPlace(p *image.Process) (*place, error) {
	thread := p.FailingThread()
	if thread == nil {
		return nil, errNoThread
	}
	const frames = 64
	u := unwind.New(p)
	stack := u.Walk(thread, frames)
	u.Symbolize(stack.Frames)
	for _, f := range stack.Frames {
		for _, call := range f.Calls {
			if s := &call.Site; !image.LibraryCode(s) {
				return &place{s.File, s.Function, s.Line}, nil
			}
		}
	}
	return nil, nil
}

// valueReplaced gives the bad value's memory another value, right before the last time
// that it is read. What passing runs read there is what should be there. Where that is
// a pointer to what another run has, any that can be read, or called, shows that the
// failure is of the pointer alone; that it was another one's to set, passing runs show.
func (c *chain) valueReplaced() []change {
	if c.Blame == nil || c.Blame.Loaded.PC == 0 || c.victim.damaged() {
		return nil
	}
	good, err := c.passingValue(c.Blame.Loaded.PC)
	if err != nil {
		c.failedPart(err)
	}
	if good == nil {
		return nil
	}
	what, value, ok := "that of a passing run", good.value, c.usable(good)
	if !ok && good.size == wordSize && good.mapped {
		if c.calledValue() {
			what = "the address of a function that returns at once"
			value, ok = c.returns()
		} else {
			what = "the address of readable zeros"
			value, ok = c.readableZeros()
		}
	}
	if !ok {
		return nil
	}
	found, err := c.lastRead(c.Blame.Loaded.PC)
	if err != nil {
		c.failedPart(err)
		return nil
	}
	if found.addr != c.victim.start || found.size != good.size {
		return nil
	}
	edit := replay.Edit{Kind: replay.EditStore, At: found.at, Addr: found.addr, Value: value, Size: found.size}
	return []change{{what: "the value replaced by " + what, options: replay.FreeRequest{Edits: []replay.Edit{edit}}}}
}

// calledValue reports that the program went to the bad value as to code.
func (w *work) calledValue() bool {
	thread := w.Process.FailingThread()
	if thread == nil {
		return false
	}
	m := w.Process.MappingAt(thread.Registers.PC())
	return m == nil || !m.Executable()
}

// returns is the address of a return instruction of the program's, near where it would
// have come back to.
func (w *work) returns() (uint64, bool) {
	word, ok := w.word(w.Process.FailingThread().Registers.SP(), wordSize)
	if !ok {
		return 0, false
	}
	from := evidence.Addr(word)
	if m := w.Process.MappingAt(from); m == nil || !m.Executable() {
		return 0, false
	}
	const near = 4096
	code := make([]byte, near)
	n, _ := w.Process.ReadMemory(from, code) // as far as it goes
	return firstReturn(code[:n], word)
}

// firstReturn is the first return in code that takes nothing else off the stack.
func firstReturn(code []byte, pc uint64) (uint64, bool) {
	list, _ := x86.Function(code, pc)
	for i := range list {
		if in := &list[i]; in.Flow == x86.FlowReturn && !slices.ContainsFunc(in.Operands, func(o x86.Operand) bool { return o.IsImm }) {
			return in.PC, true
		}
	}
	return 0, false
}

// readableZeros is the lower end of the failing thread's stack, which nothing has
// used yet.
func (w *work) readableZeros() (uint64, bool) {
	p, thread := w.Process, w.Process.FailingThread()
	if thread == nil {
		return 0, false
	}
	const size = 4096
	m := p.MappingAt(thread.Registers.SP())
	if m == nil || thread.Registers.SP()-m.Start < 2*size {
		return 0, false
	}
	page := make([]byte, size)
	if n, err := p.ReadMemory(m.Start, page); err != nil || n != size || bytes.ContainsFunc(page, func(r rune) bool { return r != 0 }) {
		return 0, false
	}
	return uint64(m.Start), true
}

// takenBack gives the words of a link's victim the values back that they had before
// calls at the same place began to fill them. The engine copies what a call brings
// byte by byte; behind the event all of it is there.
func (l *link) takenBack() []replay.Edit {
	filled := map[uint32][]*evidence.Access{} // by the word's offset
	var offsets []uint32
	for i := range l.log.Accesses {
		a := &l.log.Accesses[i]
		if a.Variable != l.access.Variable || !writesMemory(a.Kind) || a.Position > l.access.Position {
			continue
		}
		if a.By != evidence.ByCall || a.PC != l.access.PC || a.Thread != l.access.Thread {
			filled[a.Offset] = nil
			continue
		}
		if !slices.Contains(offsets, a.Offset) {
			offsets = append(offsets, a.Offset)
		}
		filled[a.Offset] = append(filled[a.Offset], a)
	}
	var edits []replay.Edit
	for _, offset := range offsets {
		for _, a := range filled[offset] {
			edits = append(edits, replay.Edit{Kind: replay.EditStore, At: evidence.Moment{Thread: a.Thread, Ordinal: a.Ordinal},
				Addr: l.log.Variables[a.Variable].Address + evidence.Addr(offset), Value: filled[offset][0].Old, Size: int(a.Size)})
		}
	}
	return edits
}
