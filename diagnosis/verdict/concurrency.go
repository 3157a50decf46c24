package verdict

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"diagnose/delta"
	"diagnose/evidence"
	"diagnose/patterns"
	"diagnose/replay/record"
	"diagnose/watchtrace"
)

const (
	// mostTried is how many candidates are put to the test, mostReported how many
	// are told of when none of them passes it.
	mostTried = 8
	// mostAlike is how many are of those that the same code makes, on one object after the other, if the failure stays without each.
	mostAlike    = 2
	mostReported = 3
)

// concurrency compares the failing runs with the passing ones, and tries by
// experiment which order of accesses the failure depends on. What is looked at is
// widened until an order is proved.
func (w *work) concurrency() error {
	if w.conclusion.settled() {
		return nil
	}
	if alone, err := w.alone(); err != nil {
		return err
	} else if alone {
		w.out.Excluded = append(w.out.Excluded, w.noInterleaving())
		return nil
	}
	found, last, known, err := w.races()
	if err != nil {
		return err
	}
	if last != nil {
		last.exclude()
		last.setLater(w.out.Causes)
	}
	if known == 0 && len(w.out.Causes) > 0 {
		return nil
	}
	if known == 0 {
		return errors.New("the scan names no shared memory near the failure (--depth, --function or --message widen it)")
	}
	if found, err = w.withoutPassing(found); err != nil {
		return err
	}
	if proved(found) {
		// A bad value that was followed back, or freed memory, may be what the
		// order leads to.
		w.out.Causes = slices.DeleteFunc(w.out.Causes, func(c evidence.Cause) bool { return c.Open == evidence.OpenUntested })
		w.out.Causes = append(found, w.out.Causes...)
		return nil
	}
	w.out.Causes = append(w.out.Causes, found...)
	return nil
}

// races looks for orders in one scope after the other: the causes, what was compared
// last, and how many targets there were.
func (w *work) races() (found []evidence.Cause, last *race, known int, err error) {
	var seen []evidence.Addr
	for level := range widest + 1 {
		targets := w.outsideDeadFrames(w.scope.targets(level, seen))
		if len(targets) == known {
			continue
		}
		known = len(targets)
		r, err := w.race(targets)
		if err != nil && w.progress.stopsBefore("accesses in a wider scope") {
			break
		}
		if err != nil {
			return nil, nil, known, err
		}
		causes, err := r.try()
		if err != nil {
			return nil, nil, known, err
		}
		if better(causes, found) {
			found = causes
		}
		if last = r; r.final {
			break
		}
		seen = r.functions()
	}
	return found, last, known, nil
}

// outsideDeadFrames leaves out targets on stacks if the failing code read a variable of a function that had returned: later calls have the
// same memory for other variables, so an order of the accesses to it is none of that variable's. What is known to lie in a frame that is
// there until the end stays.
func (w *work) outsideDeadFrames(targets []watchtrace.Target) []watchtrace.Target {
	if !slices.ContainsFunc(w.out.Causes, func(c evidence.Cause) bool {
		return c.Kind == evidence.CauseBadValue && c.Basis == evidence.BasisLifetime
	}) {
		return targets
	}
	return slices.DeleteFunc(targets, func(t watchtrace.Target) bool {
		_, placed := w.stacks.places[t.Name]
		return !placed && w.Process.Place(t.Addr).Class == evidence.PlaceStack
	})
}

// setLater makes leads of what is said of memory that nothing had stored to, where another thread stores there only after it was read, or
// before it in runs that pass, and nothing in the program enforces either: the store is not missing, it may have come too late.
func (r *race) setLater(causes []evidence.Cause) {
	if !slices.ContainsFunc(r.found.Candidates, func(c patterns.Candidate) bool { return r.ofUnset(&c) }) {
		return
	}
	for i := range causes {
		if c := &causes[i]; c.Kind == evidence.CauseUninitialised && c.Proof != evidence.Proved && c.Open == "" {
			c.Open = evidence.OpenUntested
		}
	}
}

// ofUnset reports whether an order is of a read of memory that nothing had stored to, and of another context's store.
func (r *race) ofUnset(c *patterns.Candidate) bool {
	if c.Pattern != evidence.PatternRW || c.Ordered != "" {
		return false
	}
	log := r.failing[c.Run].log
	a := &log.Accesses[c.Accesses[0]]
	at := log.Variables[a.Variable].Address + evidence.Addr(a.Offset)
	return slices.ContainsFunc(r.earlyReads.unset, func(t watchtrace.Target) bool {
		return at < t.Addr+evidence.Addr(t.Size) && t.Addr < at+evidence.Addr(a.Size)
	})
}

// proved reports whether the first of causes, which are ranked, is.
func proved(causes []evidence.Cause) bool {
	return len(causes) > 0 && causes[0].Proof == evidence.Proved
}

// withoutPassing looks once more, where threads wait for each other, or a handler interrupted
// the one thread, and nothing is proved, without the runs that passed: in one of them the same
// accesses may have come in the same order, and the wait, which is none, before them, or in
// another call of the function that a handler interrupted. What is found is for experiments to
// prove, as ever.
func (w *work) withoutPassing(found []evidence.Cause) ([]evidence.Cause, error) {
	stuck := w.rec.Manifest.Outcome.Stuck != ""
	if proved(found) || !stuck && len(w.scope.handlers()) == 0 || len(w.Passing) == 0 {
		return found, nil
	}
	passing := w.Passing
	w.Passing = nil
	defer func() { w.Passing = passing }()
	causes, _, _, err := w.races()
	if err != nil || !proved(causes) {
		return found, err
	}
	if stuck {
		w.progress.limit(evidence.Limit{Code: evidence.LimitPassingWaits})
	} else {
		w.progress.limit(evidence.Limit{Code: evidence.LimitPassingOrders})
	}
	return causes, nil
}

// better reports whether causes of a wider scope are worth more than those of a
// narrower one.
func better(wide, narrow []evidence.Cause) bool {
	if len(wide) == 0 || len(narrow) == 0 {
		return len(narrow) == 0
	}
	if proved(wide) != proved(narrow) {
		return proved(wide)
	}
	if lead := narrow[0].Open != ""; lead != (wide[0].Open != "") {
		return lead
	}
	return proved(wide) && wide[0].Kind == evidence.CauseAtomicity && len(wide[0].Interleaving.Variables) == 1 && narrow[0].Kind == evidence.CauseOrder
}

// race traces the targets and finds the candidates.
func (w *work) race(targets []watchtrace.Target) (*race, error) {
	failing, passing, err := w.tracer.runs(targets)
	if err != nil {
		return nil, err
	}
	found, err := w.findPatterns(failing, passing)
	if err != nil {
		return nil, err
	}
	for _, l := range found.Limits {
		w.progress.limit(l)
	}
	if _, rust := w.Process.SymbolNamed("rust_eh_personality"); rust {
		w.progress.limit(evidence.Limit{Code: evidence.LimitRustLocks})
	}
	return &race{work: w, failing: failing, passing: passing, found: found}, nil
}

// settled reports whether something is proved that no order of accesses explains
// any further, or that is wrong whatever the order: a wait that is not tested again.
func (k *conclusion) settled() bool {
	return slices.ContainsFunc(k.out.Causes, func(c evidence.Cause) bool {
		switch c.Kind {
		case evidence.CauseHeapOverflow, evidence.CauseHeapUnderflow, evidence.CauseStackSmashing, evidence.CauseBadInput, evidence.CauseDeadlock:
			return c.Proof == evidence.Proved
		case evidence.CauseAtomicity:
			return c.Interleaving == nil // of a wait
		case evidence.CauseMissingWakeup:
			return c.Proof == evidence.Proved || len(k.in.Passing) == 0 && helps(&c) // a run that passes may show why the signal was missed
		}
		return false
	})
}

func (w *work) findPatterns(failing, passing []traced) (*patterns.Result, error) {
	var f, p []*evidence.AccessLog
	var threads []uint32
	for _, t := range failing {
		f = append(f, t.log)
		threads = append(threads, t.rec.Manifest.Outcome.Thread)
	}
	for _, t := range passing {
		p = append(p, t.log)
	}
	runs, err := delta.Align(f, p)
	if err != nil {
		return nil, err
	}
	var early []evidence.Addr
	for _, t := range w.earlyReads.overtaken {
		early = append(early, t.Addr)
	}
	return patterns.Find(delta.Compare(runs), patterns.Options{Threads: threads, Early: early}), nil
}

// race is the search among the candidates.
type race struct {
	*work
	failing, passing []traced
	found            *patterns.Result
	excluded         []evidence.Fact
	// final: what was found needs no wider search.
	final bool
}

// tested is a candidate and what the experiments say.
type tested struct {
	candidate   *patterns.Candidate
	experiments []evidence.Experiment
	// cured: the failure went with the order; refuted: it stayed without it.
	cured, refuted bool
	// cures counts the ways to change the order that helped; onlyBehind: that the
	// other context is first altogether does not.
	cures      int
	onlyBehind bool
	// stayed: the failure came without the order. forced: it came with the order
	// in a passing run, and passes: not without it.
	stayed, forced, passes bool
	// unreached is an access of the pattern that the failing run ended before, as a replay saw it;
	// nil: there is none.
	unreached *seenHit
	// rivals are what unrelated candidates are of that help as well.
	rivals []string
	// loose: a smaller change shows that what a thread does before or after the accesses may matter, and not their order.
	loose bool
	// unconfirmed: a smaller change was made, and decided nothing; or other threads came to the failing check before the write that it may need.
	unconfirmed bool
	// along are other variables whose accesses every change of the order moved as well.
	along []string
	// doubtful: what an experiment showed speaks against it, without deciding it.
	doubtful bool
	// unsettled: the failure came without the signal, which leaves the order as it was.
	unsettled bool
	// needless: the failing check was passed before the access that the order says has to come first, in a run or in a replay that went well.
	needless bool
	// apart: a trace shows that no value of its variables has a part in the failing check.
	apart bool
	// recurred: with the order changed the failing thread came past the failure, and failed later all the same; later: so it was in the last experiment.
	recurred, later bool
	// unlogged: a replay has the accesses in another order than the logs.
	unlogged bool
}

// interleaved reports whether it is proved that neither context may come between
// the other's accesses: whoever is first, the failure is gone.
func (t *tested) interleaved() bool {
	return t.cured && !t.loose && t.cures > 1 && len(t.candidate.Accesses) > 2 && !t.candidate.Apart
}

// How much a candidate says that an experiment proved. What happened when the failing
// thread had read all that it read is less than what it saw, and a variable of its own
// more than two that belong together.
const (
	saysOrder = iota
	saysAfterReads
	saysPair
	saysMost
)

func (t *tested) says() int {
	switch c := t.candidate; {
	case !t.interleaved():
		return saysOrder
	case c.Late:
		return saysAfterReads
	case c.Pattern == evidence.PatternPair:
		return saysPair
	}
	return saysMost
}

// try goes through the candidates and makes a cause of what an experiment proves,
// or of those that none refutes.
func (r *race) try() ([]evidence.Cause, error) {
	var open []*tested
	var best *tested
	strongest := saysOrder
	tried := map[*patterns.Candidate]*tested{}
	refuted := map[string]int{} // by code
	for i := range r.found.Candidates {
		c := &r.found.Candidates[i]
		if len(tried) == mostTried || !c.Suspicious() && !c.Tentative() || r.progress.stopsBefore("experiments") {
			break
		}
		// The first that is cured may be a consequence: who is first with one
		// variable may follow from an interleaving of accesses to another.
		if best != nil && !best.apart && !r.contradicted(best) && (len(c.Accesses) < 3 || c.Apart || c.Score < best.candidate.Score) {
			continue
		}
		code := codeOf(r.failing[c.Run].log, c)
		if refuted[code] == mostAlike {
			continue
		}
		t, err := r.test(c)
		if err != nil {
			return nil, err
		}
		if tried[c] = t; t.refuted {
			refuted[code]++
		}
		switch says := t.says(); {
		case says == saysMost:
			r.final = true
			r.undecided(open)
			return r.compare(t, tried)
		case says > saysOrder:
			if says > strongest {
				best, strongest, r.final = t, says, true
			}
		case t.unlogged:
			// An order that no replay has explains nothing.
		case t.needless:
			r.excluded = append(r.excluded, evidence.Fact{Name: namesText(c.Variables),
				Text: fmt.Sprintf("%s at %s: threads pass the failing check before the write, too", c.Pattern, r.placesText(c))})
		case t.cured:
			t.apart = !t.forced && r.apart(c)
			if best == nil || r.contradicted(best) && !r.contradicted(t) || best.apart && !t.apart {
				best = t
			}
		case r.inDeadlock(c):
			// The deadlock is told, with experiments of its own.
		case (c.Tentative() || t.unsettled) && !t.refuted:
			r.unsettled(t)
		case t.refuted && c.Recurs && len(c.Accesses) > 2 && !c.Apart:
			t.notAllRemoved()
			open = append(open, t)
		case t.refuted:
			r.excluded = append(r.excluded, evidence.Fact{Name: namesText(c.Variables),
				Text: fmt.Sprintf("%s at %s: the failure stays without that order", c.Pattern, r.placesText(c))})
		default:
			open = append(open, t)
		}
	}
	slices.SortStableFunc(open, func(a, b *tested) int {
		switch {
		case a.recurred == b.recurred:
			return 0
		case a.recurred:
			return -1
		}
		return 1
	})
	if best != nil {
		r.undecided(open)
		best = r.better(best)
		r.final = r.final || !best.loose && !r.freed(best.candidate) && !r.detector(best.candidate)
		return r.compare(best, tried)
	}
	if most := mostReported; len(open) > most {
		open = open[:most]
	}
	if len(r.passing) == 0 && len(open) > 1 {
		open = open[:1]
	}
	causes, err := r.reports(open...)
	for i := range causes {
		leadOf(&causes[i], open[i].candidate, r.found.Seen)
	}
	return causes, err
}

// codeOf is equal for candidates that the same code makes, whichever objects it accesses.
func codeOf(log *evidence.AccessLog, c *patterns.Candidate) string {
	code := []string{string(c.Pattern)}
	for _, x := range contextsOf(log, c) {
		code = append(code, x.Key)
	}
	return strings.Join(code, " | ")
}

// mostByChance is the probability up to which no chance is seen in how an order separates the runs that fail from those that pass.
const mostByChance = 0.05

// comesAgain is why the failure may stay in spite of an order that is the cause.
const comesAgain = "the same code makes the accesses in that order more than once in the run, and only the last time was changed"

// notAllRemoved says of the experiments on an interleaving by which the failure stayed that they decide nothing: another one of the same code
// may have done the harm before.
func (t *tested) notAllRemoved() {
	for i := range t.experiments {
		if e := &t.experiments[i]; !e.Control && !e.Expect && e.Undecided == "" && !e.Agrees() {
			e.Undecided = comesAgain
		}
	}
}

// leadOf makes a lead of an order that no experiment supports: correct programs have such orders in some runs and not in others. It stays a
// cause where so many runs have it if they fail and lack it if they pass that none of the orders seen would be expected to by chance, and
// where it is of locks that the threads wait for, which is the failure itself.
func leadOf(cause *evidence.Cause, c *patterns.Candidate, seen int) {
	if cause.Proof != evidence.Proved && !cause.Supported() && !c.Waiting && c.Chance()*float64(seen) > mostByChance {
		cause.Open = evidence.OpenUntested
	}
}

// unsettled tells of an order that correct programs have as well, and that no experiment decided.
func (r *race) unsettled(t *tested) {
	for i := range t.experiments {
		if e := &t.experiments[i]; e.Undecided != "" {
			r.progress.limit(evidence.Limit{Code: evidence.LimitUndecidedOrder, Pattern: t.candidate.Pattern, Names: t.candidate.Variables,
				Place: r.placesText(t.candidate), Experiment: e.What, Reason: e.Undecided})
			return
		}
	}
}

// undecided tells of likelier candidates than the one that is proved, of which the
// experiments came to nothing.
func (r *race) undecided(list []*tested) {
	for _, t := range list {
		for i := range t.experiments {
			if e := &t.experiments[i]; e.Undecided != "" {
				r.excluded = append(r.excluded, evidence.Fact{Name: namesText(t.candidate.Variables),
					Text: fmt.Sprintf("%s at %s is not decided: %s: %s", t.candidate.Pattern, r.placesText(t.candidate), e.What, e.Undecided)})
				break
			}
		}
	}
}

// contradicted reports that the failure came without an interleaving as well: it is
// cured one way round only, so it is not what interrupts that counts. That of two variables
// may then be a bystander's: to keep a thread back for so long changes all that it does, as
// it may where other accesses were moved along.
func (r *race) contradicted(t *tested) bool {
	if t.loose {
		return true
	}
	c := t.candidate
	if oneWay := t.cured && t.cures < 2 && !(t.forced && t.passes); c.Pattern == evidence.PatternPair && (oneWay || len(t.along) > 0) {
		return r.kindOf(c) == evidence.CauseAtomicity
	}
	if !t.stayed || len(c.Accesses) < 3 || r.kindOf(c) != evidence.CauseAtomicity {
		return false
	}
	// Of two threads that run the same code either may interrupt the other.
	log := r.failing[c.Run].log
	first, middle := &log.Accesses[c.Accesses[0]], &log.Accesses[c.Accesses[1]]
	return log.Threads[first.Thread].Start != log.Threads[middle.Thread].Start
}

// otherWay is why the failure may come in spite of an order that helps.
const otherWay = "the other way to change the order helps, and the same accesses may fail in this one as well"

func (r *race) reports(list ...*tested) ([]evidence.Cause, error) {
	var causes []evidence.Cause
	for _, t := range list {
		c, err := r.report(t)
		if err != nil {
			return nil, err
		}
		causes = append(causes, *c)
	}
	return causes, nil
}

// better is the order violation, where a pattern of three or of two variables was
// not about what interrupts but about who is first, or about what has no value yet.
func (r *race) better(t *tested) *tested {
	if t.interleaved() && r.kindOf(t.candidate) == evidence.CauseSignalHandler {
		return t // the signal may come first, and last: who is first does not matter
	}
	for i := range r.found.Candidates {
		c := &r.found.Candidates[i]
		if len(c.Accesses) != 2 || !c.Reversed || !c.Suspicious() || !slices.Contains(t.candidate.Variables, c.Variables[0]) {
			continue
		}
		if t.onlyBehind || c.Unset && t.candidate.Pattern == evidence.PatternPair {
			other, err := r.test(c)
			if err == nil && other.cured {
				return other
			}
		}
	}
	return t
}

// freed reports whether an access is the heap's, at a free: who is too early then
// follows from something else, a count say.
func (r *race) freed(c *patterns.Candidate) bool {
	log := r.failing[c.Run].log
	return slices.ContainsFunc(c.Accesses, func(i int) bool { return log.Accesses[i].By == evidence.ByHeap })
}

// run is what a plan needs of a traced recording. A timing that cannot be read is
// the usual one, as for the replays themselves.
func (r *race) run(t *traced) *run {
	timing, _ := t.rec.Timing()
	out := &run{log: t.log, lazy: timing == record.TimingLazy}
	if t.log.Failed {
		out.failing, out.last = t.rec.Manifest.Outcome.Thread, t.last
	}
	return out
}

// mostDifferences is how many of what differs between runs are told.
const mostDifferences = 6

// differences says what failing runs do and passing ones do not. Who is read from, and
// what, tells more than what the one kind of run did not come to.
func (r *race) differences() {
	d := r.found.Delta
	for _, kind := range []delta.Kind{delta.Order, delta.Values, delta.OnlyFailing, delta.OnlyPassing} {
		for i := range d.Differences {
			if x := &d.Differences[i]; x.Kind == kind && len(r.out.Differences) < mostDifferences {
				r.out.Differences = append(r.out.Differences, x.Text)
			}
		}
	}
	for _, l := range d.Limits {
		r.progress.limit(l)
	}
}

// exclude says what was looked at and is not the cause.
func (r *race) exclude() {
	r.differences()
	r.out.Excluded = append(r.out.Excluded, r.excluded...)
	n := r.found
	if n.Common > 0 {
		r.out.Excluded = append(r.out.Excluded, evidence.Fact{Name: "common orders",
			Text: fmt.Sprintf("%d of the %d orders of accesses that were seen are in passing runs as well", n.Common, n.Seen)})
	}
	if n.Ordered > 0 {
		r.out.Excluded = append(r.out.Excluded, evidence.Fact{Name: "enforced orders",
			Text: fmt.Sprintf("%d of the orders of accesses could not have been another: the program enforces them", n.Ordered)})
	}
}
