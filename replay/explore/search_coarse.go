package explore

import (
	"slices"

	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// mostCoarse is the maximum number of orders of whole steps for a window.
const mostCoarse = 48

// coarse returns the orders of whole steps in a window, the most promising first: the diverging
// thread's own step later, then those of other threads, the latest first, then all of them.
// Where steps already run as late as possible, they run early instead.
func (s *search) coarse(o *outcome, w *window) []candidate {
	c := &coarseList{s: s, o: o}
	if o.stuck {
		// A thread that spins waits for an action of another.
		c.spin(w)
		c.spinForGood(w)
	}
	if o.plan.timing == record.TimingLazy {
		c.early(w)
		return c.list
	}
	for i, own := range w.own {
		c.hold(own, own.end, shape{who: whoSelf, back: i, until: untilLast})
	}
	for i, other := range w.others {
		c.hold(other, other.end, shape{who: s.siteOf(other), back: i, until: untilLast})
	}
	c.late(w)
	for i, own := range w.own {
		c.between(own, shape{who: whoSelf, back: i})
	}
	if o.stuck {
		// That action is between two steps of a thread that is further here.
		for i, other := range w.others {
			c.between(other, shape{who: s.siteOf(other), back: i})
		}
	}
	return c.list
}

type coarseList struct {
	s    *search
	o    *outcome
	list []candidate
}

func (c *coarseList) addPlan(p plan, how shape) {
	if len(c.list) < mostCoarse {
		c.list = append(c.list, candidate{plan: p, shape: how})
	}
}

func (c *coarseList) hold(st step, until uint64, how shape) {
	if c.s.order.holdable(st) && until > st.begin {
		c.addPlan(c.o.plan.hold(st, until), how)
	}
}

// between delays a step until after each event of other threads that it may follow, the latest
// first.
func (c *coarseList) between(st step, how shape) {
	const most = 8
	for until, n := st.end-1, 0; until > st.begin && n < most; until, n = until-1, n+1 {
		e := c.s.order.eventAt(until)
		how.until = until4(e)
		c.hold(st, until, how)
	}
}

// late delays all steps of the window, as a lazy replay does.
func (c *coarseList) late(w *window) {
	p := c.o.plan
	for _, st := range slices.Concat(w.own, w.others) {
		if c.s.order.holdable(st) {
			p = p.hold(st, st.end)
		}
	}
	c.addPlan(p, shape{until: untilAll})
}

// early runs steps right after their events that would otherwise run before their next.
func (c *coarseList) early(w *window) {
	for i, own := range w.own {
		if !c.s.order.ends(own) {
			c.addPlan(c.o.plan.hold(own, own.begin), shape{who: whoSelf, back: i, until: untilFirst})
		}
	}
	for i, other := range w.others {
		if c.s.order.holdable(other) {
			c.addPlan(c.o.plan.hold(other, other.begin), shape{who: c.s.siteOf(other), back: i, until: untilFirst})
		}
	}
	for i, own := range w.own {
		c.between(own, shape{who: whoSelf, back: i})
	}
}

// spun is an arrival at an instruction of a spin loop that is certainly in the loop, and not in
// code before it.
const spun = 50

// spin preempts a thread where it was found to spin.
func (c *coarseList) spin(w *window) {
	own := w.own[0]
	at := place{thread: own.thread, ordinal: own.ordinal, pc: c.o.pc, count: spun, behind: c.o.plan.points(own)}
	for until, n := own.end, 0; until > own.begin && n < 8; until, n = until-1, n+1 {
		if p, ok := c.o.plan.preempt(at, until); ok {
			c.addPlan(p, shape{who: whoSelf, pc: c.o.pc, until: until4(c.s.order.eventAt(until))})
		}
	}
}

// spinForGood has a thread stay where it is if all events are done and it only keeps the failing one from
// its end.
func (c *coarseList) spinForGood(w *window) {
	own := w.own[0]
	if c.o.events < c.s.order.total() || c.s.order.position(own.thread, own.ordinal+1) != 0 {
		return
	}
	how := shape{who: whoSelf, pc: c.o.pc, until: untilLast}
	for i, x := range c.o.plan.list {
		if x.Thread == own.thread && x.Ordinal == own.ordinal {
			p := c.o.plan.with(slices.Clone(c.o.plan.list))
			p.list[i].Until = eventlog.Never
			c.addPlan(p, how)
		}
	}
	at := place{thread: own.thread, ordinal: own.ordinal, pc: c.o.pc, count: spun, behind: c.o.plan.points(own)}
	if p, ok := c.o.plan.preempt(at, eventlog.Never); ok {
		c.addPlan(p, how)
	}
}

// siteOf identifies a step by the code that made its event.
func (s *search) siteOf(st step) who { return who(s.order.eventAt(st.begin).site) }
