package evidence

import (
	"fmt"
	"iter"
	"slices"
)

// PatternKind is an order of accesses to one variable by two contexts, of which
// at least one writes: the single letters are the accesses in time, in the
// patterns of three the first and the last are of one context.
type PatternKind string

// The patterns (Lu et al., ASPLOS 2006 and 2008; in the OS-level paper section 3.4).
const (
	PatternRW  PatternKind = "RW"
	PatternWR  PatternKind = "WR"
	PatternWW  PatternKind = "WW"
	PatternRWR PatternKind = "RWR"
	PatternRWW PatternKind = "RWW"
	PatternWWR PatternKind = "WWR"
	PatternWRW PatternKind = "WRW"
	// PatternPair is of two variables that belong together: one context
	// accesses both, and another one's access comes in between.
	PatternPair PatternKind = "two variables"
	// PatternLockOrder is of two locks that two threads take in opposite orders.
	PatternLockOrder PatternKind = "lock order"
)

// CauseKind is what kind of defect it is.
type CauseKind string

// The kinds of cause.
const (
	CauseHeapOverflow  CauseKind = "heap-overflow"
	CauseHeapUnderflow CauseKind = "heap-underflow"
	CauseUseAfterFree  CauseKind = "use-after-free"
	CauseStackSmashing CauseKind = "stack-smashing"
	CauseOverwritten   CauseKind = "overwritten-variable"
	CauseBadValue      CauseKind = "bad-value"
	CauseUninitialised CauseKind = "uninitialised-value"
	CauseBadInput      CauseKind = "value-from-input"
	CauseAtomicity     CauseKind = "atomicity-violation"
	CauseOrder         CauseKind = "order-violation"
	CauseSignalHandler CauseKind = "signal-handler-race"
	CauseDeadlock      CauseKind = "deadlock"
	CauseDoubleFree    CauseKind = "double-free"
	// CauseMissingWakeup: threads wait for a signal or post that was made before they waited, not often
	// enough, or never.
	CauseMissingWakeup CauseKind = "missing-wakeup"
)

// SeenAccess is an access as a report shows it.
type SeenAccess struct {
	// Moment is right after the access; Position counts the events of all threads
	// that were done before it.
	Moment   Moment    `json:"moment"`
	Position uint64    `json:"position"`
	Thread   ThreadRef `json:"thread"`
	// Variable is in the program's terms, Size the watched bytes at Address, Old
	// and New what they held before and after, as the variable's type has it.
	Variable string     `json:"variable"`
	Address  Addr       `json:"address"`
	Size     int        `json:"size"`
	Kind     AccessKind `json:"access"`
	Old      string     `json:"old,omitempty"`
	New      string     `json:"new,omitempty"`
	// Identity says of Variable what it is.
	Identity Identity `json:"identity"`
	// Object is the heap object that Address is in, as the failing run left it; nil: none
	// is known.
	Object *HeapObject `json:"object,omitempty"`
	// Unreached says that the run ended before this access: a replay made it in which the
	// signal came later. Moment and the values are not known.
	Unreached bool `json:"unreached,omitempty"`
	// ByHeap says that the heap made it, at the call of malloc or free at Site.
	ByHeap bool `json:"by_heap,omitempty"`
	// Stack begins with the program's own code that is responsible, at Site.
	Stack Stack `json:"stack"`
	Site  *Site `json:"site,omitempty"`
	// Library is the outermost function of a library by which the code at Site made it; empty: none is known.
	Library string `json:"library_function,omitempty"`
	// Handler is the name of the signal whose handler it was made in.
	Handler string `json:"handler,omitempty"`
	// Call is the system call that made it.
	Call  string `json:"call,omitempty"`
	Locks []Lock `json:"locks,omitempty"`
}

// Caller is the place of the call by which the function at Site was come to; nil: it is
// not known. A compiler may have made two of one function, of which one calls the other:
// those are passed over, and so is a recursion.
func (a *SeenAccess) Caller() *Site {
	inside := false
	for i := range a.Stack.Frames {
		s := &a.Stack.Frames[i].Site
		if inside && s.Function != a.Site.Function {
			return s
		}
		inside = inside || a.Site != nil && s.PC == a.Site.PC && s.Function == a.Site.Function
	}
	return nil
}

// CauseStep is one numbered sentence of the story, oldest first.
type CauseStep struct {
	// Text is one sentence without a final stop; Access and Site are what it is
	// about.
	Text   string      `json:"text"`
	Access *SeenAccess `json:"access,omitempty"`
	Site   *Site       `json:"site,omitempty"`
	Source *Source     `json:"source,omitempty"`
	Proof  Proof       `json:"proof"`
}

// ComparedValue is a value that a condition compared.
type ComparedValue struct {
	// Site is the condition.
	Site *Site `json:"site"`
	// Value is the value, in decimal or hexadecimal; empty: it is not known.
	Value string `json:"value,omitempty"`
	// Of is the value that was made of this one and of the one that is listed next to it, in the same form; empty: the condition compared this one.
	Of string `json:"of,omitempty"`
	// Story says where the value came from, the oldest step first.
	Story []CauseStep `json:"story"`
}

// Interleaving is a pattern with its accesses, in a failing run and in a passing
// one.
type Interleaving struct {
	// Pattern is of the accesses to Variables, which Failing has in time order.
	Pattern   PatternKind `json:"pattern"`
	Variables []string    `json:"variables"`
	// Identities say of Variables what they are, in the same order.
	Identities []Identity   `json:"identities,omitempty"`
	Failing    []SeenAccess `json:"failing"`
	// Passing are the accesses of the same code in a passing run; empty if
	// there is no such run.
	Passing []SeenAccess `json:"passing,omitempty"`
	// Missing is the lock that one side holds and the other does not.
	Missing string `json:"missing_lock,omitempty"`
	// Instead says what passing runs do.
	Instead string `json:"instead,omitempty"`
	// FailingRuns of FailingOf runs and PassingRuns of PassingOf had it; Score
	// is what ranks it, in [0, 1], by Measure.
	FailingRuns int     `json:"failing_runs"`
	FailingOf   int     `json:"failing_of"`
	PassingRuns int     `json:"passing_runs"`
	PassingOf   int     `json:"passing_of"`
	Score       float64 `json:"score"`
	Measure     string  `json:"measure"`
}

// Experiment is a change of the replay, made to see whether the failure follows.
type Experiment struct {
	// What names the change, in one phrase: "the store skipped".
	What string `json:"what"`
	// Failed of Runs replays failed as recorded.
	Failed int `json:"failed"`
	Runs   int `json:"runs"`
	// Expect says whether the failure was expected with this change.
	Expect bool `json:"failure_expected"`
	// Outcome says how the runs ended: "SIGABRT at bank.c:31", "exit status 0".
	Outcome string `json:"outcome"`
	// End is how the last run ended; nil: none did.
	End *RunEnd `json:"end,omitempty"`
	// Undecided says why the runs tell nothing; empty if they do.
	Undecided string `json:"undecided,omitempty"`
	// Control: nothing of what the cause claims was changed.
	Control bool `json:"control,omitempty"`
	// Change is the event that was changed, as a cause may claim it; nil: none is known.
	Change *Event `json:"change,omitempty"`
	// Check is what the last run found where the recorded one failed; nil: it was not seen.
	Check *FailingCheck `json:"check,omitempty"`
}

// OpenEnd says why the way back of a value ended before a place that is known to be wrong, or why an order is not known to be.
type OpenEnd string

// The open ends.
const (
	// OpenBound: more steps than --hops allows.
	OpenBound OpenEnd = "bound"
	// OpenTime: the time was used up.
	OpenTime OpenEnd = "time"
	// OpenOrigin: where the value came from there is not known.
	OpenOrigin OpenEnd = "origin"
	// OpenCall: a call returned the value, and what it executed is not known.
	OpenCall OpenEnd = "call"
	// OpenInput: input decided that the program gave up. Whether the input is wrong, or what the program made of it, is not known.
	OpenInput OpenEnd = "input"
	// OpenDecision: the program had found something wrong before, and what that was is not known.
	OpenDecision OpenEnd = "decision"
	// OpenEmpty: the value is null, which may be right as the pointer to no elements: the count of those that were accessed began at 0.
	OpenEmpty OpenEnd = "empty"
	// OpenRestored: the memory had had the value before, and got it back from elsewhere, as the end of a list does. It may be right there.
	OpenRestored OpenEnd = "restored"
	// OpenReused: the memory is in use as two objects. Which of them should not have it is not known.
	OpenReused OpenEnd = "reused"
	// OpenUntested: the failure may follow from the order of accesses, and no experiment or passing run tells whether it does.
	OpenUntested OpenEnd = "untested"
	// OpenOtherWay: passing runs went another way there. Whether that is because the program is wrong, or because they were given another
	// input, is not known.
	OpenOtherWay OpenEnd = "other-way"
	// OpenApart: memory was used after its life, and the run fails as it did if that life does not end.
	OpenApart OpenEnd = "apart"
	// OpenChanged: a number lost bits or changed its sign on its way. Whether the program means it to is not known.
	OpenChanged OpenEnd = "changed"
	// OpenFolded: the compiler had computed the value, so the run does not show what it was made of.
	OpenFolded OpenEnd = "folded"
)

// RunEndKind is how a run ended.
type RunEndKind string

// The ends of runs.
const (
	RunEndExit    RunEndKind = "exit"    // by itself, with a status
	RunEndSignal  RunEndKind = "signal"  // by a signal
	RunEndBlocked RunEndKind = "blocked" // no thread could run any more
	RunEndInput   RunEndKind = "input"   // it waits for input that the recording does not have
	RunEndEndless RunEndKind = "endless" // it was stopped long after the recorded end
)

// RunEnd is how a run with a change ended.
type RunEnd struct {
	Kind RunEndKind `json:"kind"`
	// Signal is the signal's name, Function where it came, if that is known.
	Signal   string `json:"signal,omitempty"`
	Function string `json:"function,omitempty"`
	// Status is the exit status.
	Status int `json:"status,omitempty"`
}

// Agrees reports whether the experiment came out as expected, each time.
func (e *Experiment) Agrees() bool {
	want := 0
	if e.Expect {
		want = e.Runs
	}
	return e.Undecided == "" && e.Runs > 0 && e.Failed == want
}

// Supported reports whether an experiment supports the cause: a changed run came out as expected, each time.
func (c *Cause) Supported() bool {
	return slices.ContainsFunc(c.Experiments, func(e Experiment) bool { return !e.Control && e.Agrees() })
}

// Cause is what the recording says the failure came from.
type Cause struct {
	Kind CauseKind `json:"kind"`
	// Basis is what the cause rests on.
	Basis Basis `json:"basis,omitempty"`
	// Summary is one sentence without a final stop, with variable and line;
	// Variable is in the program's terms.
	Summary  string `json:"summary"`
	Variable string `json:"variable,omitempty"`
	// Site is the line to be changed, as far as one can be named: of a memory
	// error the store.
	Site         *Site         `json:"site,omitempty"`
	Story        []CauseStep   `json:"story,omitempty"`
	Interleaving *Interleaving `json:"interleaving,omitempty"`
	Object       *HeapObject   `json:"object,omitempty"`
	Experiments  []Experiment  `json:"experiments,omitempty"`
	// Compared are the values that the condition compared at which a lead ends, as far as a trace has where they came from.
	Compared []ComparedValue `json:"compared,omitempty"`
	// Outside is the access outside of a variable or an object that the Summary begins with; nil: it has none.
	Outside *OutsideAccess `json:"outside,omitempty"`
	// Invalidated is the call of a container's function that freed Object; nil: it was freed otherwise, or it is not known.
	Invalidated *Invalidation `json:"invalidated,omitempty"`
	// Rivals are the things that unrelated causes name, without which the run passes as well.
	Rivals []string `json:"rivals,omitempty"`
	// Stale says that the store was made through a pointer that had been stored before the memory was
	// freed and allocated again: it is not meant for the object that is there now.
	Stale bool `json:"stale,omitempty"`
	// Ordered says that another thread or a handler made the store after the failing thread had read another value
	// there: when it was made may matter, and not its value.
	Ordered bool `json:"ordered,omitempty"`
	// Guard says that the function that stored the value, a constant, read it again itself before the failing code did: it
	// is stored for a use, and a later store may be missing.
	Guard bool `json:"guard,omitempty"`
	// Decision says that the program ended itself with a status because of the value, and no run that passed on the same input is known
	// to have another one there: that it ends otherwise with another value says only that it decides.
	Decision bool `json:"decision,omitempty"`
	// Open says why the way back of the value ended before a place that is known to be wrong; empty: it did not.
	Open OpenEnd `json:"open,omitempty"`
	// Proof is Proved only where Prove made it so.
	Proof Proof `json:"proof"`
	// Grounds are those of a proved cause; nil for any other.
	Grounds *Grounds `json:"grounds,omitempty"`
	// Contradiction is that of a log of accesses which the diagnosis used: then nothing is proved.
	Contradiction *Contradiction `json:"contradiction,omitempty"`
	// read: the cause is from a document.
	read bool
}

// OutsideAccess is an access outside of the memory that the code means.
type OutsideAccess struct {
	// Variable is that memory in the program's terms, Size its bytes.
	Variable string `json:"variable"`
	Size     uint64 `json:"size"`
	// Addr is the address of the access; 0: it is not known. Write: it stored something; otherwise it read.
	Addr  Addr `json:"addr,omitempty"`
	Write bool `json:"write,omitempty"`
	// Site is the place of the access.
	Site *Site `json:"site"`
}

// Diagnosis is what recordings add to a Case.
type Diagnosis struct {
	// Recording is the failing one's directory; Failing and Passing count the
	// recordings used.
	Recording string `json:"recording"`
	Failing   int    `json:"failing"`
	Passing   int    `json:"passing"`
	// Causes are ranked, the likeliest first; empty: unknown.
	Causes []Cause `json:"causes,omitempty"`
	// Leads are ways back of bad values that ended before a place that is known to be wrong: each has Open. They are no causes.
	Leads []Cause `json:"leads,omitempty"`
	// Schedule is what replays need to fail as recorded; nil: nothing but the
	// recorded order, or it is not known.
	Schedule *Schedule `json:"schedule,omitempty"`
	// Excluded are candidates that are not the cause, with the reason.
	Excluded []Fact `json:"excluded,omitempty"`
	// Differences are what failing runs do to the variables that were traced and passing
	// ones do not, or the other way round, the most telling first: sentences without a
	// final stop. They explain nothing by themselves.
	Differences []string `json:"differences,omitempty"`
	// Divergences are the branches on which the end of the failing run depends and that passing runs left by another way: the best
	// first, of equal ones the earliest.
	Divergences []Divergence `json:"divergences,omitempty"`
	Watched     []Watched    `json:"watched,omitempty"`
	Coverage    Coverage     `json:"coverage"`
	// Unknown says why there is no cause; nil if there is one.
	Unknown *Unknown `json:"unknown,omitempty"`
	// Interrupted: the user interrupted the analysis; Coverage.Limits name the
	// steps that were left out.
	Interrupted bool `json:"interrupted,omitempty"`
}

// Unknown is what can be said where no cause was found.
type Unknown struct {
	// Why is a phrase on the steps that found nothing; Because are the limits that kept
	// more from being found, which Coverage.Limits have as well.
	Why     string  `json:"why"`
	Because []Limit `json:"because,omitempty"`
	// Next is the next command line to try, NextWhy its purpose.
	Next    string `json:"next,omitempty"`
	NextWhy string `json:"next_why,omitempty"`
}

// Told are the causes and the leads, in the order in which they are told.
func (d *Diagnosis) Told() iter.Seq[*Cause] {
	return func(yield func(*Cause) bool) {
		for _, list := range [][]Cause{d.Causes, d.Leads} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// Check reports what makes the diagnosis unusable.
func (d *Diagnosis) Check() error {
	if err := d.Schedule.check(); err != nil {
		return err
	}
	i := -1
	for c := range d.Told() {
		i++
		if c.Kind == "" || c.Summary == "" || !c.Proof.Valid() {
			return fmt.Errorf("cause %d (%s) has no kind, no summary or no proof level", i, c.Kind)
		}
		if err := c.checkProof(); err != nil {
			return fmt.Errorf("cause %d (%s): %w", i, c.Kind, err)
		}
		for j, s := range c.Story {
			if s.Text == "" || !s.Proof.Valid() {
				return fmt.Errorf("cause %d, step %d has no text or no proof level", i, j)
			}
		}
	}
	return nil
}
