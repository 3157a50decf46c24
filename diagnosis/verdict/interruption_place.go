package verdict

import (
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/internal/wording"
	"diagnose/replay"
	"diagnose/replay/record/eventlog"
)

// placement is a replay with the signal at another place.
type placement struct {
	// what says where, in a phrase.
	what string
	// expect: the recorded failure has to come.
	expect bool
	// until is the event after which the handler's own events are looked for; 0: the
	// signal is withheld.
	until uint64
	// hooks bring the signal.
	hooks func(*moved) []replay.Hook
	// ordered says why the accesses of a replay are not in the order that was wanted;
	// empty: they are.
	ordered func(*moved) string
}

// What a replay's own accesses say against an experiment.
const (
	notRaised   = "the process did not reach the place where the signal was to arrive"
	orderStayed = "the accesses were in the same order then"
	noAccess    = "the accesses of the order were not made then"
)

// before lets the signal come before an access of the interrupted code; last is the
// position in own of it, first that of the access which has to follow the handler's.
func (x *interruption) before(n int) *placement {
	i := x.own[n]
	a := x.at(i)
	p := &placement{}
	if len(x.arrivals) > 0 {
		p.until = a.Ordinal
	}
	p.what = fmt.Sprintf("%s moved to right before %s", x.name(), x.accessText(a))
	if len(x.arrivals) == 0 {
		p.what = fmt.Sprintf("%s, as it came in a passing run, right before %s", x.name(), x.accessText(a))
	}
	p.hooks = func(m *moved) []replay.Hook { return []replay.Hook{x.hookAt(x.signal, i, m)} }
	handler := x.handlerPC
	p.ordered = func(m *moved) string {
		if m.raised < 0 {
			return notRaised
		}
		by := m.find(handler, m.raised, len(m.hits))
		own := m.find(a.PC, m.raised, len(m.hits))
		if a.PC == handler { // both are made by one function
			own = m.find(a.PC, by+1, len(m.hits))
		}
		switch {
		case by < 0 || own < 0:
			return noAccess
		case own < by:
			return orderStayed
		}
		return ""
	}
	return p
}

// again is the recorded order with the signal right before the access of the interrupted
// code that comes after own[n]: the order that before(n) removes.
func (x *interruption) again(n int) *placement {
	p := x.before(n + 1)
	a := x.at(x.own[n])
	p.expect = true
	p.what = fmt.Sprintf("%s moved to right after %s", x.name(), x.accessText(a))
	return p
}

// hookAt raises a signal when the thread is about to make an access of the list.
func (x *interruption) hookAt(signal *eventlog.Event, i int, m *moved) replay.Hook {
	a := x.at(i)
	at := evidence.Moment{Thread: a.Thread, Ordinal: a.Ordinal, PC: a.PC}
	for j := i; j >= 0 && x.at(j).Ordinal == a.Ordinal; j-- {
		if b := x.at(j); b.PC == a.PC && b.Variable == a.Variable && b.Offset == a.Offset && b.Thread == a.Thread {
			at.Count++
		}
	}
	return replay.Hook{At: at, Every: true, Do: func(s *replay.Stopped) error {
		if m.raised >= 0 || len(m.hits) != i {
			return nil
		}
		m.raised = len(m.hits)
		return s.Raise(signal)
	}}
}

// returning is a place where the thread is when a function has returned: an address with
// the stack pointer there, 0 if any will do.
type returning struct {
	pc, sp evidence.Addr
	// hits is how many accesses there have to have been; 0: those of the order.
	hits int
	what string
}

// needed is how many accesses a replay without the signal has made when the interrupted
// code has made those of the order.
func (x *interruption) needed() int {
	n := x.began
	for i := x.began; i <= x.later; i++ {
		if a := x.at(i); a.Handler != x.at(x.handled).Handler {
			n++
		}
	}
	return n
}

// delayed lets the signal come when the thread is at a place, after the accesses of the order.
func (x *interruption) delayed(to returning) *placement {
	p := &placement{until: x.arrivals[0] - 1, what: x.name() + " delayed until " + to.what}
	needed := max(x.needed(), to.hits)
	thread := x.at(x.handled).Thread
	p.hooks = func(m *moved) []replay.Hook {
		brk := replay.Break{PC: to.pc, Changes: true, Do: func(s *replay.Stopped) error {
			if m.raised >= 0 {
				return replay.ErrBreakOver
			}
			r, err := s.Registers()
			if err != nil {
				return err
			}
			if sp, _ := r.Get(image.RSP); to.sp != 0 && sp != uint64(to.sp) || len(m.hits) < needed {
				return nil
			}
			m.raised = len(m.hits)
			if err := s.Raise(x.signal); err != nil {
				return err
			}
			return replay.ErrBreakOver
		}}
		return []replay.Hook{{At: evidence.Moment{Thread: thread, Ordinal: p.until}, Do: func(s *replay.Stopped) error { return s.AddBreak(brk) }}}
	}
	p.ordered = x.orderedLater
	return p
}

// orderedLater is of replays in which the signal came later.
func (x *interruption) orderedLater(m *moved) string {
	switch {
	case m.raised < 0:
		return notRaised
	case x.later >= 0 && m.find(x.at(x.later).PC, x.began, m.raised) < 0:
		return noAccess
	case m.find(x.at(x.handled).PC, m.raised, len(m.hits)) < 0:
		return noAccess
	case x.later < 0 && m.raised <= x.began:
		return orderStayed // nothing was accessed in between
	}
	return ""
}

// withheld keeps the signal away. That changes more than the order.
func (x *interruption) withheld() *placement {
	p := &placement{what: x.name() + " withheld"}
	p.hooks = func(*moved) []replay.Hook { return nil }
	p.ordered = func(m *moved) string {
		if x.later >= 0 && m.find(x.at(x.later).PC, x.began, len(m.hits)) < 0 {
			return noAccess
		}
		return ""
	}
	return p
}

func (x *interruption) edits(until uint64) (edits []replay.Edit) {
	for _, event := range x.arrivals {
		edits = append(edits, replay.Edit{Kind: replay.EditDelaySignal, Until: until, Raised: until != 0,
			At: evidence.Moment{Thread: x.signal.Thread, Ordinal: event}})
	}
	return edits
}

// name is the signal's.
func (x *interruption) name() string {
	name := wording.Signal(int(x.signal.Object))
	if n := len(x.arrivals); n > 1 {
		name += fmt.Sprintf(", which came %d times,", n)
	}
	return name
}

// accessText says of an access where it is made and what it does.
func (x *interruption) accessText(a *evidence.Access) string {
	log := x.run.log
	verb := "reads"
	switch a.Kind {
	case evidence.CodeWrite:
		verb = "writes"
	case evidence.CodeReadWrite:
		verb = "changes"
	}
	return fmt.Sprintf("%s %s %s", siteText(&log.Contexts[a.Context].Site), verb, log.Variables[a.Variable].Name)
}

// places are where the signal may come later, the nearest first: where the functions
// return that the accesses were made in, but main, where the interrupted code is about to make
// its first access again, and right after its last one.
func (x *interruption) places(first int) []returning {
	const most = 3
	var list []returning
	for _, i := range []int{x.later, first} {
		if i < 0 || len(list) > 0 {
			continue
		}
		list = append(list, x.returns(i, first, most)...)
	}
	if first >= 0 {
		a := x.at(first)
		list = append(list, returning{pc: a.PC, what: "right before " + x.accessText(a) + " again"})
	}
	if last, hits := x.last(first); last != 0 {
		if pc, ok := x.next(last); ok {
			site := x.Process.Symbolize(last, image.AtInstruction)[0].Site
			list = append(list, returning{pc: pc, hits: hits, what: "right after the access of " + siteText(&site)})
		}
	}
	return list
}

// last is the instruction of the interrupted code's access after the handler's, and how many
// accesses there are with it when the signal does not come. Where the run ended before that
// access, a replay without the signal makes it.
func (x *interruption) last(first int) (evidence.Addr, int) {
	if x.later >= 0 {
		return x.at(x.later).PC, x.needed()
	}
	if first < 0 {
		return 0, 0
	}
	_, m, _ := x.try(x.withheld(), 1)
	if m == nil {
		return 0, 0
	}
	a := x.at(first)
	m.raised = len(m.hits)
	for i := x.began; i < len(m.hits); i++ {
		if x.following(&seenHit{pc: a.PC, kind: a.Kind}, &moved{hits: m.hits[:i+1], raised: i + 1}) != nil {
			return m.hits[i].pc, i + 1
		}
	}
	return 0, 0
}

// next is the address of the instruction after one that does not branch.
func (x *interruption) next(pc evidence.Addr) (evidence.Addr, bool) {
	const longest = 15 // bytes of one (Intel SDM, volume 2, 2.3.11)
	code := make([]byte, longest)
	n, _ := x.Process.ReadMemory(pc, code) // as far as it goes
	in, err := x86.Decode(code[:n], uint64(pc))
	return pc + evidence.Addr(in.Len), err == nil && in.Flow == x86.FlowNext
}

// returns are the frames of an access that were there at the first access too, if there
// is one, from the innermost on.
func (x *interruption) returns(i, first, most int) []returning {
	frames, err := x.physical(i)
	if err != nil {
		return nil
	}
	var common map[evidence.Addr]bool
	if first >= 0 && first != i {
		others, err := x.physical(first)
		if err != nil {
			return nil
		}
		common = map[evidence.Addr]bool{}
		for _, f := range others {
			common[f.CFA] = true
		}
	}
	var list []returning
	for n := 0; n+1 < len(frames) && len(list) < most; n++ {
		f, caller := &frames[n], &frames[n+1]
		if common != nil && !common[f.CFA] || f.CFA == 0 {
			continue
		}
		if f.Site.Function == "main" || image.LibraryCode(&caller.Site) || f.Kind == evidence.SignalFrame || caller.Kind == evidence.SignalFrame {
			break
		}
		list = append(list, returning{pc: caller.Site.PC, sp: f.CFA, what: evidence.ShortName(f.Site.Function) + " returns"})
	}
	return list
}

// physical are the frames of the stack at an access of the list.
func (x *interruption) physical(i int) ([]evidence.Frame, error) {
	seen, err := x.run.plan.Details(x.progress.ctx, x.run.log, []int{x.list[i]})
	if err != nil {
		return nil, err
	}
	var list []evidence.Frame
	for _, f := range seen[0].Stack.Frames {
		if f.Kind != evidence.Inlined {
			list = append(list, f)
		}
	}
	return list, nil
}

// begun are the first accesses, as positions in own, that each function made which the
// signal interrupted, from the innermost on. They are counted at its entry.
func (x *interruption) begun() []int {
	const most = 3
	if len(x.own) == 0 {
		return nil
	}
	frames, err := x.physical(x.own[len(x.own)-1])
	if err != nil {
		return nil
	}
	at := map[evidence.Addr]int{} // entries: how many accesses there had been at the last call
	m := &moved{raised: -1}
	opts := replay.FreeRequest{Watching: replay.Watching{Watches: x.words, OnHit: m.note}}
	for n := range min(len(frames), most) {
		f := &frames[n]
		s, ok := x.Process.SymbolAt(f.Site.PC)
		if !ok || f.CFA == 0 || f.Site.Function == "main" || f.Kind != evidence.Physical {
			break
		}
		opts.Breaks = append(opts.Breaks, replay.Break{PC: s.Addr, Do: func(s *replay.Stopped) error {
			r, err := s.Registers()
			if err != nil {
				return err
			}
			// The call has stored the return address.
			if sp, _ := r.Get(image.RSP); sp+8 == uint64(f.CFA) && len(m.hits) <= x.began {
				at[f.CFA] = len(m.hits)
			}
			return nil
		}})
	}
	if len(opts.Breaks) == 0 {
		return nil
	}
	x.experiments.times(1).repeat("accesses of the interrupted functions", true, func() trial { return x.experiments.outcome(x.run.rec, opts) })
	var list []int
	for n := range min(len(frames), most) {
		hits, ok := at[frames[n].CFA]
		i := slices.IndexFunc(x.own, func(i int) bool { return i >= hits })
		if ok && i >= 0 {
			list = append(list, i)
		}
	}
	return list
}
