package verdict

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/replay"
	"diagnose/staticscan"
)

// firstEvents is the number of the main thread's first events among which main is looked for.
const firstEvents = 64

// statusStart is the call of main, where what that returned ended the process; nil if
// the program called exit, or is not known to have one thread.
func (b *beginnings) statusStart() *start {
	if b.in.Case.Failure.Kind != evidence.ExitStatus || !foundWrong(b.in.Case, b.rec) || rustReport(b.in.Case) != nil || b.failingFrames() != nil {
		return nil
	}
	main, ok := b.in.Process.SymbolNamed("main")
	a, err := b.moments.failingArrivals()
	if !ok || err != nil || a.thread != 1 {
		return nil
	}
	end := a.ordinal
	at, err := b.moments.last(arrivals{pc: main.Addr, thread: a.thread, ordinal: min(end, firstEvents), events: firstEvents})
	if err != nil || at.Count == 0 {
		return nil
	}
	var s *start
	err = b.moments.standAt(at, func(_ *replay.Stopped, p *image.Process, t *image.Thread) error {
		const most = 2
		frames := unwind.New(p).Walk(t, most).Frames
		call, ok := staticscan.CallOf(staticscan.Input{Process: p, Thread: t, Frames: frames}, 1)
		if ok && len(frames) > 1 {
			s = &start{arrivals: arrivals{pc: call.PC, thread: a.thread, ordinal: at.Ordinal}, sp: frames[1].Registers.SP(), status: true}
		}
		return nil
	})
	if err != nil {
		b.progress.failedPart(err)
	}
	return s
}

// decided ends a chain at the condition that led to an exit, where it is not known what
// that tested.
func (c *chain) decided(by *staticscan.Condition) {
	site := by.Site
	c.links = append(c.links, link{victim: c.victim, returned: &returned{kind: evidence.CauseBadValue, site: &site, function: evidence.ShortName(site.Function),
		how: "decided that the program ends", ledBy: by, open: evidence.OpenDecision}})
}

// inside has the call followed that an instruction of a level made.
func (k *walk) inside(x *pathsByLevel, level, step int, want *uint64) {
	next := &walk{start: k.start, at: k.at, into: append(append([]int{}, k.into[:level]...), step)}
	next.want = want
	if list := x.ordinals[level]; step+1 < len(list) {
		next.ordinal = list[step+1] // it had returned by then
	}
	k.next = next
}

// decided continues from a constant that was returned because something was found wrong: to
// what the condition tested that led to it.
func (k *walk) decided(c *chain, in staticscan.Input, x *pathsByLevel, g *staticscan.Given, out *returned) {
	if condition, tested, ok := staticscan.DecidedBy(in, g.Course, g.Step); condition != nil && ok && tested.Course == g.Course {
		k.tests(c, x, &tested, out)
	}
}

// tests continues from what was tested: the result of a call, or memory.
func (k *walk) tests(c *chain, x *pathsByLevel, tested *staticscan.Given, out *returned) {
	switch tested.Kind {
	case evidence.OriginResult:
		k.inside(x, len(k.into), tested.Step, nil)
	case evidence.OriginCell:
		name := tested.Name
		if !isName(name) {
			name = nameOf(c.Process, c.Object, tested.Cell)
		}
		value := tested.Value
		out.open = ""
		out.cell = &victim{kind: evidence.CauseBadValue, name: name, typ: tested.Type, start: tested.Cell, size: max(1, min(tested.Size, wordSize)), value: &value,
			readPC: tested.Course.Steps[tested.Step].Registers.PC()}
	}
}

// ofStatus reports whether the chain begins at what ended the program by its status.
func (c *chain) ofStatus() bool {
	return len(c.links) > 0 && c.links[0].returned != nil && c.links[0].returned.status
}

// decision reports whether a cause is what decided that the program ends itself with a status, and nothing says that it should have
// decided otherwise: there is no passing run; or no rule was broken, and no passing run was given the same input.
func (c *chain) decision(cause *evidence.Cause) bool {
	broken := cause.Basis.Broken() || evidence.BasisOf(cause.Kind).Broken()
	return c.exits() && (len(c.Passing) == 0 || !broken && !c.passedSameInput())
}

// exits reports whether the chain leads to what decided that the program ends itself with a status.
func (c *chain) exits() bool {
	return c.Case.Failure.Kind == evidence.ExitStatus && !c.victim.damaged() && !c.victim.use
}

// statusAlone reports whether the chain says no more than that main returned the status.
func (ac *account) statusAlone() bool {
	return len(ac.chain.links) == 1 && ac.chain.ofStatus() && !ac.chain.links[0].returned.library && ac.chain.links[0].returned.ledBy == nil && ac.chain.links[0].returned.later == nil
}

// firstStored is the store that is the nearest to the failure; nil if there is none.
func (c *chain) firstStored() *link {
	for i := range c.links {
		if c.links[i].returned == nil {
			return &c.links[i]
		}
	}
	return nil
}

// storedSummary is the cause in a sentence, where a value decided the exit that was stored.
func (ac *account) storedSummary() string {
	first, last := ac.chain.firstStored(), &ac.chain.links[len(ac.chain.links)-1]
	text := fmt.Sprintf("%s gave %s the value", where(&first.seen), first.victim.name)
	if first.seen.New != "" {
		text += " " + first.seen.New
	}
	text += ", which decided the exit"
	if last != first && last.returned == nil {
		text += "; it comes from " + where(&last.seen)
	}
	return text
}
