package explore

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
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
	// places counts all places that differ, bytes those of memory. apart is how far the numbers are
	// from the recorded ones: the sum of the logarithms of the differences.
	places int
	bytes  uint64
	apart  float64
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
		u.apart += math.Log2(1 + float64(d.Apart))
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
	case u.bytes != than.bytes:
		return u.bytes < than.bytes
	}
	return u.apart < than.apart
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
	if !s.best.same || s.best.unlike == nil {
		return nil
	}
	if err := newApproach(s).climb(ctx); !errors.Is(err, errSpent) {
		return err
	}
	return nil
}

// approachDivergence continues from the furthest replay, if it diverged: a thread may have come there
// with another value, from races of long before. It takes orders after which less differs from the core,
// until a replay gets further.
func (s *search) approachDivergence(ctx context.Context) error {
	for s.core && !s.best.same && !s.best.stuck {
		s.comparing = true
		from, err := s.attempt(ctx, s.best.plan, s.best.plan.level())
		if err != nil || from.unlike == nil {
			return err
		}
		s.best, s.looked = from, "the words that differ from the core"
		if err := newApproach(s).climb(ctx); err != nil || s.best.same || s.best.events == from.events {
			return err
		}
		s.comparing = false
		d := &descent{s, efforts[0], map[string]bool{}}
		if found, err := d.beyond(ctx, s.best); found != nil || err != nil {
			return err
		}
	}
	return nil
}

// approach looks for replays that are closer to the recorded state. Its methods look for one that is
// closer than from, which it then becomes, and report whether they found one.
type approach struct {
	*search
	from  *outcome
	first *outcome
	// reached are the replays that ended where the first did, by their plans; done are those whose
	// neighbours were tried.
	reached map[string]*outcome
	done    map[string]bool
}

func newApproach(s *search) *approach {
	return &approach{search: s, from: s.best, first: s.best, reached: map[string]*outcome{}, done: map[string]bool{}}
}

// climb follows replays that are closer and closer, and where nothing is, continues from the closest of
// the others.
func (a *approach) climb(ctx context.Context) error {
	for a.from != nil && !a.arrived() {
		a.done[a.from.plan.key()] = true
		found, err := a.step(ctx)
		if err != nil {
			return err
		}
		if !found {
			a.from = a.closest()
		}
	}
	return nil
}

// arrived reports whether nothing is left to approach.
func (a *approach) arrived() bool {
	return a.from.same && (!a.first.same || a.from.unlike == nil) || a.from.events > a.first.events
}

// closest returns the closest replay whose neighbours were not tried; nil: there is none.
func (a *approach) closest() *outcome {
	var best *outcome
	for _, key := range slices.Sorted(maps.Keys(a.reached)) {
		o := a.reached[key]
		if !a.done[key] && (best == nil || o.unlike.closer(best.unlike)) {
			best = o
		}
	}
	return best
}

func (a *approach) step(ctx context.Context) (found bool, err error) {
	kinds := []func(context.Context) (bool, error){a.counts, a.siblings, a.stops, a.orders, a.window}
	if !a.from.same { // threads are not where the core has them, and the window was looked at
		kinds = []func(context.Context) (bool, error){a.counts, a.siblings, a.orders}
	}
	for _, kind := range kinds {
		if found, err = kind(ctx); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// try makes a replay. It returns nil unless that ends where from does, or further.
func (a *approach) try(ctx context.Context, p plan) (*outcome, error) {
	o, err := a.attempt(ctx, p, p.level())
	from := a.from
	switch {
	case err != nil || from.same && !o.same:
		return nil, err
	case o.same != from.same || o.events > from.events:
		a.from = o
	case !o.same && (o.unlike == nil || o.diverged() != from.diverged()):
		return nil, nil
	case o.unlike.closer(from.unlike):
		a.from = o
	}
	a.reached[p.key()] = o
	if o.same != a.best.same || o.events > a.best.events || o.unlike.closer(a.best.unlike) {
		a.best = o
	}
	return o, nil
}

// counts changes at which arrival a thread is preempted. Where the end has a number that is smaller
// than the recorded one after some arrival and larger after another, the right one is between them.
func (a *approach) counts(ctx context.Context) (bool, error) {
	from := a.from
	for i := len(from.plan.list) - 1; i >= 0; i-- {
		if from.plan.list[i].Class != eventlog.PointPC {
			continue
		}
		b := &bisection{approach: a, plan: from.plan, at: i}
		for _, place := range from.unlike.comparable() {
			if err := b.search(ctx, place, from.unlike.order[place]); err != nil || a.from != from {
				return a.from != from, err
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
	for _, next := range []func(uint64) uint64{func(n uint64) uint64 { return n / 2 }, func(n uint64) uint64 { return 2 * n }} {
		last := b.plan.list[b.at].Count
		for n := next(last); n >= 1 && n <= mostArrivals && n != last; n = next(n) {
			now, known, err := b.compare(ctx, n, place, near)
			if err != nil || b.arrived() {
				return err
			}
			if !known || now != sign {
				if err := b.between(ctx, place, last, n, sign); err != nil || known || b.arrived() {
					return err
				}
				break
			}
			last = n
		}
	}
	return nil
}

// between looks between two arrivals. After the one that is inside, the number is too small or too large,
// as sign says; after the one beyond it is not, or the thread no longer reaches the same place.
func (b *bisection) between(ctx context.Context, place statePlace, inside, beyond uint64, sign int) error {
	for max(inside, beyond)-min(inside, beyond) > 1 {
		n := (inside + beyond) / 2
		now, known, err := b.compare(ctx, n, place, 1)
		if err != nil || b.arrived() {
			return err
		}
		if known && now == sign {
			inside = n
		} else {
			beyond = n
		}
	}
	return nil
}

// compare tries an arrival, or one that is at most so many away from it, and returns how the number at a
// place then compares with the recorded one.
func (b *bisection) compare(ctx context.Context, n uint64, place statePlace, beside uint64) (order int, known bool, err error) {
	for i := range 2 * beside {
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

// siblings preempts another thread that runs the same code instead of one that is preempted, and the
// others of the plan some arrivals earlier or later: which of the threads it was decides of which part
// of an array, say, that another thread goes through.
func (a *approach) siblings(ctx context.Context) (bool, error) {
	from := a.from
	var list []candidate
	for i, x := range from.plan.list {
		if x.Class != eventlog.PointPC {
			continue
		}
		for _, other := range a.alike(x) {
			p := from.plan.with(slices.Clone(from.plan.list))
			p.list[i].Thread, p.list[i].Ordinal = other.thread, other.ordinal
			for j := range p.list { // those that last as long follow each other
				if p.list[j].Until == x.Until {
					p.list[j].Until = min(x.Until, other.end)
				}
			}
			list = append(list, candidate{plan: p})
			for j, y := range from.plan.list {
				if j != i && y.Class == eventlog.PointPC {
					list = append(list, shifted(p, j)...)
				}
			}
		}
	}
	return a.tryAll(ctx, list)
}

// alike returns the steps of other threads that begin with the same code after as many events.
func (a *approach) alike(x eventlog.Preemption) []step {
	own, ok := a.order.step(x.Thread, x.Ordinal)
	if !ok {
		return nil
	}
	var list []step
	for _, thread := range slices.Sorted(maps.Keys(a.order.of)) {
		if st, ok := a.order.step(thread, x.Ordinal); ok && thread != x.Thread && a.siteOf(st) == a.siteOf(own) {
			list = append(list, st)
		}
	}
	return list
}

// shifted returns plans with one preemption some arrivals earlier or later.
func shifted(p plan, at int) []candidate {
	var list []candidate
	for by := uint64(1); by <= near; by++ {
		for _, count := range []uint64{p.list[at].Count - by, p.list[at].Count + by} {
			if count >= 1 && count <= mostArrivals { // it may have wrapped
				q := p.with(slices.Clone(p.list))
				q.list[at].Count = count
				list = append(list, candidate{plan: q})
			}
		}
	}
	return list
}

// stops preempts threads in their last step where the core has them.
func (a *approach) stops(ctx context.Context) (bool, error) {
	from := a.from
	for _, thread := range slices.Sorted(maps.Keys(from.unlike.stopped)) {
		last, ok := a.order.step(thread, uint64(len(a.order.of[thread])))
		if !ok || a.order.ends(last) {
			continue
		}
		for n := uint64(1); n <= mostArrivals; n *= 2 {
			p, ok := from.plan.preempt(place{thread, last.ordinal, from.unlike.stopped[thread], n, from.plan.points(last)}, eventlog.Never)
			if !ok {
				break
			}
			p.fine = true
			if o, err := a.try(ctx, p); err != nil || a.from != from {
				return a.from != from, err
			} else if o == nil {
				break // it does not come there so often
			}
		}
	}
	return false, nil
}
