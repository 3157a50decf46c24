package verdict

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/x86"
	"diagnose/replay"
)

// chainExperiments are the experiments on what a chain came to.
type chainExperiments struct{ chain *chain }

// prove makes the experiments on a memory error: the failure must go away
// without the store, and stay with it.
func (ce *chainExperiments) prove(cause *evidence.Cause) {
	c := ce.chain
	cause.Experiments = append(cause.Experiments, c.experiments.unchanged(c.rec))
	for _, x := range ce.changes() {
		e := c.experiments.without(&x)
		cause.Experiments = append(cause.Experiments, e)
		if !cause.Experiments[0].Agrees() || !e.Agrees() {
			continue
		}
		if ce.computed(&x) {
			c.experiments.unproved(x.event.Thing, evidence.RuleComputed)
			continue
		}
		nearer := *cause
		ce.credit(&nearer, &x)
		nearer.Ordered, nearer.Guard, nearer.Decision = cause.Ordered || ce.ordered(&x), ce.guard(&x), c.decision(cause)
		nearer.Open = cmp.Or(nearer.Open, cause.Open) // a store that handed the value on says no more than the way to it
		if nearer.Stale = ce.stale(&x); c.experiments.proveBy(&nearer, ce.claim(&x)) {
			*cause = nearer
			return
		}
		cause.Stale, cause.Ordered, cause.Guard = cause.Stale || nearer.Stale, cause.Ordered || nearer.Ordered, cause.Guard || nearer.Guard
		cause.Decision = cause.Decision || nearer.Decision
	}
}

// proveBy proves a cause by its experiments, or says which rule of proofs keeps it from that.
func (x *experiments) proveBy(cause *evidence.Cause, claim evidence.Event) bool {
	for i := range cause.Experiments {
		if c := cause.Experiments[i].Check; c != nil && c.Again == 0 && x.reach.guards(claim.Thing) {
			c.Guard = claim.Thing
		}
	}
	if l := evidence.LimitOf(x.progress.coverage.Limits, evidence.LimitLogContradicted); l != nil {
		cause.Contradiction = l.Contradiction
	}
	err := cause.Prove(claim)
	var unproved *evidence.UnprovedError
	if errors.As(err, &unproved) {
		x.unproved(claim.Thing, unproved.Rule)
	}
	return err == nil
}

// unproved says which rule keeps what an experiment shows of a thing from being a proof.
func (x *experiments) unproved(thing string, rule evidence.ProofRule) {
	x.progress.limit(evidence.Limit{Code: evidence.LimitUnproved, Names: []string{thing}, Reason: string(rule)})
}

// credit has the cause name what a change that helped was made to. That the failure goes with a
// store further on says nothing of what comes before it, and so the cause ends at that store. The
// story has all of them.
func (ce *chainExperiments) credit(cause *evidence.Cause, x *change) {
	if x.link == noLink && len(ce.chain.links) > 0 && ce.chain.victim.damaged() && ce.chain.victim.kind == evidence.CauseUseAfterFree && ce.chain.made.seen.Site != nil {
		// The store alone decided nothing; the object's free did.
		cause.Site = ce.chain.account().freedAt()
		cause.Summary = fmt.Sprintf("%s freed the object of %s, to which %s still writes", ce.chain.account().freedText(), sizeText(ce.chain.victim.finding.Object), where(&ce.chain.links[0].seen))
	}
	if x.link < 0 || x.link >= ce.headline() {
		return
	}
	last := x.link
	for last+1 < len(ce.chain.links) && ce.passedOn(last+1) == x.link {
		last++
	}
	nearer := *ce.chain
	nearer.links, nearer.end.text, nearer.end.unwritten, nearer.end.given, nearer.end.origin = ce.chain.links[:last+1], "", false, false, nil
	if out := nearer.account().cause(); out != nil {
		out.Story, out.Experiments = cause.Story, cause.Experiments
		*cause = *out
	}
}

// claim is what the cause names, after credit. Beside a link it names the object or the value that
// a change without a link is made to, and of a count the store that counted.
func (ce *chainExperiments) claim(x *change) evidence.Event {
	if n := ce.headline(); x.link > n && (x.link != n+1 || ce.chain.counted() != x.link) {
		return *ce.chain.links[n].event()
	}
	return *x.event
}

// headline is the link that the cause names as the one to change: the last, or where it is a count
// the one that was made of it, and of damage the store that did it.
func (ce *chainExperiments) headline() int {
	if len(ce.chain.links) == 0 {
		return -1
	}
	if ce.chain.victim.damaged() {
		return 0
	}
	if i := ce.chain.counted(); i >= 0 {
		return ce.passedOn(max(i-1, 0))
	}
	return ce.passedOn(len(ce.chain.links) - 1)
}

// passedOn is the link that stands for a call's result: of functions that return what another one
// returned, the outermost. The result is one value in one register.
func (ce *chainExperiments) passedOn(i int) int {
	for i > 0 && ce.chain.links[i].returned != nil && ce.chain.links[i-1].returned != nil && ce.chain.links[i].returned.value == ce.chain.links[i-1].returned.value {
		i--
	}
	return i
}

// event is a link as a cause claims it and an experiment changes it.
func (l *link) event() *evidence.Event {
	thing := l.victim.name
	if r := l.returned; r != nil {
		return &evidence.Event{Thing: cmp.Or(thing, r.function), At: evidence.Moment{Thread: r.when.thread, Ordinal: r.when.ordinal, PC: r.back, Count: 1}}
	}
	return &evidence.Event{Thing: cmp.Or(thing, l.word().String()),
		At: evidence.Moment{Thread: l.access.Thread, Ordinal: l.access.Ordinal, PC: l.access.PC, Count: l.access.Hit + 1}}
}

// change is what an experiment does.
type change struct {
	what string
	// event is what is changed, link the link of the chain that it is, or noLink.
	event   *evidence.Event
	link    int
	options replay.FreeRequest
	// breaks makes those of one replay; nil: it has none.
	breaks func() []replay.Break
	// keeps: the program computes what it did, only in more memory, or in memory that is not freed.
	keeps bool
}

// noLink is the link of a change to the victim's object, or to what the process began with.
const noLink = -1

// changes are the experiments that a chain suggests, the gentlest first.
func (ce *chainExperiments) changes() []change {
	switch {
	case ce.chain.dead, ce.chain.end.afterFree() && len(ce.chain.links) == 0:
		return nil // what passes there is chance
	case ce.chain.end.unwritten && len(ce.chain.links) == 0:
		return ce.valueReplaced()
	case ce.chain.end.given && len(ce.chain.links) == 0:
		return ce.textReplaced()
	case len(ce.chain.links) == 0:
		return ce.heapChanges()
	}
	var list []change
	for i := range slices.Backward(ce.chain.links) {
		l := &ce.chain.links[i]
		before := len(list)
		switch {
		case l.returned != nil:
			list = append(list, ce.replaced(l.returned)...)
		case ce.chain.victim.damaged() && i > 0: // what was stored after the damage
		case l.idle || l.inner || l.access.By == evidence.ByHeap:
		case ce.firstValue(l):
			list = append(list, ce.otherStored(l)...)
		default:
			list = append(list, l.undone(i == len(ce.chain.links)-1 || ce.chain.victim.damaged()))
			if !ce.chain.victim.damaged() && l.bounds == "" {
				list = append(list, ce.otherStored(l)...)
			}
			if x := ce.boundsChange(l); x != nil && (ce.chain.victim.damaged() || l.bounds != "") {
				list = append(list, *x)
			}
		}
		for j := before; j < len(list); j++ {
			list[j].link = ce.passedOn(i)
			list[j].event = ce.chain.links[list[j].link].event()
		}
	}
	return append(append(list, ce.heapChanges()...), ce.valueReplaced()...)
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
	pass := max(l.log.Variables[l.access.Variable].Pass-1, 0)
	var edits []replay.Edit
	for _, hit := range l.hits {
		e := replay.Edit{Kind: replay.EditUndo, OnHit: true, Hit: hit}
		if hit == l.access.Hit {
			e.At = evidence.Moment{Thread: l.access.Thread, Ordinal: l.access.Ordinal, PC: l.access.PC}
		}
		edits = append(edits, e)
	}
	watching := replay.Watching{Watches: l.plan.Passes[pass].Watches, Earlier: l.plan.Earlier(l.log, pass, l.hits)}
	return change{what: what, options: replay.FreeRequest{Watching: watching, Edits: edits}}
}

// padding is how much larger an object is made to see whether it was too small.
const padding = 256

// heapChanges are those to the allocation or the free of the victim's object.
func (ce *chainExperiments) heapChanges() []change {
	f := ce.chain.victim.finding
	if ce.chain.made == nil || ce.chain.made.call == nil || f == nil || f.Object == nil {
		return nil
	}
	if ce.chain.victim.kind == evidence.CauseUseAfterFree && ce.chain.corrected() {
		return nil // the store was meant for another object: a withheld free would only hide the damage
	}
	is, what, edit := releases(f.Object.Addr), "the free withheld", replay.Edit{Kind: replay.EditKeepFreed, Bytes: f.Object.Size}
	do, all := keepFreed, "each free made there withheld"
	switch ce.chain.victim.kind {
	case evidence.CauseHeapUnderflow:
		return nil // there is no room to be had before an object
	case evidence.CauseHeapOverflow:
		is, what, edit = ce.chain.made.call.asks(f.Object.Size), "the object padded", replay.Edit{Kind: replay.EditPad, Bytes: padding}
		do, all = func(s *replay.Stopped) error { return s.Pad(padding) }, "each object allocated there padded"
	}
	var list []change
	at, err := ce.chain.moments.ofCall(*ce.chain.made.call, is)
	if err == nil {
		edit.At = at
		list = append(list, change{what: what, link: noLink, event: ce.objectEvent(at), options: replay.FreeRequest{Edits: []replay.Edit{edit}}, keeps: true})
	} else {
		ce.chain.progress.failedPart(err)
	}
	if ce.chain.made.seen.Site != nil {
		each := evidence.Moment{Thread: ce.chain.made.call.thread, Ordinal: ce.chain.made.call.ordinal, PC: ce.chain.made.seen.Site.PC}
		list = append(list, change{what: all, link: noLink, event: ce.objectEvent(each), breaks: func() []replay.Break { return ce.eachCall(do) }, keeps: true})
	}
	return list
}

// objectEvent is the call that allocated the victim's object, or freed it.
func (ce *chainExperiments) objectEvent(at evidence.Moment) *evidence.Event {
	return &evidence.Event{Thing: fmt.Sprintf("the object at %v", ce.chain.victim.finding.Object.Addr), At: at}
}

// eachCall does something at each call of the heap's function that the link's place
// makes.
func (ce *chainExperiments) eachCall(do func(*replay.Stopped) error) []replay.Break {
	const most = 20_000 // each may need a walk of the stack
	calls, wanted := 0, place{ce.chain.made.seen.Site.File, ce.chain.made.seen.Site.Function, ce.chain.made.seen.Site.Line}
	// direct are the calls that the program's own code makes, by the address that they return to: which are wanted.
	direct := map[evidence.Addr]bool{}
	return []replay.Break{{PC: ce.chain.made.call.entry, Changes: true, Do: func(s *replay.Stopped) error {
		if calls++; calls > most {
			return fmt.Errorf("%s is called more than %d times", ce.chain.made.call.name, most)
		}
		back, err := returnAddress(s)
		if err != nil {
			return err
		}
		is, known := direct[back]
		if !known {
			p, err := s.Process()
			if err != nil {
				return err
			}
			site, frame, err := ownPlace(p)
			if err != nil || site == nil {
				return err
			}
			if is = *site == wanted; frame == 1 {
				direct[back] = is
			}
		}
		if !is {
			return nil
		}
		return do(s)
	}}}
}

// returnAddress is where the function returns to at whose first instruction the process is.
func returnAddress(s *replay.Stopped) (evidence.Addr, error) {
	regs, err := s.Registers()
	if err != nil {
		return 0, err
	}
	sp, _ := regs.Get(image.RSP)
	var word [8]byte
	if _, err := s.ReadMemory(evidence.Addr(sp), word[:]); err != nil {
		return 0, err
	}
	return evidence.Addr(binary.LittleEndian.Uint64(word[:])), nil
}

// keepFreed withholds the free that the thread is about to make.
func keepFreed(s *replay.Stopped) error {
	regs, err := s.Registers()
	if err != nil {
		return err
	}
	heap, err := agent.Open(s, 0)
	if err != nil {
		return err
	}
	object, _ := regs.Get(image.RDI)
	o, found, err := heap.Lookup(evidence.Addr(object))
	if err != nil {
		return err
	}
	if !found || o.State != agent.Live || uint64(o.Addr) != object {
		return nil // nothing is freed: realloc may be asked for a new object
	}
	return s.KeepFreed(o.Size)
}

// place is a line of the program's.
type place struct {
	file, function string
	line           int
}

// ownPlace is where the stopped thread is in the program's own code, and the number of that frame; nil if it is not
// known.
func ownPlace(p *image.Process) (at *place, frame int, err error) {
	thread := p.FailingThread()
	if thread == nil {
		return nil, 0, errNoThread
	}
	const frames = 64
	u := unwind.New(p)
	stack := u.Walk(thread, frames)
	u.Symbolize(stack.Frames)
	for i, f := range stack.Frames {
		for _, call := range f.Calls {
			if s := &call.Site; !image.LibraryCode(s) {
				return &place{s.File, s.Function, s.Line}, i, nil
			}
		}
	}
	return nil, 0, nil
}

// valueReplaced gives the bad value's memory another value, right before the last time
// that it is read. What passing runs read there is what should be there. Where that is
// a pointer to what another run has, any that can be read, or called, shows that the
// failure is of the pointer alone; that it was another one's to set, passing runs show.
func (ce *chainExperiments) valueReplaced() []change {
	if ce.chain.Blame == nil || ce.chain.Blame.Loaded.PC == 0 || ce.chain.victim.damaged() {
		return nil
	}
	good, err := ce.passingValue(ce.chain.Blame.Loaded.PC)
	if err != nil {
		ce.chain.progress.failedPart(err)
	}
	if good == nil {
		return nil
	}
	what, value, ok := "that of a passing run", good.value, ce.usable(good)
	if !ok && good.size == wordSize && good.mapped {
		if calledValue(ce.chain.Process) {
			what = "the address of a function that returns at once"
			value, ok = nearReturn(ce.chain.Process)
		} else {
			what = "the address of readable zeros"
			value, ok = readableZeros(ce.chain.Process)
		}
	}
	if !ok {
		return nil
	}
	found, err := ce.chain.moments.lastRead(ce.chain.Blame.Loaded.PC)
	if err != nil {
		ce.chain.progress.failedPart(err)
		return nil
	}
	if found.addr != ce.chain.victim.start || found.size != good.size {
		return nil
	}
	edit := replay.Edit{Kind: replay.EditStore, At: found.at, Addr: found.addr, Value: value, Size: found.size}
	// The value is that of the store that is the nearest to the failure.
	return []change{{what: "the value replaced by " + what, link: min(0, len(ce.chain.links)-1), event: &evidence.Event{Thing: ce.chain.victim.name, At: found.at},
		options: replay.FreeRequest{Edits: []replay.Edit{edit}}}}
}

// calledValue reports that the program went to the bad value as to code.
func calledValue(p *image.Process) bool {
	thread := p.FailingThread()
	if thread == nil {
		return false
	}
	m := p.MappingAt(thread.Registers.PC())
	return m == nil || !m.Executable()
}

// nearReturn is the address of a return instruction of the program's, near where it would
// have come back to.
func nearReturn(p *image.Process) (uint64, bool) {
	word, ok := wordAt(p, p.FailingThread().Registers.SP(), wordSize)
	if !ok {
		return 0, false
	}
	from := evidence.Addr(word)
	if m := p.MappingAt(from); m == nil || !m.Executable() {
		return 0, false
	}
	const near = 4096
	code := make([]byte, near)
	n, _ := p.ReadMemory(from, code) // as far as it goes
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
func readableZeros(p *image.Process) (uint64, bool) {
	thread := p.FailingThread()
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
