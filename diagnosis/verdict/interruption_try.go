package verdict

import (
	"slices"

	"diagnose/evidence"
	"diagnose/patterns"
	"diagnose/replay"
)

// effect is what came of a placement.
type effect uint8

const (
	effectNone   effect = iota // it decides nothing
	effectCured                // the order was another, and the run went well
	effectFailed               // the order was another, and the run failed as recorded
)

// try makes the replays of a placement, and reads their accesses. The moved is the last
// replay's.
func (x *interruption) try(p *placement, times int) (evidence.Experiment, *moved, effect) {
	var last *moved
	some := x.experiments.times(times)
	e := some.repeat(p.what, p.expect, func() trial {
		m := &moved{raised: -1}
		last = m
		opts := replay.FreeRequest{Common: replay.Common{Hooks: p.hooks(m)}, Watching: replay.Watching{Watches: x.words, OnHit: m.note}, Edits: x.edits(p.until)}
		t := some.once(x.run.rec, opts, p.expect)
		switch {
		case t.undecided != "":
		case t.endless: // a signal more or less may be what ends it
			t.undecided = t.outcome
		default:
			t.undecided = p.ordered(m)
		}
		return t
	})
	switch {
	case e.Undecided != "" || e.Runs == 0:
		return e, last, effectNone
	case e.Failed == 0:
		return e, last, effectCured
	case e.Failed == e.Runs:
		return e, last, effectFailed
	}
	return e, last, effectNone
}

func (m *moved) note(h *replay.Hit) error {
	if len(m.hits) < mostSeenHits {
		m.hits = append(m.hits, seenHit{pc: h.PC, kind: h.Kind})
	}
	return nil
}

// sure makes a placement's replays as often as a proof needs, if the first one says something.
func (x *interruption) sure(p *placement) (evidence.Experiment, *moved, effect) {
	e, m, what := x.try(p, 1)
	if what == effectNone || x.Replays < 2 {
		return e, m, what
	}
	more, last, again := x.try(p, x.Replays-1)
	more.Runs, more.Failed = more.Runs+e.Runs, more.Failed+e.Failed
	if again != what {
		again = effectNone
	}
	return more, last, again
}

// earliest looks for the access of the interrupted code before which the signal may come
// without the failure, from the one before the signal on. It returns its position in own, and
// what was tried of it; without one, what the nearest placement showed.
func (x *interruption) earliest() (n int, list []evidence.Experiment, what effect) {
	for i, n := range x.firsts() {
		e, _, did := x.sure(x.before(n))
		if did == effectCured {
			return x.bounded(n, e)
		}
		if i == 0 {
			list, what = append(list, e), did
		}
		if x.progress.stopsBefore("experiments") {
			break
		}
	}
	return 0, list, what
}

// bounded adds to an experiment that with the signal right after the access, and not right
// before it, the failure comes: the access is one of the order.
func (x *interruption) bounded(n int, e evidence.Experiment) (int, []evidence.Experiment, effect) {
	list := []evidence.Experiment{e}
	if n == len(x.own)-1 {
		return n, list, effectCured // as recorded
	}
	after, _, _ := x.sure(x.again(n))
	if list = append(list, after); !after.Agrees() {
		return n, list, effectNone
	}
	return n, list, effectCured
}

// firsts are the accesses of the interrupted code, as positions in own, that may be the first
// of the order, the nearest first: the last one of each instruction, and the first one of each
// function that had been called and had not returned.
func (x *interruption) firsts() []int {
	list := x.firstsOf()
	for _, n := range x.begun() {
		if !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// firstsOf are the last accesses of each instruction.
func (x *interruption) firstsOf() []int {
	const most = 8
	var list []int
	seen := map[evidence.Addr]bool{}
	for n := len(x.own) - 1; n >= 0 && len(list) < most; n-- {
		if pc := x.at(x.own[n]).PC; pc != 0 && !seen[pc] {
			seen[pc] = true
			list = append(list, n)
		}
	}
	return list
}

// latest looks for a place after the accesses of the order at which the signal may come.
// The moved is of the replay that decided.
func (x *interruption) latest(first int) (list []evidence.Experiment, m *moved, what effect) {
	for _, to := range x.places(first) {
		e, m, did := x.sure(x.delayed(to))
		if did == effectCured {
			return []evidence.Experiment{e}, m, did
		}
		if did == effectFailed || len(list) == 0 {
			list, what = append(list[:0], e), max(what, did)
		}
		if x.progress.stopsBefore("experiments") {
			break
		}
	}
	return list, nil, what
}

// testInterruption is test for an order of some code and of a handler that interrupted it.
func (r *race) testInterruption(c *patterns.Candidate) (*tested, error) {
	t := &tested{candidate: c}
	x, err := r.newInterruption(&r.failing[c.Run], c.Accesses)
	if err != nil {
		t.experiments = append(t.experiments, evidence.Experiment{What: "the signal at another place", Undecided: err.Error()})
		return t, r.halted()
	}
	t.experiments = append(t.experiments, *r.recordedAgain())
	first := -1
	var early, late effect
	if c.Accesses[0] != x.list[x.handled] && len(x.own) > 0 {
		n, list, what := x.earliest()
		early = what
		t.experiments = append(t.experiments, list...)
		if first = x.own[len(x.own)-1]; what == effectCured {
			first = x.own[n]
		}
	}
	list, m, late := x.latest(first)
	t.experiments = append(t.experiments, list...)
	if early == effectNone && late == effectNone {
		e, _, what := x.sure(x.withheld())
		switch {
		case what == effectCured:
			e.Undecided = "more is changed than the order"
		case what == effectFailed && x.readTooEarly():
			e.Undecided, t.unsettled = readTheSame, true
		case what == effectFailed:
			t.stayed = true // without the handler there is no order with it
		}
		t.experiments = append(t.experiments, e)
	}
	r.concludes(t, x, first, early, late, m)
	if !t.cured && !t.stayed && r.inPassing(c) {
		if in, err := r.newInterruption(&r.passing[c.PassingRun], c.Passing); err == nil {
			r.force(t, in)
			t.cured = t.forced && t.passes && r.recordedAgain().Agrees()
		}
	}
	return t, r.halted()
}

// readTheSame is why the failure may come without the signal and the order be the cause.
const readTheSame = "the access reads then what it read before the signal; whether the run fails if the signal comes first is not known"

// readTooEarly reports whether the order is only that the interrupted code read before the handler
// wrote. Only a signal before the read makes another order: with a later signal, or with none, the
// code reads the same.
func (x *interruption) readTooEarly() bool {
	return x.later < 0 && len(x.own) > 0 && x.at(x.own[len(x.own)-1]).Kind == evidence.CodeRead && x.at(x.handled).Kind == evidence.CodeWrite
}

// concludes says what the effects of an earlier and of a later signal mean together.
func (r *race) concludes(t *tested, x *interruption, first int, early, late effect, m *moved) {
	for _, what := range []effect{early, late} {
		switch what {
		case effectCured:
			t.cured = true
			t.cures++
		case effectFailed:
			t.stayed = true
		}
	}
	t.cured = t.cured && r.recordedAgain().Agrees()
	t.refuted = !t.cured && t.stayed
	if !t.cured {
		return
	}
	for i := range t.experiments {
		if e := &t.experiments[i]; !e.Expect && !e.Agrees() && e.Undecided == "" {
			e.Undecided = otherWay
		}
	}
	t.candidate = x.asSeen(t.candidate, first, early, late, m, &t.unreached)
}

// asSeen is the candidate with the accesses and the pattern that the experiments showed.
func (x *interruption) asSeen(c *patterns.Candidate, first int, early, late effect, m *moved, unreached **seenHit) *patterns.Candidate {
	seen := *c
	seen.Apart, seen.Late = false, false
	if c.Pattern == evidence.PatternPair { // of two words, which stay those that they are
		return &seen
	}
	var own, after *seenHit
	hitOf := func(i int) *seenHit { a := x.at(i); return &seenHit{pc: a.PC, kind: a.Kind} }
	seen.Accesses = []int{x.list[x.handled]}
	if len(c.Accesses) > 2 && early != effectCured {
		first = slices.Index(x.list, c.Accesses[0]) // as it was seen
	} else if early == effectFailed {
		first = -1
	}
	if first >= 0 {
		own = hitOf(first)
		seen.Accesses = append([]int{x.list[first]}, seen.Accesses...)
	}
	switch {
	case x.later >= 0 && late != effectFailed:
		after = hitOf(x.later)
		seen.Accesses = append(seen.Accesses, x.list[x.later])
	case x.later < 0 && late == effectCured:
		if after = x.following(own, m); after != nil {
			if i := x.reached(after); i >= 0 {
				seen.Accesses = append(seen.Accesses, x.list[i])
			} else {
				*unreached = after
			}
		}
	}
	handled := hitOf(x.handled)
	pattern := patternOf(own, handled, after)
	switch {
	case pattern == "" && own != nil:
		*unreached = nil
		pattern, seen.Accesses = patternOf(own, handled, nil), seen.Accesses[:2]
	case pattern == "":
		pattern = c.Pattern
	}
	if pattern == "" {
		seen.Accesses, pattern = c.Accesses, c.Pattern
	}
	if !slices.Equal(seen.Accesses, c.Accesses) {
		seen.Passing, seen.Instead = nil, patterns.Instead{}
	}
	seen.Pattern = pattern
	return &seen
}

// following is the access that the interrupted code made next when the signal came after it,
// and which makes the handler's one between two; nil: there is none.
func (x *interruption) following(own *seenHit, m *moved) *seenHit {
	handled := x.at(x.handled)
	for i := x.began; own != nil && i < min(m.raised, len(m.hits)); i++ {
		if patternOf(own, &seenHit{pc: handled.PC, kind: handled.Kind}, &m.hits[i]) != "" {
			return &m.hits[i]
		}
	}
	return nil
}

// reached is where the failing run made the access of the interrupted code after the handler's, as
// a position in list, though other handlers may have run between them; -1: it did not come there.
func (x *interruption) reached(after *seenHit) int {
	handler := x.at(x.handled).Handler
	return slices.IndexFunc(x.list, func(j int) bool {
		a := &x.run.log.Accesses[j]
		return j > x.list[x.handled] && a.Handler != handler && a.PC == after.pc && a.Kind == after.kind
	})
}

// patternOf names the accesses in time; empty: a serial execution may have them as well.
// Either end may be missing.
func patternOf(first, middle, last *seenHit) evidence.PatternKind {
	letters := func(h *seenHit) []string {
		switch {
		case h == nil:
			return []string{""}
		case h.kind == evidence.CodeWrite:
			return []string{"W"}
		case h.kind == evidence.CodeReadWrite:
			return []string{"W", "R"}
		}
		return []string{"R"}
	}
	for _, a := range letters(first) {
		for _, b := range letters(middle) {
			for _, c := range letters(last) {
				if kind := evidence.PatternKind(a + b + c); slices.Contains(unserial, kind) {
					return kind
				}
			}
		}
	}
	return ""
}

// unserial are the patterns of one variable.
var unserial = []evidence.PatternKind{evidence.PatternRW, evidence.PatternWR, evidence.PatternWW,
	evidence.PatternRWR, evidence.PatternRWW, evidence.PatternWWR, evidence.PatternWRW}
