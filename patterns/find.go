package patterns

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"diagnose/delta"
	"diagnose/evidence"
)

// Options describe the failure.
type Options struct {
	// Threads are the threads that failed, by failing run; 0 or none: not
	// known.
	Threads []uint32
	// Early is memory of which it is known, in the first failing run, that a bad value was read there before another thread stored another
	// one. The order counts only if the bad value was there before that thread was: else it may be one of many that come one after the other.
	Early []evidence.Addr
	// Most is the number of candidates wanted; 0: DefaultMost.
	Most int
}

// DefaultMost is how many candidates are kept.
const DefaultMost = 64

// Result holds the patterns that may explain the failure.
type Result struct {
	Delta *delta.Delta
	// Candidates, the likeliest first.
	Candidates []Candidate
	// Measure names how they are ranked.
	Measure string
	// Seen counts the patterns of the failing runs; Common those that passing
	// runs have as often, and Ordered those whose order the program enforces.
	Seen, Common, Ordered int
	Limits                []evidence.Limit
}

// Candidate is a pattern of a failing run.
type Candidate struct {
	Pattern   evidence.PatternKind
	Variables []string
	// Key is equal for the same pattern in other runs of the program.
	Key string
	// Run indexes the failing runs; Accesses, in time, are of that run, and
	// Acquisitions those of a lock order.
	Run          int
	Accesses     []int
	Acquisitions []int
	// Recurs: the same code made the accesses in that order more than once in the run, and Accesses are the last of them.
	Recurs bool
	// Waiting: the threads of a lock order wait for its locks.
	Waiting bool
	// Never: the last of the pattern's accesses is missing here, because the
	// run ended first; it is Passing's first.
	Never bool
	// Passing are the accesses of the same code in a passing run, in time, and
	// Instead says what passing runs do.
	PassingRun int
	Passing    []int
	Instead    Instead
	// Guard is a lock held at all of the accesses. It does not determine their
	// order; in patterns of three it was released in between. Missing is the
	// lock that one side does not hold, or the Guard that is released.
	Guard, Missing string
	// Reading: Missing is held at all of them, but only for reading.
	Reading bool
	// Ordered names the reason why the order is fixed; empty: it could be
	// different.
	Ordered string
	// Apart: the accesses of the one context are not of one pass through its code, but of
	// two iterations of a loop, or of two calls.
	Apart bool
	// Late: the last access is another thread's, after the last access of the failing
	// thread: the failure may not need it.
	Late bool
	// Reversed: in passing runs the order is always the opposite. Unset: the
	// variable read has no value yet.
	Reversed, Unset bool
	// Stored: a bad value of Options.Early had been stored there, which may have been wrong itself.
	Stored bool
	// FailingRuns of FailingOf runs have it, and PassingRuns of PassingOf.
	FailingRuns, FailingOf, PassingRuns, PassingOf int
	// Score is in [0, 1].
	Score float64
	// Distance counts the accesses from the last one to the run's end, Closeness
	// those from the failing thread's last read of the variable.
	Distance, Closeness int

	key   key
	class class
}

// Find looks for patterns in the runs of a delta.
func Find(d *delta.Delta, opts Options) *Result {
	f := &finder{d: d, runs: d.Runs, opts: opts}
	f.result = &Result{Delta: d, Measure: measure(len(d.Runs.Failing), len(d.Runs.Passing))}
	if f.opts.Most <= 0 {
		f.opts.Most = DefaultMost
	}
	f.tellUntold()
	f.scan()
	f.collect()
	f.collectNever()
	f.collectLockOrders()
	f.keepLikeliest()
	for i := range f.entries {
		f.result.Candidates = append(f.result.Candidates, f.candidate(&f.entries[i]))
	}
	f.findPassing()
	return f.result
}

type finder struct {
	d                *delta.Delta
	runs             *delta.Runs
	opts             Options
	failing, passing []*scanner
	known            map[key]int32 // numbers the patterns of the failing runs
	// untold are the variables that were not traced in a passing run, with the
	// reason.
	untold  []map[int32]string
	entries []entry // the likeliest, and the last
	result  *Result
}

// entry is a candidate before it is known whether it is among the likeliest:
// there may be very many.
type entry struct {
	key  key
	run  int32
	seen sighting
	// accesses counts those of seen.last; fewer than the key's if the run ended
	// before the others. Of a lock order ring is set instead.
	accesses int32
	ring     *ring
	locking  locking

	failing, passing, passingOf     int32
	class                           class
	score                           float64
	closeness, distance             int32
	apart, reversed, changed, vague bool
	late                            bool
	// handled: a signal's handler interrupted the code that made the other accesses.
	handled bool
	// unset: it held only zeros so far. early: it is one of Options.Early.
	unset, early bool
	// stored: the early read found a value that a store had put there.
	stored bool
}

// scan searches the failing runs for patterns, and then the passing ones for
// the same patterns.
func (f *finder) scan() {
	for i, run := range f.runs.Failing {
		thread := uint32(0)
		if i < len(f.opts.Threads) {
			thread = f.opts.Threads[i]
		}
		f.failing = append(f.failing, newScanner(run, thread))
	}
	f.scanAll(f.failing)
	patterns := 0
	for _, s := range f.failing {
		patterns += s.found.len()
	}
	f.known = make(map[key]int32, patterns)
	for _, s := range f.failing {
		for k := range s.found.all() {
			if _, ok := f.known[k]; !ok {
				f.known[k] = int32(len(f.known))
			}
		}
	}
	for _, run := range f.runs.Passing {
		s := newScanner(run, 0)
		s.known, s.has, s.lacking = f.known, make([]bool, len(f.known)), f.mayLack
		f.passing = append(f.passing, s)
	}
	f.scanAll(f.passing)
}

// scanAll scans as many runs at once as there are processors.
func (f *finder) scanAll(list []*scanner) {
	limits := make([]*evidence.Limit, len(list))
	var wait sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, s := range list {
		wait.Go(func() {
			slots <- struct{}{}
			limits[i] = s.scan()
			s.forget()
			<-slots
		})
	}
	wait.Wait()
	for _, l := range limits {
		if l != nil {
			f.result.Limits = evidence.AddLimit(f.result.Limits, *l)
		}
	}
}

// forget releases everything but the patterns that were found.
func (s *scanner) forget() {
	s.state, s.clocks, s.pairs = nil, nil, pairScanner{}
}

// collect makes entries from the patterns of failing runs.
func (f *finder) collect() {
	for i, s := range f.failing {
		for k, seen := range s.found.all() {
			if present(f.failing[:i], k) > 0 {
				continue
			}
			f.addEntry(entry{
				key: k, run: int32(i), seen: *seen, accesses: int32(k.shape.accesses()),
				failing: present(f.failing, k), passing: f.passingWith(k), passingOf: f.tracedIn(k),
			})
		}
	}
}

// someEntries is how many entries beyond the wanted number are kept before
// sorting.
const someEntries = 1024

// addEntry judges a pattern. It drops it if it is at least as frequent in
// passing runs as in failing ones.
func (f *finder) addEntry(e entry) {
	f.result.Seen++
	if of := int(e.passingOf); of > 0 && int(e.failing)*of <= int(e.passing)*len(f.failing) {
		f.result.Common++
		return
	}
	if e.ring == nil {
		f.judge(&e)
	}
	e.class = e.classOf(len(f.passing) > 0)
	if e.class == classOrdered {
		f.result.Ordered++
	}
	e.score = f.scoreOf(&e)
	if f.entries = append(f.entries, e); len(f.entries) >= 2*f.opts.Most+someEntries {
		f.keepLikeliest()
	}
}

func present(list []*scanner, k key) int32 {
	n := int32(0)
	for _, s := range list {
		n += int32(bit(s.found.sightingOf(k) != nil))
	}
	return n
}

// passingWith counts the passing runs with a pattern of the failing ones.
func (f *finder) passingWith(k key) int32 {
	n := int32(0)
	for i := range f.passing {
		n += int32(bit(f.passingHas(i, k)))
	}
	return n
}

func (f *finder) passingHas(run int, k key) bool {
	n, ok := f.known[k]
	return ok && f.passing[run].has[n]
}

// candidate makes the complete candidate of an entry.
func (f *finder) candidate(e *entry) Candidate {
	c := Candidate{
		Pattern: kinds[e.key.shape], Run: int(e.run), PassingRun: -1, key: e.key, class: e.class,
		FailingRuns: int(e.failing), FailingOf: len(f.failing), PassingRuns: int(e.passing), PassingOf: int(e.passingOf),
		Score: e.score, Distance: int(e.distance), Closeness: int(e.closeness), Apart: e.apart, Late: e.late, Reversed: e.reversed, Unset: e.unset, Stored: e.stored, Recurs: e.seen.recurs,
	}
	if e.ring != nil {
		c.Pattern, c.Key, c.Variables, c.Acquisitions = evidence.PatternLockOrder, e.ring.key, e.ring.locks, e.ring.acquisitions
		c.Waiting = e.ring.waiting
		return c
	}
	for _, index := range e.seen.last[:e.accesses] {
		c.Accesses = append(c.Accesses, int(index))
	}
	c.Never = int(e.accesses) < e.key.shape.accesses()
	c.Key, c.Variables = f.keyText(e.key), []string{f.runs.Variables[e.key.variable]}
	if e.key.shape == shapePair {
		c.Variables = f.pairNames(e.key, c.Run, c.Accesses)
	}
	l := &e.locking
	c.Guard, c.Missing, c.Reading = lockName(l.guard), lockName(l.missing), l.reading
	switch {
	case !e.seen.free:
		c.Ordered = "the program itself orders these accesses"
	case l.never:
		c.Ordered = c.Guard + " is held from the first access to the last"
	case l.released:
		c.Missing = c.Guard
	}
	return c
}

// pairNames are the two variables, with offsets if they are parts of one.
func (f *finder) pairNames(k key, run int, accesses []int) []string {
	if k.variable != k.second {
		return []string{f.runs.Variables[k.variable], f.runs.Variables[k.second]}
	}
	var names []string
	for _, i := range accesses {
		name := fmt.Sprintf("%s+%d", f.runs.Variables[k.variable], f.failing[run].accesses[i].Offset)
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (f *finder) keyText(k key) string {
	text := fmt.Sprintf("%s %s", kinds[k.shape], f.runs.Variables[k.variable])
	if k.shape == shapePair {
		text += " " + f.runs.Variables[k.second]
	}
	for _, p := range k.places[:k.shape.accesses()] {
		text += fmt.Sprintf(" | %s: %s", f.runs.Role(p), f.runs.Code(p).Key)
	}
	return text
}

// judge finds the locks, whether the accesses of the one context belong
// together, and how far they are from the failure.
func (f *finder) judge(e *entry) {
	run, scanner := f.runs.Failing[e.run], f.failing[e.run]
	// A pattern whose variables no passing run traced explains less than one
	// that all passing runs lack.
	e.vague = len(f.passing) > 0 && e.passingOf == 0
	log, all := run.Log, len(scanner.accesses)
	indices := e.seen.last[:e.accesses]
	e.distance = int32(all) - slices.Max(indices)
	e.closeness = int32(all)
	for _, i := range indices {
		a := &log.Accesses[i]
		e.closeness = min(e.closeness, int32(all)-scanner.lastRead[scanner.cells.Of(a)])
		e.vague = e.vague || strings.Contains(log.Variables[a.Variable].Name, vagueIndex)
	}
	first := &log.Accesses[indices[0]]
	written := scanner.firstWrite[scanner.cells.Of(first)]
	e.unset = e.key.shape == shapeRW && first.Old == 0 && (written == 0 || written-1 > indices[0])
	if e.key.shape == shapeRW && e.run == 0 && len(indices) == 2 && f.isEarly(log, first) {
		e.stored, e.early = beforeThread(log, int(indices[0]), log.Accesses[indices[1]].Thread)
	}
	if len(indices) < 2 {
		return
	}
	e.handled = interrupted(log, indices)
	e.locking = lockingOf(run, indices)
	if len(indices) == 2 {
		e.reversed = e.reversed || f.reversed(e.key)
		return
	}
	e.late = scanner.lastOwn > 0 && slices.Max(indices) >= scanner.lastOwn
	e.apart = apart(log, &log.Accesses[indices[0]], &log.Accesses[indices[len(indices)-1]])
	middle := &log.Accesses[indices[1]]
	e.changed = middle.Kind == evidence.CodeRead || middle.Old != middle.New
}

// beforeThread reports whether what an access read was there before a thread was made; stored: by a store of the program.
func beforeThread(log *evidence.AccessLog, read int, thread uint32) (stored, before bool) {
	a := &log.Accesses[read]
	for i := read - 1; i >= 0; i-- {
		w := &log.Accesses[i]
		if w.Variable != a.Variable || w.Offset != a.Offset || w.Kind == evidence.CodeRead || w.By == evidence.ByHeap {
			continue
		}
		return true, slices.ContainsFunc(log.Order, func(e evidence.OrderEdge) bool {
			return !e.Lock && e.To == thread && e.From == w.Thread && e.FromOrdinal >= w.Ordinal && !slices.ContainsFunc(log.Accesses[:read], func(x evidence.Access) bool {
				return x.Thread == thread && x.Ordinal < e.ToOrdinal
			})
		})
	}
	return false, true
}

// isEarly reports whether an access is to memory of Options.Early.
func (f *finder) isEarly(log *evidence.AccessLog, a *evidence.Access) bool {
	at := log.Variables[a.Variable].Address + evidence.Addr(a.Offset)
	return slices.ContainsFunc(f.opts.Early, func(early evidence.Addr) bool { return early >= at && early < at+evidence.Addr(a.Size) })
}

// interrupted reports whether accesses are of one thread, and some of them of a signal's
// handler. A replay with the signal at another place shows which of the other accesses
// belong together.
func interrupted(log *evidence.AccessLog, indices []int32) bool {
	first := &log.Accesses[indices[0]]
	other := false
	for _, i := range indices {
		a := &log.Accesses[i]
		if a.Thread != first.Thread {
			return false
		}
		other = other || a.Handler != first.Handler
	}
	return other
}

// vagueIndex is part of an array's name if the scan does not know which element
// the failing code accesses.
const vagueIndex = "[...]"

// apart reports whether the code of the first access comes after that of the
// last, or makes the same access in the same expression, which compilers copy (of a loop's condition they
// make one before the loop and one at its end): then they are of two iterations. A read and
// a write in one expression are a modification.
func apart(log *evidence.AccessLog, first, last *evidence.Access) bool {
	a, b := &log.Contexts[first.Context], &log.Contexts[last.Context]
	if a.Site.Function != b.Site.Function || a.Site.Module != b.Site.Module {
		return false
	}
	return last.PC <= first.PC || first.Kind == last.Kind && a.Site.Column > 0 && samePlace(&a.Site, &b.Site) && samePlace(&a.Caller, &b.Caller)
}

func samePlace(a, b *evidence.Site) bool {
	return a.File == b.File && a.Line == b.Line && a.Column == b.Column
}

// reversed reports whether in each passing run that has both of two accesses, the
// second's place is always before the first's.
func (f *finder) reversed(k key) bool {
	firstWrites, lastWrites := k.shape != shapeRW, k.shape != shapeWR
	both := 0
	for _, p := range f.d.Passing {
		first, ok1 := p.Span(k.variable, k.places[0], firstWrites)
		last, ok2 := p.Span(k.variable, k.places[1], lastWrites)
		if !ok1 || !ok2 {
			continue
		}
		if first.First <= last.Last { // one access that reads and writes has no order
			return false
		}
		both++
	}
	return both > 0
}
