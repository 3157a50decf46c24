package explore

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"diagnose/evidence"
	"diagnose/replay"
	"diagnose/replay/record/eventlog"
)

const (
	// defaultApproach bounds the search among replays that end at the recorded place.
	defaultApproach = 2 * time.Minute
	// near is how many arrivals beside one are tried: a thread goes through the parts of an array,
	// say, and is preempted only at some.
	near = 4
)

// unlike is how the state at the end of a replay differs from the core's.
type unlike struct {
	// order has, by place, how the replay's number there compares with the recorded one.
	order map[statePlace]int
	// stopped is where the core has threads that the replay has elsewhere.
	stopped map[uint32]evidence.Addr
	// places counts all places that differ, bytes those of memory.
	places int
	bytes  uint64
}

// statePlace is a word of memory, or a register of a thread.
type statePlace struct {
	addr     evidence.Addr
	thread   uint32
	register string
}

// unlikeOf returns nil if nothing differs.
func unlikeOf(c *replay.Comparison) *unlike {
	if c == nil || c.Identical() {
		return nil
	}
	u := &unlike{order: map[statePlace]int{}, stopped: map[uint32]evidence.Addr{}, places: int(c.Ranges) + c.Registers + c.Mappings, bytes: c.Bytes}
	for i := range c.Differences {
		d := &c.Differences[i]
		at := statePlace{addr: d.Addr &^ (wordSize - 1), thread: d.Thread, register: d.Register}
		if u.order[at] == 0 {
			u.order[at] = d.Order
		}
		if d.Register == "rip" {
			u.stopped[d.Thread] = evidence.Addr(d.Recorded)
		}
	}
	return u
}

// closer reports whether less differs than in another replay. nil: nothing differs.
func (u *unlike) closer(than *unlike) bool {
	switch {
	case u == nil || than == nil:
		return u == nil && than != nil
	case u.places != than.places:
		return u.places < than.places
	}
	return u.bytes < than.bytes
}

// comparable returns the places that have numbers, memory first.
func (u *unlike) comparable() []statePlace {
	var list []statePlace
	for p, order := range u.order {
		if order != 0 {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b statePlace) int {
		return cmp.Or(cmp.Compare(a.register, b.register), cmp.Compare(a.addr, b.addr), cmp.Compare(a.thread, b.thread))
	})
	return list
}

// words returns the words of memory that differ.
func (u *unlike) words() []evidence.Addr {
	var list []evidence.Addr
	for p := range u.order {
		if p.addr != 0 {
			list = append(list, p.addr)
		}
	}
	slices.Sort(list)
	return list
}

// approach continues from a replay that ends at the recorded place in another state: races may have
// been otherwise before it. It takes orders that leave less different, until nothing is.
func (s *search) approach(ctx context.Context) error {
	most := s.opts.Approach
	if most == 0 {
		most = defaultApproach
	}
	if until := time.Now().Add(most); until.Before(s.deadline) {
		defer func(deadline time.Time) { s.deadline = deadline }(s.deadline)
		s.deadline = until
	}
	a := &approach{s}
	for s.best.same && s.best.unlike != nil {
		found, err := a.step(ctx)
		if errors.Is(err, errSpent) || err == nil && !found {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// approach makes the steps of search.approach. Each method reports whether it found a replay that
// is closer, which is then the best.
type approach struct{ *search }

func (a *approach) step(ctx context.Context) (found bool, err error) {
	for _, kind := range []func(context.Context) (bool, error){a.counts, a.stops, a.orders, a.window} {
		if found, err = kind(ctx); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// try makes a replay. It returns nil unless that ends at the recorded place.
func (a *approach) try(ctx context.Context, p plan) (*outcome, error) {
	o, err := a.attempt(ctx, p, p.level())
	if err != nil || !o.same {
		return nil, err
	}
	if o.unlike.closer(a.best.unlike) {
		a.best = o
	}
	return o, nil
}

// counts changes at which arrival a thread is preempted. Where the end has a number that is smaller
// than the recorded one after some arrival and larger after another, the right one is between them.
func (a *approach) counts(ctx context.Context) (bool, error) {
	from := a.best
	for i := len(from.plan.list) - 1; i >= 0; i-- {
		if from.plan.list[i].Class != eventlog.PointPC {
			continue
		}
		b := &bisection{approach: a, plan: from.plan, at: i}
		for _, place := range from.unlike.comparable() {
			if err := b.search(ctx, place, from.unlike.order[place]); err != nil || a.best != from {
				return a.best != from, err
			}
		}
	}
	return false, nil
}

// bisection looks for the arrival at which a preemption leads to the recorded state.
type bisection struct {
	*approach
	plan plan
	at   int // of the preemption in the plan
}

// search looks for the arrival with which a place has the recorded number. sign is how the number
// compares now.
func (b *bisection) search(ctx context.Context, place statePlace, sign int) error {
	from := b.best
	for _, next := range []func(uint64) uint64{func(n uint64) uint64 { return n / 2 }, func(n uint64) uint64 { return 2 * n }} {
		last := b.plan.list[b.at].Count
		for n := next(last); n >= 1 && n <= mostArrivals && n != last; n = next(n) {
			now, known, err := b.compare(ctx, n, place)
			if err != nil || b.best != from {
				return err
			}
			if !known {
				continue
			}
			if now != sign {
				return b.between(ctx, place, min(n, last), max(n, last), sign, n < last)
			}
			last = n
		}
	}
	return nil
}

// between looks between two arrivals, of which one leaves the number too small and the other too
// large. sign is that of the higher arrival if down is set, else that of the lower one.
func (b *bisection) between(ctx context.Context, place statePlace, low, high uint64, sign int, down bool) error {
	from := b.best
	for low+1 < high {
		n := (low + high) / 2
		now, known, err := b.compare(ctx, n, place)
		if err != nil || b.best != from || !known {
			return err
		}
		if (now == sign) == down {
			high = n
		} else {
			low = n
		}
	}
	return nil
}

// compare tries an arrival, or one next to it, and returns how the number at a place then compares
// with the recorded one.
func (b *bisection) compare(ctx context.Context, n uint64, place statePlace) (order int, known bool, err error) {
	for i := range uint64(2 * near) {
		count := n + (i+1)/2
		if i%2 == 1 {
			count = n - (i+1)/2
		}
		if count < 1 || count > mostArrivals { // it may have wrapped
			continue
		}
		p := b.plan.with(slices.Clone(b.plan.list))
		p.list[b.at].Count = count
		o, err := b.try(ctx, p)
		if err != nil {
			return 0, false, err
		}
		if o != nil && o.unlike != nil {
			return o.unlike.order[place], true, nil
		}
	}
	return 0, false, nil
}

// stops preempts threads in their last step where the core has them.
func (a *approach) stops(ctx context.Context) (bool, error) {
	from := a.best
	for _, thread := range slices.Sorted(maps.Keys(from.unlike.stopped)) {
		last, ok := a.order.step(thread, uint64(len(a.order.of[thread])))
		if !ok || a.order.ends(last) {
			continue
		}
		for n := uint64(1); n <= mostArrivals; n *= 2 {
			p, ok := from.plan.preempt(place{thread, last.ordinal, from.unlike.stopped[thread], n, from.plan.points(last)}, last.end)
			if !ok {
				break
			}
			p.fine = true
			if o, err := a.try(ctx, p); err != nil || a.best != from {
				return a.best != from, err
			} else if o == nil {
				break // it does not come there so often
			}
		}
	}
	return false, nil
}

// orders reverses single accesses to the words that differ, in the best replay and in the one
// without preemptions.
func (a *approach) orders(ctx context.Context) (bool, error) {
	from := a.best
	words := from.unlike.words()
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
		if found, err := a.tryAll(ctx, a.reversals(&base, seen.trace(), nil)); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// window reverses single accesses of the threads in their last steps.
func (a *approach) window(ctx context.Context) (bool, error) {
	from := a.best
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
	from := a.best
	for _, c := range list {
		if _, err := a.try(ctx, c.plan); err != nil || a.best != from {
			return a.best != from, err
		}
	}
	return false, nil
}
