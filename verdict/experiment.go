package verdict

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/x86"
	"diagnose/record"
	"diagnose/replay"
	"diagnose/unwind"
)

// trial is one replay's end, compared with the recorded failure.
type trial struct {
	failed    bool
	outcome   string
	undecided string
	// elsewhere says why a run that did not fail as recorded did not go well either;
	// empty: it did, as far as can be told.
	elsewhere string
	// reached is how often it came to the place of the failure, events how many
	// events it made, of so many in the recording.
	reached, events, total uint64
	unbroken               []evidence.Addr
}

// experiment replays some times with a change and says whether the failure came. A
// run without it has to go well, and to come as far as the recorded one: one that ends
// elsewhere may have stopped too soon, or because of the change.
func (w *work) experiment(what string, rec *record.Recording, opts replay.Options, expect bool) evidence.Experiment {
	return w.repeat(what, expect, func() trial { return w.once(rec, opts, expect) })
}

// without is experiment for a change with which the recorded run has not to fail.
func (w *work) without(x *change) evidence.Experiment {
	return w.repeat(x.what, false, func() trial {
		opts := x.options
		if x.breaks != nil {
			opts.Breaks = x.breaks()
		}
		return w.once(w.rec, opts, false)
	})
}

// once makes one replay, and judges one that went well.
func (w *work) once(rec *record.Recording, opts replay.Options, expect bool) trial {
	own := rec == w.rec
	var reached uint64
	if r := w.reaching(); own && r.pc != 0 {
		most := uint64(mostReached)
		if r.recorded > 0 {
			most = r.recorded
		}
		opts.Breaks = append([]replay.Break{r.counter(&reached, most)}, opts.Breaks...)
	}
	t := w.try(rec, opts)
	t.reached = reached
	switch {
	case t.undecided != "":
	case expect:
		if own && t.failed && len(opts.Edits) == 0 && opts.Schedule == nil && !slices.Contains(t.unbroken, w.reaching().pc) {
			w.reaching().recorded = reached
		}
	case t.failed:
	case t.elsewhere != "":
		t.undecided = t.elsewhere
	case own:
		t.undecided = w.soFar(&t)
	}
	return t
}

func (w *work) repeat(what string, expect bool, try func() trial) evidence.Experiment {
	e := evidence.Experiment{What: what, Expect: expect}
	for range w.Replays {
		if w.over("experiments") {
			e.Undecided = w.ended().Error()
			break
		}
		w.say("experiment: %s, replay %d of %d", what, e.Runs+1, w.Replays)
		t := try()
		if t.undecided != "" && w.over("experiments") {
			e.Undecided = w.ended().Error()
			break
		}
		e.Runs++
		if t.failed {
			e.Failed++
		}
		e.Outcome, e.Undecided = t.outcome, t.undecided
		if t.undecided != "" {
			break
		}
	}
	return e
}

// An experiment may compute so long without an event: a thread that waits for what
// another one no longer does may never end.
const (
	trialLeast = 5 * time.Second
	trialTimes = 10
)

func (w *work) try(rec *record.Recording, opts replay.Options) trial {
	var t trial
	opts.Image = w.Image
	times := &rec.Manifest.Times
	opts.Computing = trialLeast + trialTimes*time.Duration(times.UserNS+times.SystemNS)
	opts.AtEnd = func(s *replay.Stopped) error { return w.compare(&t, s) }
	result, err := replay.Run(w.ctx, rec, opts)
	if result != nil {
		t.events, t.total, t.unbroken = result.Events, result.Total, result.Unbroken
	}
	var diverged *replay.DivergenceError
	var stuck *replay.StuckError
	ended := w.rec.Manifest.Outcome.Signal == 0 // by itself
	switch {
	case errors.As(err, &stuck) && w.Case.Failure.Kind == evidence.Deadlock:
		t.failed, t.outcome = true, "no thread could go on"
	case errors.As(err, &stuck) && stuck.Cause == replay.StuckEvents && ended:
		t.undecided = "it went on far behind the recorded end, at which the failure showed"
	case errors.As(err, &stuck) && stuck.Cause == replay.StuckEvents:
		t.failed, t.outcome = false, "it went on far behind the recorded end without failing"
	case errors.As(err, &stuck):
		t.undecided = "the process came to no end: " + err.Error()
	case errors.As(err, &diverged):
		t.undecided = "the replay left the recorded way: " + err.Error()
	case err != nil:
		t.undecided = err.Error()
	case result.End == replay.EndIdle && ended:
		t.undecided = "it waits for input that the recording does not have, and the failure showed at the end"
	case result.End == replay.EndIdle:
		t.failed, t.outcome = false, "it waits for input that the recording does not have"
	case result.MadeUp > 0 && t.failed:
		t.outcome += fmt.Sprintf(", with results of %d calls that the log does not have", result.MadeUp)
	}
	return t
}

// compare looks at the process at its end.
func (w *work) compare(t *trial, s *replay.Stopped) error {
	recorded := &w.rec.Manifest.Outcome
	if s.Signal == 0 {
		t.outcome = fmt.Sprintf("exit status %d", s.Status)
		same := recorded.Signal == 0 && s.Status == recorded.Status
		t.failed = same && w.stillDamaged(s)
		if !same && !w.passes(s.Status) {
			t.elsewhere = fmt.Sprintf("the run then ended by %s, by which no run that passes does", t.outcome)
		}
		return nil
	}
	function, pc, err := w.failingPlace(s)
	if err != nil {
		return err
	}
	t.outcome = unix.SignalName(unix.Signal(s.Signal))
	if function != "" {
		t.outcome += " in " + function
	}
	site := w.Case.Failure.Site
	t.failed = s.Signal == recorded.Signal && (w.Case.Failure.Fault == nil || pc == w.failingPC()) &&
		(site == nil || function == "" || evidence.ShortName(site.Function) == function)
	if err := w.compareError(t, s); err != nil {
		return err
	}
	if err := w.compareFill(t, s); err != nil {
		return err
	}
	if !t.failed {
		t.elsewhere = "the run then failed elsewhere: " + t.outcome
		t.outcome = otherwise + t.outcome
	}
	return nil
}

// passes reports whether a run that ends with a status is known to have passed.
func (w *work) passes(status int) bool {
	return status == 0 || slices.ContainsFunc(w.Passing, func(r *record.Recording) bool {
		o := &r.Manifest.Outcome
		return o.Signal == 0 && o.Status == status
	})
}

// otherwise begins the outcome of a run that a signal ended in another way than the
// recorded one.
const otherwise = "failed otherwise, with "

// compareFill looks whether a pointer from freed memory, by which the recorded run
// failed, is from the same object again.
func (w *work) compareFill(t *trial, s *replay.Stopped) error {
	recorded, err := w.filled(w.Process)
	if len(recorded) == 0 || err != nil || !t.failed {
		return err
	}
	p, err := s.Process()
	if err != nil {
		return err
	}
	now, err := w.filled(p)
	if err != nil || slices.ContainsFunc(now, func(o evidence.Addr) bool { return slices.Contains(recorded, o) }) {
		return err
	}
	t.failed = false
	t.outcome += ", not because of this object"
	if len(now) > 0 {
		t.outcome += fmt.Sprintf(" but of the one at %v", now[0])
	}
	return nil
}

// filled are the freed objects whose fill the failing thread has in its registers,
// if a finding says that it failed by one.
func (w *work) filled(p *image.Process) ([]evidence.Addr, error) {
	read := func(f evidence.Finding) bool { return f.Kind == evidence.FindingUseAfterFree && f.Damage == nil }
	thread := p.FailingThread()
	if thread == nil || w.Case.Failure.Fault == nil || !slices.ContainsFunc(w.Case.Findings, read) {
		return nil, nil
	}
	heap, err := agent.Open(p, 0)
	if err != nil {
		return nil, fmt.Errorf("verdict: %w", err)
	}
	var list []evidence.Addr
	for _, r := range thread.Registers.General() {
		o, _, found, err := heap.FillWord(uint64(r.Value))
		if err != nil {
			return nil, fmt.Errorf("verdict: %w", err)
		}
		if found && !slices.Contains(list, o.Addr) {
			list = append(list, o.Addr)
		}
	}
	return list, nil
}

// compareError looks whether the agent ended the process because of the same
// object: one defect may have damaged others as well.
func (w *work) compareError(t *trial, s *replay.Stopped) error {
	recorded, err := fatalError(w.Process)
	if recorded == nil || err != nil || !t.failed {
		return err
	}
	now, err := fatalError(s)
	switch {
	case err != nil:
		return err
	case now == nil:
		t.failed = false
		t.outcome += ", not ended by the agent"
	case now.Kind != recorded.Kind || now.Pointer != recorded.Pointer:
		t.failed = false
		t.outcome += fmt.Sprintf(", because of another object, at %v", now.Pointer)
	}
	return nil
}

// fatalError is what the agent ended a process for, nil if it did not.
func fatalError(m agent.Memory) (*agent.Error, error) {
	heap, err := agent.Open(m, 0)
	if errors.Is(err, agent.ErrAbsent) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, _, err := heap.Errors()
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].Fatal {
			return &list[i], nil
		}
	}
	return nil, nil
}

// stillDamaged compares what the findings name with the core: of a run that
// ended by itself, damage is the failure.
func (w *work) stillDamaged(s *replay.Stopped) bool {
	for _, f := range w.Case.Findings {
		if f.Damage == nil {
			continue
		}
		size := min(int(f.Damage.End-f.Damage.Start), 64)
		now, recorded := make([]byte, size), make([]byte, size)
		if n, err := s.ReadMemory(f.Damage.Start, now); err != nil || n != size {
			return false
		}
		if n, err := w.Process.ReadMemory(f.Damage.Start, recorded); err != nil || n != size || !bytes.Equal(now, recorded) {
			return false
		}
	}
	return true
}

// failingPC is where an instruction of the recorded run faulted; 0 if none did.
func (w *work) failingPC() evidence.Addr {
	if thread := w.Process.FailingThread(); thread != nil {
		return thread.Registers.PC()
	}
	return 0
}

// failingPlace is where the thread ended, and the innermost function of the
// program's own there.
func (w *work) failingPlace(s *replay.Stopped) (function string, pc evidence.Addr, err error) {
	p, err := s.Process()
	if err != nil {
		return "", 0, err
	}
	thread := p.FailingThread()
	if thread == nil {
		return "", 0, nil
	}
	pc = thread.Registers.PC()
	u := unwind.New(p)
	stack := u.Walk(thread, 64)
	u.Symbolize(stack.Frames)
	for _, f := range stack.Frames {
		for _, call := range f.Calls {
			if !image.LibraryCode(&call.Site) {
				return evidence.ShortName(call.Site.Function), pc, nil
			}
		}
	}
	return "", pc, nil
}

// prove makes the experiments on a memory error: the failure must go away
// without the store, and stay with it.
func (w *work) prove(c *chain, cause *evidence.Cause) {
	cause.Experiments = append(cause.Experiments, w.experiment("the recorded run again", w.rec, replay.Options{Free: true}, true))
	for _, x := range c.changes() {
		e := w.without(&x)
		cause.Experiments = append(cause.Experiments, e)
		if cause.Experiments[0].Agrees() && e.Agrees() {
			cause.Proof = evidence.Proved
			return
		}
	}
}

// change is what an experiment does.
type change struct {
	what    string
	options replay.Options
	// breaks makes those of one replay; nil: it has none.
	breaks func() []replay.Break
}

// changes are the experiments that a chain suggests, the gentlest first.
func (c *chain) changes() []change {
	switch {
	case c.dead:
		return nil // what passes there is chance
	case c.unwritten && len(c.links) == 0:
		return c.valueReplaced()
	case c.given && len(c.links) == 0:
		return c.textReplaced()
	case len(c.links) == 0:
		return c.heapChanges()
	}
	var list []change
	for i := range slices.Backward(c.links) {
		l := &c.links[i]
		switch {
		case l.returned != nil:
			list = append(list, c.replaced(l.returned)...)
		case c.victim.damaged() && i > 0: // what came behind the damage
		case l.idle || l.inner || l.access.By == evidence.ByHeap:
		case c.firstValue(l):
			list = append(list, c.otherStored(l)...)
		default:
			list = append(list, l.undone(i == len(c.links)-1 || c.victim.damaged()))
			if x := c.confined(l); x != nil && (c.victim.damaged() || l.bounds != "") {
				list = append(list, *x)
			}
		}
	}
	return append(append(list, c.heapChanges()...), c.valueReplaced()...)
}

// undone takes back what a store put there. last: it is the one that the chain ends at.
func (l *link) undone(last bool) change {
	if l.access.By == evidence.ByCall {
		return change{what: "what the call stored taken back", options: replay.Options{Free: true, Edits: l.takenBack()}}
	}
	what := "the store skipped"
	if !last {
		what = "the store in " + where(&l.seen) + " skipped"
	}
	pass := l.plan.Passes[max(l.log.Variables[l.access.Variable].Pass-1, 0)]
	var edits []replay.Edit
	for _, hit := range l.hits {
		edits = append(edits, replay.Edit{Kind: replay.EditUndo, OnHit: true, Hit: hit})
	}
	return change{what: what, options: replay.Options{Free: true, Watches: pass.Watches, Backend: replay.BackendPtrace, Edits: edits}}
}

// padding is how much larger an object is made to see whether it was too small.
const padding = 256

// heapChanges are those to the allocation or the free of the victim's object.
func (c *chain) heapChanges() []change {
	f := c.victim.finding
	if c.made == nil || c.made.call == nil || f == nil || f.Object == nil {
		return nil
	}
	is, what, edit := releases(f.Object.Addr), "the free withheld", replay.Edit{Kind: replay.EditSkipCall}
	do, all := (*replay.Stopped).SkipCall, "each free made there withheld"
	switch c.victim.kind {
	case evidence.CauseHeapUnderflow:
		return nil // there is no room to be had before an object
	case evidence.CauseHeapOverflow:
		is, what, edit = c.made.call.asks(f.Object.Size), "the object padded", replay.Edit{Kind: replay.EditPad, Bytes: padding}
		do, all = func(s *replay.Stopped) error { return s.Pad(padding) }, "each object allocated there padded"
	}
	var list []change
	at, err := c.moment(*c.made.call, is)
	if err == nil {
		edit.At = at
		list = append(list, change{what: what, options: replay.Options{Free: true, Edits: []replay.Edit{edit}}})
	} else {
		c.limit(err.Error())
	}
	if c.made.seen.Site != nil {
		list = append(list, change{what: all, options: replay.Options{Free: true}, breaks: func() []replay.Break { return c.eachCall(do) }})
	}
	return list
}

// eachCall does something at each call of the heap's function that the link's place
// makes.
func (c *chain) eachCall(do func(*replay.Stopped) error) []replay.Break {
	const most = 5000 // each time the stack is walked
	calls := 0
	return []replay.Break{{PC: c.made.call.entry, Changes: true, Do: func(s *replay.Stopped) error {
		if calls++; calls > most {
			return fmt.Errorf("verdict: %s is called more than %d times", c.made.call.name, most)
		}
		p, err := s.Process()
		if err != nil {
			return err
		}
		site, err := ownPlace(p)
		if err != nil || site == nil || *site != (place{c.made.seen.Site.File, c.made.seen.Site.Function, c.made.seen.Site.Line}) {
			return err
		}
		return do(s)
	}}}
}

// place is a line of the program's.
type place struct {
	file, function string
	line           int
}

// ownPlace is where the stopped thread is in the program's own code; nil if it is not
// known.
func ownPlace(p *image.Process) (*place, error) {
	thread := p.FailingThread()
	if thread == nil {
		return nil, errNoThread
	}
	const frames = 64
	u := unwind.New(p)
	stack := u.Walk(thread, frames)
	u.Symbolize(stack.Frames)
	for _, f := range stack.Frames {
		for _, call := range f.Calls {
			if s := &call.Site; !image.LibraryCode(s) {
				return &place{s.File, s.Function, s.Line}, nil
			}
		}
	}
	return nil, nil
}

// valueReplaced gives the bad value's memory another value, right before the last time
// that it is read. What passing runs read there is what should be there. Where that is
// a pointer to what another run has, any that can be read, or called, shows that the
// failure is of the pointer alone; that it was another one's to set, passing runs show.
func (c *chain) valueReplaced() []change {
	if c.Blame == nil || c.Blame.Loaded.PC == 0 || c.victim.damaged() {
		return nil
	}
	good, err := c.passingValue(c.Blame.Loaded.PC)
	if err != nil {
		c.limit(err.Error())
	}
	if good == nil {
		return nil
	}
	what, value, ok := "that of a passing run", good.value, c.usable(good)
	if !ok && good.size == wordSize && good.mapped {
		if c.calledValue() {
			what = "the address of a function that returns at once"
			value, ok = c.returns()
		} else {
			what = "the address of readable zeros"
			value, ok = c.readableZeros()
		}
	}
	if !ok {
		return nil
	}
	found, err := c.lastRead(c.Blame.Loaded.PC)
	if err != nil {
		c.limit(err.Error())
		return nil
	}
	if found.addr != c.victim.start || found.size != good.size {
		return nil
	}
	edit := replay.Edit{Kind: replay.EditStore, At: found.at, Addr: found.addr, Value: value, Size: found.size}
	return []change{{what: "the value replaced by " + what, options: replay.Options{Free: true, Edits: []replay.Edit{edit}}}}
}

// calledValue reports that the program went to the bad value as to code.
func (w *work) calledValue() bool {
	thread := w.Process.FailingThread()
	if thread == nil {
		return false
	}
	m := w.Process.MappingAt(thread.Registers.PC())
	return m == nil || !m.Executable()
}

// returns is the address of a return instruction of the program's, near where it would
// have come back to.
func (w *work) returns() (uint64, bool) {
	word, ok := w.word(w.Process.FailingThread().Registers.SP(), wordSize)
	if !ok {
		return 0, false
	}
	from := evidence.Addr(word)
	if m := w.Process.MappingAt(from); m == nil || !m.Executable() {
		return 0, false
	}
	const near = 4096
	code := make([]byte, near)
	n, _ := w.Process.ReadMemory(from, code) // as far as it goes
	return firstReturn(code[:n], word)
}

// firstReturn is the first return in code that takes nothing else off the stack.
func firstReturn(code []byte, pc uint64) (uint64, bool) {
	list, _ := x86.Function(code, pc)
	for i := range list {
		if in := &list[i]; in.Flow == x86.FlowReturn && !slices.ContainsFunc(in.Operands, func(o x86.Operand) bool { return o.IsImm }) {
			return in.PC, true
		}
	}
	return 0, false
}

// readableZeros is the lower end of the failing thread's stack, which nothing has
// used yet.
func (w *work) readableZeros() (uint64, bool) {
	p, thread := w.Process, w.Process.FailingThread()
	if thread == nil {
		return 0, false
	}
	const size = 4096
	m := p.MappingAt(thread.Registers.SP())
	if m == nil || thread.Registers.SP()-m.Start < 2*size {
		return 0, false
	}
	page := make([]byte, size)
	if n, err := p.ReadMemory(m.Start, page); err != nil || n != size || bytes.ContainsFunc(page, func(r rune) bool { return r != 0 }) {
		return 0, false
	}
	return uint64(m.Start), true
}

// takenBack gives the words of a link's victim the values back that they had before
// calls at the same place began to fill them. The engine copies what a call brings
// byte by byte; behind the event all of it is there.
func (l *link) takenBack() []replay.Edit {
	filled := map[uint32][]*evidence.Access{} // by the word's offset
	var offsets []uint32
	for i := range l.log.Accesses {
		a := &l.log.Accesses[i]
		if a.Variable != l.access.Variable || !writesMemory(a.Kind) || a.Position > l.access.Position {
			continue
		}
		if a.By != evidence.ByCall || a.PC != l.access.PC || a.Thread != l.access.Thread {
			filled[a.Offset] = nil
			continue
		}
		if !slices.Contains(offsets, a.Offset) {
			offsets = append(offsets, a.Offset)
		}
		filled[a.Offset] = append(filled[a.Offset], a)
	}
	var edits []replay.Edit
	for _, offset := range offsets {
		for _, a := range filled[offset] {
			edits = append(edits, replay.Edit{Kind: replay.EditStore, At: evidence.Moment{Thread: a.Thread, Ordinal: a.Ordinal},
				Addr: l.log.Variables[a.Variable].Address + evidence.Addr(offset), Value: filled[offset][0].Old, Size: int(a.Size)})
		}
	}
	return edits
}
