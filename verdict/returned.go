package verdict

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/staticscan"
	"diagnose/unwind"
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
	// back is where it returned to, with this stack pointer; thread and before say when.
	back, sp evidence.Addr
	when     arrivals
}

// start is a call whose result is asked for.
type start struct {
	arrivals
	sp   evidence.Addr // at the call; 0: not known
	want *uint64
}

// startOf is the call that the last of some steps names, in one of the frames; nil if
// it names none.
func (w *work) startOf(steps []evidence.OriginStep, frames []unwind.Frame, a arrivals, want *uint64) *start {
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
		if f.Kind == evidence.Physical && staticscan.SameFunction(w.Process, f.LookupPC(), a.pc) {
			return &start{arrivals: a, sp: f.Registers.SP(), want: want}
		}
	}
	return nil
}

// failingStart is the call whose result the failing instruction had; nil if it had
// none.
func (w *work) failingStart() *start {
	thread := w.Process.FailingThread()
	if thread == nil || w.Blame == nil || w.Blame.Role == "" {
		return nil
	}
	a, err := w.failingArrivals()
	if err != nil {
		return nil
	}
	const frames = 64
	value := w.Blame.Value
	var want *uint64
	if value != nil {
		v := uint64(*value)
		want = &v
	}
	return w.startOf(w.Case.Failure.Origin, unwind.New(w.Process).Walk(thread, frames).Frames, a, want)
}

// failingArrivals are those of the failing thread, up to the failure.
func (w *work) failingArrivals() (arrivals, error) {
	thread := w.rec.Manifest.Outcome.Thread
	schedule, err := w.rec.Log.Schedule()
	if err != nil && len(schedule) == 0 {
		return arrivals{}, err
	}
	return arrivals{thread: thread, ordinal: schedule.Events()[thread]}, nil
}

// storedStart is the call whose result a store put into memory; nil if it was no such
// store.
func (c *chain) storedStart(l *link) *start {
	if l.access.By != evidence.ByProgram || l.victim.damaged() || l.bounds != "" || l.store.Through != "" {
		return nil
	}
	a := arrivals{thread: l.access.Thread, ordinal: l.access.Ordinal, before: hitBefore(l.plan, l.log, &l.access)}
	return c.startOf(l.store.Steps, l.frames, a, l.victim.value)
}

// intoCalls follows a value into the calls that returned it, and adds a link for each.
// goes: the memory that it was loaded from comes next.
func (c *chain) intoCalls(s *start) (next victim, goes bool) {
	for s != nil {
		walk, err := c.firstCall(s)
		if err != nil || walk == nil {
			c.noWay(err)
			return victim{}, false
		}
		var again *start
		for walk != nil && again == nil {
			if len(c.links) >= c.Hops {
				c.end = fmt.Sprintf("the way back was followed through %d stores and calls (--hops)", c.Hops)
				return victim{}, false
			}
			r, err := walk.along(c)
			if err != nil || r == nil {
				c.noWay(err)
				return victim{}, false
			}
			c.end = ""
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

func (c *chain) noWay(err error) {
	var walk *replay.WalkError
	var moment *replay.MomentError
	switch {
	case err == nil:
	case errors.As(err, &walk), errors.As(err, &moment):
		c.limit(fmt.Sprintf("the way through a call that returned the value was not followed: %v", err))
	default:
		c.limit(err.Error())
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
	at, err := c.lastNear(a)
	if err == nil && at.Count == 0 {
		a.events = frameEvents
		at, err = c.last(a)
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
var errLibrary = errors.New("verdict: a call of a library")

// courses collects the ways of a walk, by level.
type courses struct {
	*walk
	levels []*staticscan.Course
	call   calledFunction
	level  int
}

// along goes along the call once, and says what it returned.
func (k *walk) along(c *chain) (*returned, error) {
	x := &courses{walk: k, level: -1}
	c.out.Coverage.Passes++
	out := &returned{kind: evidence.CauseBadValue, when: k.arrivals}
	if len(k.into) == 0 {
		err := c.standAt(k.at, func(s *replay.Stopped, p *image.Process, t *image.Thread) error {
			return x.look(s, p, t, &t.Registers)
		})
		if err != nil {
			return nil, err
		}
	}
	if !x.call.library {
		w := &replay.Walk{At: k.at, Into: k.into, Most: mostWalked, Over: x.over, On: x.on,
			Done: func(s *replay.Stopped, regs *image.Registers) error { return k.judge(c, x, s, regs, out) }}
		_, err := replay.Run(c.ctx, c.rec, replay.Options{Image: c.Image, Walk: w})
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
	return c.standAt(k.at, func(_ *replay.Stopped, p *image.Process, t *image.Thread) error {
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
				name = c.nameOf(*b.Cell)
			}
			value := out.value
			out.cell = &victim{kind: evidence.CauseBadValue, name: name, typ: b.CellType, start: *b.Cell, size: max(1, min(b.CellSize, wordSize)), value: &value}
			return nil
		}
		if k.passed = c.startOf(b.Steps, frames, k.arrivals, &out.value); k.passed == nil && len(b.Steps) > 0 {
			last := &b.Steps[len(b.Steps)-1]
			c.end = last.Text
			if last.Kind == evidence.OriginConstant && last.Site != nil {
				out.site = last.Site
			}
		}
		return nil
	})
}

// on notes an instruction, and looks at the last of the calls that the way leads into.
func (x *courses) on(s *replay.Stopped, level int, regs *image.Registers) error {
	if level != x.level {
		x.level = level
		for len(x.levels) <= level {
			x.levels = append(x.levels, &staticscan.Course{})
		}
		if level > 0 {
			x.levels[level].Outer = x.levels[level-1]
		}
	}
	way := x.levels[level]
	if err := way.Take(s, regs); err != nil {
		return &replay.WalkError{Reason: err.Error()}
	}
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
func (x *courses) over(s *replay.Stopped, to evidence.Addr) bool {
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
func (x *courses) look(m image.Memory, p *image.Process, t *image.Thread, regs *image.Registers) error {
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
func (k *walk) judge(c *chain, x *courses, s *replay.Stopped, regs *image.Registers, out *returned) error {
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
func (x *courses) callSite(p *image.Process) *evidence.Site {
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

// describe puts what gave the value into words, and says how to go on.
func (k *walk) describe(c *chain, in staticscan.Input, x *courses, g *staticscan.Given, out *returned) {
	level := len(k.into)
	site := g.Site
	out.site = &site
	if g.Course != nil && g.Outward == 0 {
		out.ledBy = staticscan.LedTo(in, g.Course, g.Step)
		out.later = staticscan.LastCondition(in, g.Course, g.Step)
	}
	switch g.Kind {
	case evidence.OriginConstant:
		out.how = "returned " + valueText(out.value)
		if g.Name != "" {
			out.how += " (" + g.Name + ")"
		}
	case evidence.OriginCell:
		name := g.Name
		if !isName(name) {
			name = c.nameOf(g.Cell)
		}
		out.how = fmt.Sprintf("returned %s, which it had from %s", valueText(out.value), name)
		if g.Tested != nil && (g.Again || !handsOn(in.Process, g)) {
			// The search came to an end; the function knew what it returned.
			out.how = "returned " + valueText(out.value)
			out.ledBy, out.later = g.Tested, nil
			if last := staticscan.LastCondition(in, g.Course, g.Tested.Step); g.Tested.Inlined && last != nil {
				out.ledBy = last
			}
			tested := out.ledBy.Site
			out.site = &tested
			return
		}
		value := g.Value
		out.cell = &victim{kind: evidence.CauseBadValue, name: name, typ: g.Type, start: g.Cell, size: max(1, min(g.Size, wordSize)), value: &value,
			readPC: g.Course.Steps[g.Step].Registers.PC()}
	case evidence.OriginResult:
		out.how = fmt.Sprintf("returned %s, which a call at %s had returned", valueText(out.value), lineText(out.site))
		out.ledBy, out.later = nil, nil
		into := append(slices.Clone(k.into[:level-g.Outward]), g.Step)
		value := out.value
		k.next = &walk{start: k.start, at: k.at, into: into}
		k.next.want = &value
	case evidence.OriginArgument:
		out.how = fmt.Sprintf("returned %s, which it was handed", valueText(out.value))
		out.site = x.call.site
		k.argument = &g.Register
	default:
		out.how = fmt.Sprintf("returned %s", valueText(out.value))
		c.end = g.Text
	}
}

// valueText is a value in words.
func valueText(v uint64) string {
	const small = 4096
	switch {
	case v == 0:
		return "0"
	case v < small:
		return fmt.Sprint(v)
	case int64(v) < 0 && int64(v) > -small:
		return fmt.Sprint(int64(v))
	case v>>32 == 0 && int32(v) < 0 && int32(v) > -small:
		return fmt.Sprint(int32(v))
	}
	return fmt.Sprintf("%#x", v)
}

func lineText(s *evidence.Site) string {
	if s == nil || s.File == "" {
		return "a place without a line"
	}
	return fmt.Sprintf("%s:%d", s.File[strings.LastIndexByte(s.File, '/')+1:], s.Line)
}

// literal is a return of what stands in the code.
var literal = regexp.MustCompile(`\breturn\s*(?:\(\s*)?(?:NULL|nullptr|0[xX]?0*[uUlL]*|-\s*\d+|\d+|false|None|\{\s*\}|std::nullopt)?\s*\)?\s*;`)
var anyReturn = regexp.MustCompile(`\breturn\b`)

// handsOn reports whether the source says, at a line that the function came by behind
// the condition, that it returns something else than a constant. Compilers return what
// they know to be 0 where the source has the constant.
func handsOn(p *image.Process, g *staticscan.Given) bool {
	seen := map[int]bool{}
	found := false
	for i := g.Tested.Step + 1; i < len(g.Course.Steps); i++ {
		s := ownSite(p, g.Course.Steps[i].Registers.PC())
		if s.Line == 0 || s.File == "" || seen[s.Line] {
			continue
		}
		seen[s.Line] = true
		text, ok := sourceLine(s.File, s.Line)
		switch {
		case !ok || !anyReturn.MatchString(text):
		case literal.MatchString(text):
			return false
		default:
			found = true
		}
	}
	return found
}

// sourceLine reads a line of a source file where the compiler saw it.
func sourceLine(file string, line int) (string, bool) {
	const most = 16 << 20
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return "", false
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", false
	}
	lines := strings.Split(string(b), "\n")
	if line > len(lines) {
		return "", false
	}
	return lines[line-1], true
}

// text is what was returned in a sentence.
func (r *returned) text() string {
	text := r.function
	if inner := r.inner(); inner != "" {
		text = inner
	}
	if r.site != nil && r.site.Line != 0 {
		text += " (" + lineText(r.site) + ")"
	}
	text += " " + r.how
	switch {
	case r.later != nil:
		text += "; the last condition behind that was at " + conditionText(r.later)
	case r.ledBy != nil && (r.site == nil || r.ledBy.Site.Line != r.site.Line || r.ledBy.Text != ""):
		text += "; what led there was the condition at " + conditionText(r.ledBy)
	}
	return text
}

// inner is the function that set the value, where that is another one than was called: it
// was inlined there, or jumped to. Empty: it is that one.
func (r *returned) inner() string {
	if r.site == nil || r.library || r.shared || image.LibraryCode(r.site) {
		return ""
	}
	if name := evidence.ShortName(r.site.Function); name != "" && name != r.function {
		return fmt.Sprintf("%s, for %s,", name, r.function)
	}
	return ""
}

func conditionText(c *staticscan.Condition) string {
	text := lineText(&c.Site)
	if c.Text != "" {
		text += ", where " + c.Text
	}
	return text
}

// hasReturned reports whether the chain leads through what calls returned.
func (c *chain) hasReturned() bool {
	return slices.ContainsFunc(c.links, func(l link) bool { return l.returned != nil })
}

// returnedSummary is the cause in a sentence.
func (c *chain) returnedSummary() string {
	var last *returned
	for i := range c.links {
		if r := c.links[i].returned; r != nil {
			last = r
		}
	}
	if strings.HasPrefix(c.victim.name, "the result of ") {
		return last.text()
	}
	return fmt.Sprintf("%s is bad because %s", c.victim.name, last.text())
}

// step is the link as a part of the story.
func (r *returned) step() evidence.CauseStep {
	return evidence.CauseStep{Text: r.text(), Site: r.site, Proof: evidence.Replayed}
}

// mostEarlier bounds how many values of other calls are tried.
const mostEarlier = 2

// replaced are the experiments that give a call another result: one that it had before,
// or in a run that passed, or, where it was a pointer there, the address of readable zeros.
func (c *chain) replaced(r *returned) []change {
	if r.back == 0 {
		return nil
	}
	a := r.when
	a.pc = r.back
	var earlier []uint64
	a.is = func(regs *image.Registers) bool {
		v, known := regs.Get(image.RAX)
		if regs.SP() == r.sp && known && v == r.value {
			return true
		}
		if known && c.otherThan(r.value, v) && !slices.Contains(earlier, v) {
			earlier = append(earlier, v)
		}
		return false
	}
	at, err := c.last(arrivals{pc: a.pc, thread: a.thread, ordinal: a.ordinal, events: 2 * farEvents, before: a.before, is: a.is})
	if err != nil {
		c.limit(err.Error())
		return nil
	}
	if at.Count == 0 {
		return nil
	}
	slices.Reverse(earlier)
	var list []change
	add := func(what string, value uint64) {
		// What follows may ask the same again, until there is another event.
		hook := replay.Hook{At: at, Every: true, Do: func(s *replay.Stopped) error {
			regs, err := s.Registers()
			if err != nil {
				return err
			}
			if now, _ := regs.Get(image.RAX); now != r.value {
				return nil
			}
			return s.SetRegister(image.RAX, value)
		}}
		list = append(list, change{what: what, options: replay.Options{Free: true, Hooks: []replay.Hook{hook}}})
	}
	for _, v := range c.otherResults(r, at) {
		if !slices.Contains(earlier, v) {
			earlier = append(earlier, v)
		}
	}
	for _, v := range earlier[:min(len(earlier), mostEarlier)] {
		add(fmt.Sprintf("%s made to return %s, as it did before", r.function, valueText(v)), v)
	}
	passing := c.passingResults(r.back, r.value)
	for _, v := range passing {
		add(fmt.Sprintf("%s made to return %s, as in a run that passed", r.function, valueText(v)), v)
	}
	// That it was the call's to return another one, only a run that passes shows.
	if r.value != 0 || c.victim.size != wordSize || r.opaque || len(passing) == 0 {
		return list
	}
	if c.calledValue() {
		if value, ok := c.returns(); ok {
			add(r.function+" made to return the address of a function that returns at once", uint64(value))
		}
	} else if zeros, ok := c.readableZeros(); ok {
		add(r.function+" made to return the address of readable zeros", uint64(zeros))
	}
	return list
}

// otherResults are what calls of the function from elsewhere returned before.
func (c *chain) otherResults(r *returned, at evidence.Moment) []uint64 {
	var found []uint64
	for _, pc := range r.returns[:min(len(r.returns), mostReturns)] {
		_, err := c.last(arrivals{pc: pc, thread: r.when.thread, ordinal: at.Ordinal, events: farEvents, before: r.when.before, is: func(regs *image.Registers) bool {
			if v, known := regs.Get(image.RAX); known && c.otherThan(r.value, v) && !slices.Contains(found, v) && len(found) < mostEarlier {
				found = append(found, v)
			}
			return false
		}})
		if err != nil {
			c.limit(err.Error())
		}
	}
	return found
}

// mostReturns bounds the return instructions of a function that are looked at.
const mostReturns = 4

// otherThan reports whether a value may stand for another one that is bad: instead of a
// null pointer nothing near to one does.
func (c *chain) otherThan(bad, v uint64) bool {
	const null = 4096
	if bad == 0 && c.victim.size == wordSize {
		return v >= null && v < userSpace
	}
	return uint32(v) != uint32(bad)
}

// passingEvents is how many of a passing run's events are looked behind.
const passingEvents = 256

// passingResults are what the call that comes back to a place returned in passing runs.
func (c *chain) passingResults(back evidence.Addr, bad uint64) []uint64 {
	var found []uint64
	for _, rec := range c.Passing {
		other := *c.work
		other.rec = rec
		thread := c.rec.Manifest.Outcome.Thread
		schedule, err := rec.Log.Schedule()
		if err != nil && len(schedule) == 0 {
			continue
		}
		_, err = other.last(arrivals{pc: back, thread: thread, ordinal: schedule.Events()[thread], events: passingEvents, is: func(regs *image.Registers) bool {
			if v, known := regs.Get(image.RAX); known && c.otherThan(bad, v) && !slices.Contains(found, v) && len(found) < mostEarlier {
				found = append(found, v)
			}
			return false
		}})
		if err != nil {
			c.limit(err.Error())
		}
		if len(found) > 0 {
			break
		}
	}
	return found
}
