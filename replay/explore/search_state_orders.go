package explore

import (
	"context"
	"slices"

	"diagnose/evidence"
	"diagnose/replay"
	"diagnose/replay/record/eventlog"
)

// orders reverses single accesses to the words that differ, and to those whose accesses were reversed
// before, in the replay and in the one without preemptions.
func (a *approach) orders(ctx context.Context) (bool, error) {
	from := a.from
	words := slices.Clone(a.raced)
	for _, word := range from.unlike.words() {
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	if len(words) == 0 {
		return false, nil
	}
	plans := []plan{from.plan, {timing: from.plan.timing}}
	if len(from.plan.list) == 0 {
		plans = plans[:1]
	}
	for _, p := range plans {
		base := *from
		base.plan = p
		seen := &watched{plan: p, windows: map[uint32]replay.StepWindow{}, of: map[evidence.Addr]*wordAccesses{}}
		for thread, list := range a.order.of {
			seen.windows[thread] = replay.StepWindow{To: uint64(len(list))}
		}
		if err := a.watchWords(ctx, &base, seen, nil, words[:min(len(words), mostWatched)]); err != nil {
			return false, err
		}
		t := seen.trace()
		candidates := varied(a.reversals(&base, t, nil, 8*mostFine))
		candidates = append(candidates[:min(len(candidates), mostFine)], inserted(from.plan, t)...)
		if found, err := a.tryAll(ctx, candidates); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// varied sorts candidates so that each pair of instructions and threads has its turn, then each its second
// one, and so on.
func varied(list []candidate) []candidate {
	type ranked struct {
		candidate
		n int
	}
	var all []ranked
	seen := map[racePlace]int{}
	for _, c := range list {
		all = append(all, ranked{c, seen[c.race]})
		seen[c.race]++
	}
	slices.SortStableFunc(all, func(x, y ranked) int { return x.n - y.n })
	out := make([]candidate, len(all))
	for i := range all {
		out[i] = all[i].candidate
	}
	return out
}

// inserted returns plans in which a thread is preempted at an access before it reaches the preemptions
// that it has. They remain, and are reached later.
func inserted(p plan, t *trace) []candidate {
	var list []candidate
	for i := len(t.accesses) - 1; i >= 0 && len(list) < mostFine; i-- {
		x := &t.accesses[i]
		if x.Behind != 0 || x.Count == 0 {
			continue
		}
		at := slices.IndexFunc(p.list, func(y eventlog.Preemption) bool {
			return y.Thread == x.Thread && y.Ordinal == x.Ordinal && y.Class == eventlog.PointPC
		})
		if at < 0 {
			continue
		}
		until := p.list[at].Until
		first := slices.IndexFunc(p.list, func(y eventlog.Preemption) bool { return y.Until == until })
		add := eventlog.Preemption{Thread: x.Thread, Ordinal: x.Ordinal, Class: eventlog.PointPC, PC: x.PC, Count: x.Count, Until: until}
		q := p.with(slices.Insert(slices.Clone(p.list), min(first, at), add))
		q.fine = true
		list = append(list, candidate{plan: q, word: x.Addr &^ (wordSize - 1)})
	}
	return list
}

// window reverses single accesses of the threads in their last steps.
func (a *approach) window(ctx context.Context) (bool, error) {
	from := a.from
	w := a.order.window(from.thread, from.ordinal, 1)
	if w == nil {
		return false, nil
	}
	x, err := a.fine(ctx, from, w, mostSteps, nil)
	if err != nil {
		return false, err
	}
	return a.tryAll(ctx, x.accesses)
}

// tryAll tries candidates until one is closer.
func (a *approach) tryAll(ctx context.Context, list []candidate) (bool, error) {
	from := a.from
	for _, c := range list {
		if _, err := a.try(ctx, c.plan); err != nil || a.from != from {
			if err == nil {
				a.noteRace(c.word)
			}
			return a.from != from, err
		}
	}
	return false, nil
}

// noteRace notes a word of which the order of two accesses matters; 0: none.
func (s *search) noteRace(word evidence.Addr) {
	if word != 0 && len(s.raced) < mostRaced && !slices.Contains(s.raced, word) {
		s.raced = append(s.raced, word)
	}
}
