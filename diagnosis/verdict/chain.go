package verdict

import (
	"encoding/binary"
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/internal/wording"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/staticscan"
	"diagnose/watchtrace"
)

// chain is the way back from one victim.
type chain struct {
	*work
	victim victim
	// links are the stores, the nearest to the failure first; made is the one by
	// which the victim's memory became what it should have stayed: an allocation,
	// a free, a function's entry.
	links []link
	made  *link
	end   chainEnd
	// overtaken is the memory that the chain ends at, if nothing had stored to it when it was read, and it had another value at the end of
	// the run.
	overtaken *victim
	// partial: not all accesses to the memory that was looked at last are known to have
	// been seen, so it does not follow that nothing else wrote there.
	partial bool
	// everStored: an access of the log stored to the memory that was looked at last, at
	// whatever time. had is an access by which the bad value had been read there: the one that read it, or the store that handed it
	// on; nil: none is known.
	everStored bool
	had        *evidence.Access
	// text is the text that a number was made of, if that is where the chain is.
	text evidence.Addr
	// outside is the access outside of an array by which the value came; nil: none is known.
	outside *staticscan.Outside
	// traced: a trace shows that the way ends where the chain does.
	traced bool
	// dead: the victim is in the frame of a function that had returned.
	dead bool
}

// chainEnd is where a chain ends, and why.
type chainEnd struct {
	// text says why the chain goes no further back; open why it ends before a place that is known to be wrong, empty: its links tell.
	text string
	open evidence.OpenEnd
	// unwritten: nothing wrote the last victim at all; given: the process had it from its start.
	unwritten, given bool
	// neverStored: it is known that nothing stored to the victim, a global variable, in the
	// whole run.
	neverStored bool
	// initialised: the victim has the value that its module's file gives it.
	initialised bool
	// never is the heap object that nothing wrote to there; beside the one behind which
	// the memory lies.
	never, beside *evidence.HeapObject
	// origin is the allocation of the last memory, or its free, if nothing wrote to that since.
	origin *link
}

// link is one store.
type link struct {
	victim victim
	access evidence.Access
	seen   evidence.SeenAccess
	store  staticscan.Store
	// bounds says how the store lies outside of what the code means; empty: it
	// does not, as far as is known. object is the heap object meant.
	bounds string
	kind   evidence.CauseKind
	object *evidence.HeapObject
	// hits are those of the pass by which the value, or the damage, came about.
	hits []uint64
	// idle: it stored what was there already.
	idle bool
	// call is the heap's, of a store that the heap made.
	call *heapCall
	plan *watchtrace.Plan
	log  *evidence.AccessLog
	// frames are the thread's right after the store.
	frames []unwind.Frame
	// returned is what a call returned: then it is no store.
	returned *returned
	// inner: a library's function stored in its own part of the stack. handed is the
	// memory that the program had the value from that it gave it; nil: not known.
	inner  bool
	handed *victim
	// apart: the next link is not one of this link's value, but of a text that was converted to it, or of the index by which it was read.
	apart bool
	// times is how often in succession the same instruction made the value of the one
	// before, beginning with from; 0: not more than once.
	times int
	from  uint64
}

// beginning is where a chain begins that begins at no memory: the call whose result the
// failing instruction had, or what the functions executed whose frames are there.
type beginning struct {
	result *start
	frames *inFrames
}

func (b beginning) known() bool { return b.result != nil || b.frames != nil }

// beginnings finds where the chain of a failure that names no memory begins.
type beginnings struct {
	in       *Input
	rec      *record.Recording
	progress *progress
	moments  *moments
}

// first is for a failure that names no memory.
func (b *beginnings) first() beginning {
	if s := b.failingStart(); s != nil {
		return beginning{result: s}
	}
	if s := b.statusStart(); s != nil {
		return beginning{result: s}
	}
	return beginning{frames: b.failingFrames()}
}

// follow makes the chain, a trace and a visit a hop. It begins at the victim, if not
// elsewhere.
func (c *chain) follow(from beginning) error {
	v := c.victim
	var after *link
	var goes bool
	if !v.damaged() {
		c.outside = beyond(c.Case, c.Blame)
	}
	if v.outside != nil {
		c.outside = v.outside
		if v, goes = c.indexVictim(v.outside); !goes {
			return nil
		}
		c.victim = v
	}
	switch {
	case from.result != nil:
		if v, goes = c.intoCalls(from.result); !goes {
			return nil
		}
	case from.frames != nil:
		if v, goes = from.frames.follow(c); !goes {
			return nil
		}
		if len(c.links) == 0 {
			v.name = c.nameFor(&v)
			c.victim = v
		}
	}
	for hop := range c.Hops {
		c.text = v.text()
		next, made, err := c.hop(hop, v, after)
		if err != nil {
			return err
		}
		if hop == 0 && made != nil && (made.call != nil && !onFailingStack(c.Process, v.start) || made.access.By == evidence.ByProgram) {
			c.made = made
		}
		if next == nil && c.victim.freed() {
			return nil
		}
		if next != nil && next.call != nil && !v.damaged() {
			next, made = nil, next
		}
		if next == nil {
			if other := c.elsewhere(&v); other != nil {
				v, c.victim = *other, *other
				continue
			}
			c.allocated(&v, made)
			if c.changedSince(&v) {
				c.overtaken = &v
			}
			c.confirm(&v, made)
			return nil
		}
		if hop == 0 && !from.known() && c.leftOver(next) {
			c.end.unwritten = true
			c.end.text = fmt.Sprintf("the bytes in %s were left there by %s, which had returned before", v.name, where(&next.seen))
			c.confirm(&v, nil)
			return nil
		}
		if next.handed != nil && len(c.links) == 0 {
			// What the library did with its argument says nothing of the program.
			v = *next.handed
			c.victim, c.made = v, nil
			continue
		}
		c.links = append(c.links, *next)
		if hop == 0 && !from.known() && c.deadFrame(&v) {
			c.dead = true
			return nil
		}
		if first := c.links[len(c.links)-1].counted(); first != nil {
			// One loop's steps are one hop.
			counter := *next
			counter.access = *first
			v.value = &first.Old
			after = &counter
			continue
		}
		if v, goes = c.goesOn(next); !goes {
			v, goes = c.intoCalls(c.storedStart(next))
		}
		if !goes {
			c.dropArgument()
			return nil
		}
		after = next
	}
	c.end.text, c.end.open = fmt.Sprintf("the way back was followed through %d stores (--hops)", c.Hops), evidence.OpenBound
	return nil
}

// dropArgument takes back the last link if it only put an argument of main into main's frame.
func (c *chain) dropArgument() {
	n := len(c.links) - 1
	if n < 1 || c.links[n].returned != nil || c.links[n].seen.Site == nil || c.links[n].seen.Site.Function != "main" {
		return
	}
	if steps := c.links[n].store.Steps; len(steps) > 0 && steps[len(steps)-1].Kind == evidence.OriginArgument {
		c.links, c.end.given = c.links[:n], true
		c.end.text = "it is made of an argument of main"
	}
}

// hop finds who stored into a victim, before another store if after is set.
func (c *chain) hop(n int, v victim, after *link) (store, made *link, err error) {
	targets := []watchtrace.Target{v.target()}
	if after != nil {
		t := after.victim.target()
		targets[0].Group, t.Group = "hop", "hop"
		targets = append(targets, t)
	}
	plan, log, err := c.tracer.trace(c.rec, targets, c.tracer.options(fmt.Sprintf("hop %d", n+1)))
	if err != nil {
		return nil, nil, err
	}
	c.partial = log.Cut || slices.ContainsFunc(log.Variables, func(w evidence.Watched) bool { return w.Partial() })
	c.everStored = slices.ContainsFunc(log.Accesses, func(a evidence.Access) bool {
		return writesMemory(a.Kind) && a.By != evidence.ByHeap && v.concerns(log, &a)
	})
	c.had = nil
	before := v.readBy(log, len(log.Accesses), c.rec.Manifest.Outcome.Thread)
	if after != nil {
		before = after.indexIn(log)
		if before < 0 {
			return nil, nil, fmt.Errorf("the store to %s at %v is not in a second pass", after.victim.name, after.access.PC)
		}
		c.had = &log.Accesses[before]
		if v.readPC != 0 {
			before = v.readBy(log, before, after.access.Thread)
		}
	}
	if v.readPC != 0 && before > 0 && before < len(log.Accesses) && log.Accesses[before-1].Kind == evidence.CodeRead {
		c.had = &log.Accesses[before-1]
	}
	base, culprit := v.stores(log, before)
	if made, err = c.visits.look(v, plan, log, base); err == nil {
		store, err = c.visits.look(v, plan, log, culprit)
	}
	return store, made, err
}

// indexIn is the index of the link's store in the log of another pass over the same run; -1
// if it is not there. One instruction may have stored the same value in several words, and
// in one of them several times.
func (l *link) indexIn(log *evidence.AccessLog) int {
	count := 0
	for i := range l.log.Accesses {
		a := &l.log.Accesses[i]
		if sameAccess(l.log, a, l.log, &l.access) {
			count++
		}
		if *a == l.access {
			break
		}
	}
	for i := range log.Accesses {
		if !sameAccess(log, &log.Accesses[i], l.log, &l.access) {
			continue
		}
		if count--; count == 0 {
			return i
		}
	}
	return -1
}

// sameAccess compares what is equal in all passes.
func sameAccess(inA *evidence.AccessLog, a *evidence.Access, inB *evidence.AccessLog, b *evidence.Access) bool {
	return wordOf(inA, a) == wordOf(inB, b) && a.Kind == b.Kind &&
		a.Position == b.Position && a.Thread == b.Thread && a.Ordinal == b.Ordinal && a.PC == b.PC && a.Old == b.Old && a.New == b.New && a.By == b.By
}

// wordOf is where the word begins that an access was seen in.
func wordOf(log *evidence.AccessLog, a *evidence.Access) evidence.Addr {
	return log.Variables[a.Variable].Address + evidence.Addr(a.Offset)
}

// onFailingStack reports whether memory is the failing thread's stack, where the heap's
// functions have frames, too.
func onFailingStack(p *image.Process, addr evidence.Addr) bool {
	thread := p.FailingThread()
	if thread == nil {
		return false
	}
	m := p.MappingAt(thread.Registers.SP())
	return m != nil && m.Contains(addr)
}

// leftOver reports that a store was made before the function began in whose frame
// the memory lies: nothing has given it a value since.
func (c *chain) leftOver(l *link) bool {
	if c.victim.damaged() {
		return false
	}
	owner := frameOf(c.Case, c.victim.start)
	if owner == nil || image.LibraryCode(&owner.Site) { // whose frames the stacks leave out
		return false
	}
	for _, f := range l.seen.Stack.Frames {
		if f.Kind == evidence.Physical && f.CFA == owner.CFA && f.Site.Function == owner.Site.Function {
			return false
		}
	}
	return true
}

// frameOf is the physical frame of the failing thread that an address is in.
func frameOf(c *evidence.Case, addr evidence.Addr) *evidence.Frame {
	for i := range c.Stacks {
		g := &c.Stacks[i]
		if !g.Failing {
			continue
		}
		below := evidence.Addr(0) // the CFA of the frame inside
		for n := range g.Stack.Frames {
			f := &g.Stack.Frames[n]
			if f.Kind != evidence.Physical || f.CFA == 0 {
				continue
			}
			if addr < f.CFA && addr >= below && (below != 0 || addr >= f.CFA-maxFrame) {
				return f
			}
			below = f.CFA
		}
	}
	return nil
}

// maxFrame bounds the innermost frame, whose lower end no other frame tells.
const maxFrame = 1 << 20

// visits goes back to stores that passes saw, and says from the process there what they are.
type visits struct {
	in       *Input
	progress *progress
	moments  *moments
}

// look goes back to an access, if there is one, and says what it is.
func (vs *visits) look(v victim, plan *watchtrace.Plan, log *evidence.AccessLog, index int) (*link, error) {
	if index < 0 {
		return nil, nil
	}
	seen, err := plan.Details(vs.progress.ctx, log, []int{index})
	if err != nil {
		return nil, err
	}
	l := &link{victim: v, access: log.Accesses[index], seen: seen[0], plan: plan, log: log}
	l.hits = v.hits(log, index)
	l.idle = l.access.Old == l.access.New && len(l.hits) == 1
	err = plan.Visit(vs.progress.ctx, log, []int{index}, func(_ int, hit *replay.Hit, s *replay.Stopped) error {
		p, err := s.Process()
		if err != nil {
			return err
		}
		return vs.inspect(l, hit, p)
	})
	return l, err
}

// inspect says what a store means, with the process stopped right after it.
func (vs *visits) inspect(l *link, hit *replay.Hit, p *image.Process) error {
	thread := p.FailingThread()
	if thread == nil {
		return fmt.Errorf("the thread of the store at %v is not in the stopped process", hit.PC)
	}
	const frames = 64
	in := staticscan.Input{Process: p, Thread: thread, Frames: unwind.New(p).Walk(thread, frames).Frames}
	l.frames = in.Frames
	if l.access.By == evidence.ByHeap {
		if err := vs.heapCallOf(l, in, hit); err != nil && l.victim.finding != nil {
			vs.progress.failedPart(err) // else it may be the engine's, before the program began
		}
		if l.call != nil {
			l.seen.Call, l.seen.Old, l.seen.New = l.call.name, "", "" // what it fills in says nothing
		}
		return nil
	}
	at, word := l.stored(), l.word()
	var err error
	switch own := staticscan.OwnFrame(in); {
	case own > 0:
		l.store, err = vs.storedByCall(l, in, hit, at)
	case l.access.By != evidence.ByCall:
		was := binary.LittleEndian.AppendUint64(nil, l.access.Old)[:min(int(l.access.Size), wordSize)]
		l.store, err = staticscan.Stored(staticscan.AtStore(in, hit.PC), at, staticscan.OriginOptions{Before: &staticscan.Overwritten{Addr: word, Data: was}})
	}
	if err != nil {
		vs.progress.failedPart(err)
	}
	if len(allocators[libraryName(l.store.Through)]) > 0 {
		// What it clears is what it hands out.
		l.call = &heapCall{name: l.store.Through}
		return nil
	}
	if !l.inner {
		vs.judgeBounds(l)
	}
	return nil
}

// counted looks for the stores right before this one by which the same instruction made
// the word's value of the one that it had, and is the first of them; nil if it was alone.
func (l *link) counted() *evidence.Access {
	if !l.store.Again || l.victim.damaged() || l.bounds != "" || l.access.By != evidence.ByProgram || !l.victim.isWord() {
		return nil
	}
	at := slices.Index(l.log.Accesses, l.access)
	first, times := at, 1
	for i := at - 1; i >= 0; i-- {
		a := &l.log.Accesses[i]
		if !writesMemory(a.Kind) || !l.victim.concerns(l.log, a) {
			continue
		}
		if a.PC != l.access.PC || a.Thread != l.access.Thread || a.Size != l.access.Size || a.Variable != l.access.Variable || a.New != l.log.Accesses[first].Old {
			break
		}
		first, times = i, times+1
	}
	if times < 2 {
		return nil
	}
	l.times, l.from = times, l.log.Accesses[first].Old
	return &l.log.Accesses[first]
}

// word is where the word begins that the access was seen in.
func (l *link) word() evidence.Addr { return wordOf(l.log, &l.access) }

// stored is the victim's first byte that the access stored: the others of its word may
// be another store's. Where the store's address is not known, it is the first byte that changed; if none did, the first in the word.
func (l *link) stored() evidence.Addr {
	word := l.word()
	first := max(word, l.victim.start)
	end := min(word+evidence.Addr(l.access.Size), l.victim.end())
	if at := l.store.At; at != nil && *at < end && *at+evidence.Addr(l.store.Width) > first {
		return max(first, *at)
	}
	for at := first; at < end; at++ {
		changed := (l.access.Old^l.access.New)>>(8*(at-word))&0xff != 0
		switch width := evidence.Addr(l.store.Width); {
		case !changed:
		case width > 0 && width <= wordSize && width&(width-1) == 0:
			return max(first, at&^(width-1)) // what it stored there before was the same
		default:
			return at
		}
	}
	return first
}

// allocators are the functions of the C library that store to the memory that they hand
// out, as the program sees it, and which of their arguments, from 0, make its size.
var allocators = map[string][]int{"calloc": {0, 1}, "malloc": {0}, "realloc": {1}, "reallocarray": {1, 2}, "memalign": {1}, "aligned_alloc": {1}, "posix_memalign": {2}}

// judgeBounds compares what the code means with where it stored.
func (vs *visits) judgeBounds(l *link) {
	st := &l.store
	if st.From == nil {
		return
	}
	from, at := *st.From, l.stored()
	if size := evidence.Addr(st.MeantSize); size > 0 {
		switch {
		case at >= from+size:
			l.bounds = fmt.Sprintf("%s the end of %s, which has %d bytes", distance(uint64(at-from-size), "past"), st.Meant, st.MeantSize)
		case at < from:
			l.bounds = fmt.Sprintf("%s the start of %s", distance(uint64(from-at)-1, "before"), st.Meant)
		}
		l.kind = evidence.CauseOverwritten
		return
	}
	if vs.in.Object == nil {
		return
	}
	o := vs.in.Object(from)
	if o == nil || at >= o.Addr && at < o.Addr+evidence.Addr(o.Size) {
		return
	}
	l.object = o
	switch end := o.Addr + evidence.Addr(o.Size); {
	case at >= end:
		l.kind, l.bounds = evidence.CauseHeapOverflow, fmt.Sprintf("%s the end of an object of %s", distance(uint64(at-end), "past"), wording.Count(o.Size, "byte"))
	default:
		l.kind, l.bounds = evidence.CauseHeapUnderflow, fmt.Sprintf("%s the start of an object of %s", distance(uint64(o.Addr-at)-1, "before"), wording.Count(o.Size, "byte"))
	}
}

// distance is how many bytes lie between.
func distance(n uint64, side string) string {
	if n == 0 {
		return "directly " + side
	}
	return wording.Count(n, "byte") + " " + side
}

// goesOn tells from a store which memory to look at next. A store that damaged
// something is the finding itself.
func (c *chain) goesOn(l *link) (victim, bool) {
	st := &l.store
	switch {
	case l.victim.damaged() || l.bounds != "":
		c.end.text = ""
		return victim{}, false
	case l.handed != nil:
		return *l.handed, true
	case l.access.By == evidence.ByCall:
		c.end.text = "the value is input"
		return victim{}, false
	case st.Again:
		if c.spoils(l, &l.access.Old) {
			return victim{}, false
		}
		return victim{kind: evidence.CauseBadValue, name: l.victim.name, typ: l.victim.typ, start: l.victim.start, size: l.victim.size, value: &l.access.Old}, true
	}
	stored := &c.links[len(c.links)-1]
	if text := c.visits.convertedBy(l); text != nil {
		stored.apart = true
		return *text, true
	}
	if o := st.Outside; o != nil {
		stored.apart = true
		return c.outsideOf(l, o)
	}
	if cell := c.visits.cellOf(l); cell != nil {
		if cell.outside != nil {
			c.outside, stored.apart = cell.outside, true
			return c.indexVictim(cell.outside)
		}
		if c.spoils(l, cell.value) {
			return victim{}, false
		}
		return *cell, true
	}
	c.end.text, c.end.open = lastStep(st)
	if l.printed() {
		c.end.open = evidence.OpenOrigin
	}
	return victim{}, false
}

// spoils ends the chain at a store of what is no address, if it was made of the address of an object, of: that was good.
func (c *chain) spoils(l *link, of *uint64) bool {
	if of == nil || l.victim.damaged() || l.access.Size != wordSize || c.Object == nil || c.Case.Failure.Fault == nil || c.Process.MappingAt(evidence.Addr(l.access.New)) != nil {
		return false
	}
	addr := evidence.Addr(*of)
	o := c.Object(addr)
	if o == nil || addr < o.Addr || addr > o.Addr+evidence.Addr(o.Size) || l.access.New == 0 {
		return false
	}
	c.end.text = fmt.Sprintf("it was made of %v, the address of an object of %s", addr, sizeText(o))
	return true
}

// lastStep says where the code has the value of a store from, and why that is no end.
func lastStep(st *staticscan.Store) (text string, open evidence.OpenEnd) {
	if len(st.Steps) == 0 {
		return "where the value came from is not known", evidence.OpenOrigin
	}
	last := &st.Steps[len(st.Steps)-1]
	switch {
	case last.Kind == evidence.OriginConstant, st.Through != "": // the program had the library store that
		return last.Text, ""
	case last.Kind == evidence.OriginResult:
		return last.Text, evidence.OpenCall
	}
	return last.Text, evidence.OpenOrigin
}
