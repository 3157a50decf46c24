package verdict

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/replay"
	"diagnose/staticscan"
)

// mostWalked bounds how many instructions are gone along in one replay.
const mostWalked = 100_000

// returned is a link of a chain that is no store: what a call has returned.
type returned struct {
	function string
	// value is what came back, set by the code at site; how says so. cell is the memory
	// that it was loaded from.
	value uint64
	site  *evidence.Site
	how   string
	cell  *victim
	// ledBy is the condition that led there, later the last one that the function came by
	// with the value.
	ledBy, later *staticscan.Condition
	kind         evidence.CauseKind
	// returns are the function's instructions that return; opaque: nothing but what it
	// made itself can be in place of its result.
	returns []evidence.Addr
	opaque  bool
	// library: it is no function of the program's own; shared: a template or a generic of
	// a library, called at site.
	library, shared bool
	// status: it was followed because it ended the program.
	status bool
	// open says why a chain that ends here ends before a place that is known to be wrong.
	open evidence.OpenEnd
	// back is where it returned to, with this stack pointer; thread and before say when.
	back, sp evidence.Addr
	when     arrivals
}

// start is a call whose result is asked for.
type start struct {
	arrivals
	sp   evidence.Addr // at the call; 0: not known
	want *uint64
	// status: the value ended the program, and a constant in it says that something was
	// found wrong. So what the condition tested comes next that led to the constant.
	status bool
}

// startOf is the call that the last of some steps names, in one of the frames; nil if
// it names none.
func startOf(p *image.Process, steps []evidence.OriginStep, frames []unwind.Frame, a arrivals, want *uint64) *start {
	if len(steps) == 0 {
		return nil
	}
	last := &steps[len(steps)-1]
	if last.Kind != evidence.OriginResult || last.Site == nil || last.Site.PC == 0 {
		return nil
	}
	a.pc = last.Site.PC
	for i := range frames {
		f := &frames[i]
		if f.Kind == evidence.Physical && staticscan.SameFunction(p, f.LookupPC(), a.pc) {
			return &start{arrivals: a, sp: f.Registers.SP(), want: want}
		}
	}
	return nil
}

// failingStart is the call whose result the failing instruction had; nil if it had
// none.
func (b *beginnings) failingStart() *start {
	thread := b.in.Process.FailingThread()
	if thread == nil || b.in.Blame == nil || b.in.Blame.Role == "" {
		return nil
	}
	a, err := b.moments.failingArrivals()
	if err != nil {
		return nil
	}
	const frames = 64
	value := b.in.Blame.Value
	var want *uint64
	if value != nil {
		v := uint64(*value)
		want = &v
	}
	return startOf(b.in.Process, b.in.Case.Failure.Origin, unwind.New(b.in.Process).Walk(thread, frames).Frames, a, want)
}

// failingArrivals are those of the failing thread, up to the failure.
func (m *moments) failingArrivals() (arrivals, error) {
	thread := m.rec.Manifest.Outcome.Thread
	schedule, err := m.rec.Log.Schedule()
	if err != nil && len(schedule) == 0 {
		return arrivals{}, err
	}
	return arrivals{thread: thread, ordinal: m.lastEvent(schedule)}, nil
}

// storedStart is the call whose result a store put into memory; nil if it was no such
// store.
func (c *chain) storedStart(l *link) *start {
	if l.access.By != evidence.ByProgram || l.victim.damaged() || l.bounds != "" || l.store.Through != "" {
		return nil
	}
	a := arrivals{thread: l.access.Thread, ordinal: l.access.Ordinal, before: hitBefore(l.plan, l.log, &l.access)}
	return startOf(c.Process, l.store.Steps, l.frames, a, l.victim.value)
}

// intoCalls follows a value into the calls that returned it, and adds a link for each.
// goes: the memory that it was loaded from comes next.
func (c *chain) intoCalls(s *start) (next victim, goes bool) {
	for s != nil {
		walk, err := c.firstCall(s)
		if err != nil || walk == nil {
			c.limitReturned(err)
			return victim{}, false
		}
		var again *start
		for walk != nil && again == nil {
			if len(c.links) >= c.Hops {
				c.end.text, c.end.open = fmt.Sprintf("the way back was followed through %d stores and calls (--hops)", c.Hops), evidence.OpenBound
				return victim{}, false
			}
			r, err := walk.along(c)
			if err != nil || r == nil {
				c.limitReturned(err)
				return victim{}, false
			}
			c.end.text, c.end.open = "", ""
			c.links = append(c.links, link{victim: c.victim, returned: r})
			if r.cell != nil {
				return *r.cell, true
			}
			walk, again = walk.next, walk.passed
		}
		s = again
	}
	return victim{}, false
}

func (c *chain) limitReturned(err error) {
	var walk *replay.WalkError
	var moment *replay.MomentError
	switch {
	case err == nil:
	case errors.As(err, &walk), errors.As(err, &moment):
		c.progress.limit(evidence.Limit{Code: evidence.LimitReturnedValue, Reason: err.Error()})
	default:
		c.progress.failedPart(err)
	}
}

// walk is a call that is gone along.
type walk struct {
	start
	at   evidence.Moment
	into []int
	// next is the call inside of it that returned the value; passed is the call outside
	// that did, of a value that the function was handed.
	next   *walk
	passed *start
	// argument is the register that the outermost function was handed the value in.
	argument *image.Register
}

// firstCall finds when a call was made.
func (c *chain) firstCall(s *start) (*walk, error) {
	a := s.arrivals
	if s.sp != 0 {
		a.is = func(r *image.Registers) bool { return r.SP() == s.sp }
	}
	at, err := c.moments.lastNear(a)
	if err == nil && at.Count == 0 {
		a.events = frameEvents
		at, err = c.moments.last(a)
	}
	if err != nil || at.Count == 0 {
		return nil, err
	}
	k := &walk{start: *s, at: at}
	// What else is looked for came soon behind.
	k.ordinal = min(k.ordinal, at.Ordinal+farEvents-1)
	return k, nil
}

// errLibrary ends a walk at a call of a library.
var errLibrary = errors.New("a call of a library")

// pathsByLevel collects the ways of a walk, by level.
type pathsByLevel struct {
	*walk
	levels []*staticscan.Course
	// ordinals are those of the thread's last event before each instruction, by level.
	ordinals [][]uint64
	call     calledFunction
	level    int
}

// along goes along the call once, and says what it returned.
func (k *walk) along(c *chain) (*returned, error) {
	x := &pathsByLevel{walk: k, level: -1}
	c.out.Coverage.Passes++
	out := &returned{kind: evidence.CauseBadValue, when: k.arrivals, status: k.status}
	if len(k.into) == 0 {
		err := c.moments.standAt(k.at, func(s *replay.Stopped, p *image.Process, t *image.Thread) error {
			return x.look(s, p, t, &t.Registers)
		})
		if err != nil {
			return nil, err
		}
	}
	if !x.call.library {
		w := &replay.Walk{At: k.at, Into: k.into, Most: mostWalked, Over: x.over, On: x.on,
			Done: func(s *replay.Stopped, regs *image.Registers) error { return k.judge(c, x, s, regs, out) }}
		_, err := replay.Run(c.progress.ctx, c.rec, replay.WalkRequest{Common: replay.Common{Image: c.Image}, Walk: *w})
		if err != nil && !x.call.library {
			return nil, err
		}
	}
	if x.call.library {
		return k.fromLibrary(c, x, out)
	}
	if out.how == "" {
		return nil, nil
	}
	if k.argument != nil {
		return out, k.handed(c, out)
	}
	return out, nil
}

// handed asks the code at the outermost call where an argument of it came from.
func (k *walk) handed(c *chain, out *returned) error {
	return c.moments.standAt(k.at, func(_ *replay.Stopped, p *image.Process, t *image.Thread) error {
		const most = 64
		frames := unwind.New(p).Walk(t, most).Frames
		b, err := staticscan.Passed(staticscan.Input{Process: p, Thread: t, Frames: frames}, *k.argument)
		if err != nil {
			return err
		}
		if b.Pointer != "" {
			out.how += " as " + b.Pointer
		}
		if b.Cell != nil {
			name := b.CellName
			if !isName(name) {
				name = nameOf(c.Process, c.Object, *b.Cell)
			}
			value := out.value
			out.cell = &victim{kind: evidence.CauseBadValue, name: name, typ: b.CellType, start: *b.Cell, size: max(1, min(b.CellSize, wordSize)), value: &value}
			return nil
		}
		if k.passed = startOf(c.Process, b.Steps, frames, k.arrivals, &out.value); k.passed == nil && len(b.Steps) > 0 {
			last := &b.Steps[len(b.Steps)-1]
			c.end.text = last.Text
			if last.Kind == evidence.OriginConstant && last.Site != nil {
				out.site, out.open = last.Site, c.foldedEnd(last.Site, out.value)
			}
		}
		return nil
	})
}

// on notes an instruction, and looks at the last of the calls that the way leads into.
func (x *pathsByLevel) on(s *replay.Stopped, level int, regs *image.Registers) error {
	if level != x.level {
		x.level = level
		for len(x.levels) <= level {
			x.levels, x.ordinals = append(x.levels, &staticscan.Course{}), append(x.ordinals, nil)
		}
		if level > 0 {
			x.levels[level].Outer = x.levels[level-1]
		}
	}
	way := x.levels[level]
	if err := way.Take(s, regs); err != nil {
		return &replay.WalkError{Reason: err.Error()}
	}
	ordinal, err := s.Ordinal()
	if err != nil {
		return err
	}
	x.ordinals[level] = append(x.ordinals[level], ordinal)
	if n := len(x.into); n > 0 && level == n-1 && len(way.Steps)-1 == x.into[n-1] {
		p, err := s.Process()
		if err != nil {
			return err
		}
		if err := x.look(s, p, p.FailingThread(), regs); err != nil {
			return err
		}
		if x.call.library {
			return errLibrary
		}
	}
	return nil
}

// over reports whether a function that the code jumps to is a library's. The dynamic
// linker jumps on to the one that it was asked for.
func (x *pathsByLevel) over(s *replay.Stopped, to evidence.Addr) bool {
	p, err := s.Process()
	if err != nil {
		return false
	}
	m := p.ModuleAt(to)
	if m == nil || strings.HasPrefix(filepath.Base(m.Path), "ld-linux") || !staticscan.LibraryAt(p, to) {
		return false
	}
	x.levels[x.level].Jumped = true
	return true
}

// look says which function a call leads to.
func (x *pathsByLevel) look(m image.Memory, p *image.Process, t *image.Thread, regs *image.Registers) error {
	if t == nil {
		return errNoThread
	}
	frame := unwind.Frame{Kind: evidence.Physical, Registers: *regs, Lookup: image.AtInstruction}
	site, ok := staticscan.CallOf(staticscan.Input{Process: p, Thread: t, Frames: []unwind.Frame{frame}}, 0)
	if !ok || site.To == 0 && site.Library == "" {
		return &replay.WalkError{Reason: fmt.Sprintf("the instruction at %v does not tell what it calls", regs.PC())}
	}
	x.call = calledFunctionOf(p, m, &site, regs)
	x.call.site = ownSite(p, regs.PC())
	x.call.back = staticscan.Behind(p, regs.PC())
	x.call.sp = regs.SP()
	if site.Tail {
		x.call.sp += wordSize
		x.call.back = 0
	}
	return nil
}

// ownSite is a place in the program's own code, of library code that was inlined the
// place that it was inlined into.
func ownSite(p *image.Process, pc evidence.Addr) *evidence.Site {
	calls := p.Symbolize(pc, image.AtInstruction)
	for i := range calls {
		if s := &calls[i].Site; s.Line != 0 && !image.LibraryCode(s) {
			return s
		}
	}
	if len(calls) == 0 {
		return &evidence.Site{PC: pc}
	}
	return &calls[0].Site
}

// judge says where the value came from that has been returned.
func (k *walk) judge(c *chain, x *pathsByLevel, s *replay.Stopped, regs *image.Registers, out *returned) error {
	level := len(k.into)
	if level >= len(x.levels) {
		return &replay.WalkError{Reason: "the function executed nothing"}
	}
	value, _ := regs.Get(image.RAX)
	if k.want != nil && uint32(value) != uint32(*k.want) {
		return nil // another value than the one that is followed
	}
	p, err := s.Process()
	if err != nil {
		return err
	}
	in := staticscan.Input{Process: p, Thread: p.FailingThread()}
	way := x.levels[level]
	for _, l := range x.levels {
		// At its first instruction the return address is on top.
		if len(l.Steps) > 0 {
			l.SP = l.Steps[0].Registers.SP() + wordSize
		}
	}
	g := staticscan.ResultOf(in, way, image.RAX)
	if len(way.Steps) > 0 {
		out.returns = staticscan.Returns(p, way.Steps[len(way.Steps)-1].Registers.PC())
	}
	out.function, out.value, out.back, out.sp = x.call.name, value, regs.PC(), regs.SP()
	k.describe(c, in, x, &g, out)
	if out.site.Line == 0 || image.LibraryCode(out.site) {
		if out.ledBy != nil && !image.LibraryCode(&out.ledBy.Site) {
			out.site = &out.ledBy.Site
		} else if s := x.callSite(p); s != nil {
			out.site, out.shared = s, true
		}
	}
	return nil
}

// callSite is the innermost place in the program's own code from which the way led into
// the function; nil if there is none.
func (x *pathsByLevel) callSite(p *image.Process) *evidence.Site {
	for level := len(x.into) - 1; level >= 0; level-- {
		if steps := x.levels[level].Steps; len(steps) > 0 {
			if s := ownSite(p, steps[len(steps)-1].Registers.PC()); s.Line != 0 && !image.LibraryCode(s) {
				return s
			}
		}
	}
	if s := ownSite(p, x.at.PC); s.Line != 0 && !image.LibraryCode(s) {
		return s
	}
	return nil
}
