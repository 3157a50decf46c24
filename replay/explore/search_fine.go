package explore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"diagnose/evidence"
	"diagnose/replay"
)

const (
	// mostSteps is how many instructions of a window are traced one by one. fewSteps is how
	// many are traced before the accesses of a longer window are traced at full speed.
	mostSteps = 400_000
	fewSteps  = 40_000
	// mostShares is the number of parts into which that is divided: a thread that computes for
	// long must leave some for the others.
	mostShares = 8
	// mostFine is the maximum number of orders of accesses for a window, mostPoints that of
	// places after a release or the like.
	mostFine, mostPoints = 160, 32
	// mostRaced is how many words are noted whose accesses were reversed with success.
	mostRaced = 8
	// mostPartners is how many accesses of one step to the same memory are paired with a later
	// one of another thread.
	mostPartners = 6
)

// trace is the accesses and calls of the threads in a window.
type trace struct {
	accesses []replay.Stepped
	locks    []lockset        // held by the threads at that time
	calls    []replay.Stepped // of functions that synchronise
	cut      bool             // there are more
}

// traced is the candidates from a trace.
type traced struct {
	points, accesses []candidate
	cut              bool // there are more accesses
}

// trace makes another replay, in which it steps through at most so many instructions of the
// window.
func (s *search) trace(ctx context.Context, o *outcome, w *window, most uint64) (*trace, error) {
	t := &trace{}
	windows := w.threads()
	skip := s.skipped()
	known := s.functions()
	held := holders{order: s.order, of: map[uint32]*holder{}}
	looking := s.looking(o.plan)
	looking.Sleeping, looking.Computing = 10*time.Second, time.Minute // stepping is slow
	if o.stuck {
		looking.Computing = patience(s.rec) // it will be again, and a stepped instruction is a sign of life
	}
	share := most / uint64(min(max(len(windows), 2), mostShares))
	request := replay.StepRequest{Common: looking, Stepping: replay.Stepping{Windows: windows, Most: most, Share: share, On: func(x *replay.Stepped) {
		h := held.holderAt(x)
		switch {
		case x.Called != 0:
			does := known[x.Called].does
			h.call(does, x.First)
			if does != nothing || len(known) == 0 {
				t.calls = append(t.calls, *x)
			}
		case !skip(x.PC):
			t.accesses = append(t.accesses, *x)
			t.locks = append(t.locks, h.locks)
		}
	}}}
	r, err := s.replayTraced(ctx, request)
	t.cut = r != nil && (r.End == replay.EndMoment || r.StepsCut)
	return t, err
}

// skipped reports code of the dynamic linker: it writes the same whichever thread is first.
func (s *search) skipped() func(evidence.Addr) bool {
	type span struct{ start, end evidence.Addr }
	var linker []span
	for _, m := range s.rec.Manifest.Start.Mappings {
		if strings.Contains(string(m.Path), "/ld-linux") {
			linker = append(linker, span{m.Start, m.End})
		}
	}
	return func(pc evidence.Addr) bool {
		return slices.ContainsFunc(linker, func(x span) bool { return pc >= x.start && pc < x.end })
	}
}

// fine returns the orders from a trace of the window: first whole stretches between two
// operations on locks, where the release of a lock is no event; then single accesses. It leaves
// out known races.
func (s *search) fine(ctx context.Context, o *outcome, w *window, most uint64, known map[racePlace]bool) (x traced, err error) {
	return s.remember(fmt.Sprint("steps ", most, o.plan.key(), w.from(), w.to(), len(known)), func() (traced, error) {
		s.looked = fmt.Sprintf("the accesses between the events %d and %d", w.from(), w.to())
		t, err := s.trace(ctx, o, w, most)
		if err != nil {
			return traced{}, err
		}
		if t.cut && most == mostSteps {
			s.cut = true
		}
		return traced{s.points(o, t), s.reversals(o, t, known, mostFine), t.cut}, nil
	})
}

// remember makes each trace once.
func (s *search) remember(key string, trace func() (traced, error)) (traced, error) {
	if x, found := s.traced[key]; found {
		return x, nil
	}
	x, err := trace()
	if err == nil {
		s.traced[key] = x
	}
	return x, err
}

// points returns preemptions after releases, the last first.
func (s *search) points(o *outcome, t *trace) []candidate {
	var list []candidate
	for i := len(t.calls) - 1; i >= 0 && len(list) < mostPoints; i-- {
		x := &t.calls[i]
		st, ok := s.order.step(x.Thread, x.Ordinal)
		if !ok {
			continue
		}
		at := place{x.Thread, x.Ordinal, x.PC, x.Count, x.Behind}
		if p, ok := o.plan.preempt(at, st.end); ok && st.end > x.Position {
			list = append(list, candidate{plan: p, shape: shape{who: s.whoIs(o, x.Thread), pc: x.PC, until: untilLast}})
		}
	}
	return list
}

func (s *search) whoIs(o *outcome, thread uint32) who {
	if thread == o.thread {
		return whoSelf
	}
	return whoOther
}

// race is a pair of accesses that the log does not order, in the order in which they happened.
type race struct {
	first, second *replay.Stepped
	end           uint64 // how long the step of the first access can be delayed
	own           bool   // one is of the diverging thread
}

// racePlace identifies a race in the window.
type racePlace struct {
	first, second evidence.Addr
	threads       [2]uint32
	ordinals      [2]uint64
}

func (r *race) place() racePlace {
	a, b := r.first, r.second
	return racePlace{a.PC, b.PC, [2]uint32{a.Thread, b.Thread}, [2]uint64{a.Ordinal, b.Ordinal}}
}

// reversals reverses one race at a time, the last first, and those of the diverging thread
// before others, at most so many: the first access is delayed until the other thread's step is done, or only its
// access.
func (s *search) reversals(o *outcome, t *trace, known map[racePlace]bool, most int) []candidate {
	pairs := s.pairs(o, t)
	var list []candidate
	seen := map[string]bool{}
	add := func(p plan, how shape, r *race) {
		p.fine = true
		key := fmt.Sprint(p.list)
		if !seen[key] && len(list) < most {
			seen[key] = true
			list = append(list, candidate{p, how, r.place(), r.first.Addr &^ (wordSize - 1)})
		}
	}
	for _, r := range pairs {
		a, b := r.first, r.second
		if known[r.place()] {
			continue
		}
		how := shape{who: s.whoIs(o, a.Thread), pc: a.PC, with: b.PC}
		p, ok := o.plan.preempt(place{a.Thread, a.Ordinal, a.PC, a.Count, a.Behind}, b.Position)
		if !ok {
			continue
		}
		how.exact = true
		if both, ok := p.preempt(place{b.Thread, b.Ordinal, b.Next, b.NextCount, b.Behind}, b.Position); ok {
			add(both, how, &r)
		}
		how.exact = false
		add(p, how, &r)
		how.until = untilLast
		if p, ok := o.plan.preempt(place{a.Thread, a.Ordinal, a.PC, a.Count, a.Behind}, r.end); ok && r.end > b.Position {
			add(p, how, &r)
		}
	}
	return list
}

// pairs returns races, by the later access backward, those of the diverging thread before
// others.
func (s *search) pairs(o *outcome, t *trace) []race {
	const granule = 8
	before := map[evidence.Addr][]int{}
	var own, others []race
	for i := range t.accesses {
		b := &t.accesses[i]
		for g := b.Addr / granule; g <= (b.Addr+evidence.Addr(b.Size)-1)/granule; g++ {
			for _, r := range s.against(o, t, before[g], i) {
				if r.own {
					own = append(own, r)
				} else {
					others = append(others, r)
				}
			}
			before[g] = append(before[g], i)
		}
	}
	slices.Reverse(own)
	slices.Reverse(others)
	return append(own, others...)
}

// against pairs an access with earlier ones of other threads to the same memory, the last ones
// of each step.
func (s *search) against(o *outcome, t *trace, before []int, at int) []race {
	b := &t.accesses[at]
	type key struct {
		thread  uint32
		ordinal uint64
	}
	var list []race
	count := map[key]int{}
	for i := len(before) - 1; i >= 0; i-- {
		a := &t.accesses[before[i]]
		if a.Thread == b.Thread || a.Kind == evidence.Read && b.Kind == evidence.Read || a.Addr+evidence.Addr(a.Size) <= b.Addr || b.Addr+evidence.Addr(b.Size) <= a.Addr {
			continue
		}
		if t.locks[before[i]].sharesLock(t.locks[at]) {
			continue // they cannot be exchanged
		}
		st, ok := s.order.step(a.Thread, a.Ordinal)
		if k := (key{a.Thread, a.Ordinal}); !ok || b.Position > st.end || count[k] >= mostPartners {
			continue
		} else {
			count[k]++
		}
		list = append(list, race{a, b, st.end, a.Thread == o.thread || b.Thread == o.thread})
	}
	// The whole list is reversed later.
	slices.Reverse(list)
	return list
}
