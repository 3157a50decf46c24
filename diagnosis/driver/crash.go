package driver

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"diagnose/agent"
	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/object"
	"diagnose/image/unwind"
	"diagnose/replay/record"
	"diagnose/staticscan"
)

// Crash analyses a dead or stopped process. The errors are *InputError for input that cannot be
// analysed. A stage that fails costs its part of the Case and leaves a Limit.
//
// When ctx ends, Crash returns at once, whatever it waits for (a download, a large core). The stage
// that was running continues to its end and then detaches from a live process; if this process
// exits first, the kernel detaches (ptrace(2)). After the replays of recordings have begun, Crash
// ends the replays instead, and returns the Case with the findings so far; its Diagnosis says so.
func Crash(ctx context.Context, req Request) (*evidence.Case, error) {
	replays := make(chan struct{})
	return interruptible(ctx, replays, func() (*evidence.Case, error) { return analyse(ctx, req, replays) })
}

// interruptible runs an analysis and returns at once when ctx ends, unless the analysis has closed
// begun by then: from there on it handles ctx itself.
func interruptible[T any](ctx context.Context, begun <-chan struct{}, run func() (*T, error)) (*T, error) {
	type outcome struct {
		result *T
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := guardedRun(run)
		done <- outcome{result, err}
	}()
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
	}
	select {
	case <-begun:
		o := <-done
		return o.result, o.err
	default:
		return nil, fmt.Errorf("interrupted: %w", context.Cause(ctx))
	}
}

// guardedRun turns a panic outside of the stages into an error.
func guardedRun[T any](run func() (*T, error)) (result *T, err error) {
	defer func() {
		if r := recover(); r != nil {
			result, err = nil, fmt.Errorf("failed inside: %v; please report this: %s", r, panicSite(debug.Stack()))
		}
	}()
	return run()
}

// analyse closes replays when it begins to replay.
func analyse(ctx context.Context, req Request, replays chan<- struct{}) (*evidence.Case, error) {
	a := &analysis{req: req, result: &evidence.Case{}}
	defer a.closeRecordings()
	if err := a.openRecordings(); err != nil {
		return nil, &InputError{err}
	}
	if a.atMoment() {
		if err := a.atDeclared(ctx, replays); err != nil {
			return nil, err
		}
		return a.result, nil
	}
	if a.cut {
		if err := a.atCut(ctx, replays); err != nil {
			return nil, err
		}
		return a.result, nil
	}
	if err := a.open(); err != nil {
		return nil, err
	}
	defer a.process.Close()
	if err := a.whole(ctx, replays); err != nil {
		return nil, err
	}
	return a.result, nil
}

// whole analyses a process that is open.
func (a *analysis) whole(ctx context.Context, replays chan<- struct{}) error {
	if err := a.judge(ctx); err != nil {
		return err
	}
	if at, jumped := a.explanation(); at != nil {
		return a.explainHandled(ctx, at, jumped, replays)
	}
	return a.explain(ctx, replays)
}

// judge says what failed.
func (a *analysis) judge(ctx context.Context) error {
	return a.stages(ctx, []stage{{"unwind", a.unwind}, {"signals", a.readHandled}, {"classify", a.classify}})
}

// explain looks for the reason of the failure that was judged.
func (a *analysis) explain(ctx context.Context, replays chan<- struct{}) error {
	err := a.stages(ctx, []stage{
		{"heap", a.heapFailure},
		{"goroutines", a.goroutines},
		{"values", a.values},
		{"canary", a.stackGuards},
		{"scan", a.scan},
		{"damage", a.heapFindings},
		{"replays", func() error { return a.replay(ctx, replays) }},
	})
	if err == nil {
		a.finish()
	}
	return err
}

// stage is a part of an analysis.
type stage struct {
	name string
	run  func() error
}

func (a *analysis) stages(ctx context.Context, list []stage) error {
	for _, s := range list {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("interrupted before the stage %s: %w", s.name, err)
		}
		a.stage(s.name, s.run)
	}
	return nil
}

// analysis carries one failure through the stages.
type analysis struct {
	req     Request
	result  *evidence.Case
	started time.Time // of the replays
	process *image.Process
	// failing and passing are the recordings of runs that the request names.
	failing, passing []*record.Recording
	// exit is how the recorded process ended, if it ended itself with a status.
	exit *record.Outcome
	// handled are the signals of the failing thread whose handlers did not return, by the
	// recording. ending is the process as it ended, where the process that is judged is the
	// one at signalAt; nil otherwise.
	handled  []record.HandledSignal
	signalAt *record.HandledSignal
	ending   *image.Process
	// run is the whole recording of which failing has a part, up to moment; nil: failing
	// has the recordings as they are.
	run *record.Recording
	// moment is where the run is said to have failed; nil: at its end, or it failed by itself.
	moment *evidence.Moment
	// cut: there is no core of the recorded process's end.
	cut bool

	unwinder *unwind.Unwinder
	// thread is the one under judgement; nil when none failed and none was
	// asked for.
	thread *image.Thread
	// walked holds the threads' stacks, by their index in the process.
	walked []unwind.Stack
	// stacks holds the thread groups, that of thread first; waiting says what
	// each thread waits for, by its index in the process, waits the same for those of which
	// it is known.
	stacks  []*group
	waiting []string
	waits   []evidence.WaitEdge

	// blame is what the scan makes of the failing instruction; nil before.
	blame *staticscan.Blame
	// names are the expressions of the program that the failure is told with.
	names failure.Names
	// heap is the agent's, nil for a process without it; heapWords what it says
	// of the failure, if anything.
	heap      *agentHeap
	heapWords *failure.HeapWords
	// filled is the freed object whose fill the program took for a pointer,
	// guarded the canary that it took for one, faulted the object beside which it
	// faulted, and cell the memory that the bad value was read from; unset when it
	// is not of the heap.
	filled  *filled
	guarded *guardWord
	faulted *agent.Object
	cell    evidence.Addr
}

// stage runs one part, takes its time, and turns its failure into a limit: a
// report that lacks a part is worth more than none. The part's error says what
// it is about ("static scan: ...").
func (a *analysis) stage(name string, run func() error) {
	a.say(name)
	start := time.Now()
	defer func() {
		a.result.Timings = append(a.result.Timings, evidence.Timing{Stage: name, Duration: time.Since(start)})
		if r := recover(); r != nil {
			a.limit(evidence.Limit{Severe: true,
				Text: fmt.Sprintf("the stage %s failed inside and its part is missing: %v; please report this: %s", name, r, panicSite(debug.Stack()))})
		}
	}()
	// A file that is cut while it is mapped faults here (mmap(2), SIGBUS); the
	// fault must cost this stage and not the report.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if err := run(); err != nil {
		a.limit(evidence.Limit{Text: err.Error()})
	}
}

func (a *analysis) say(text string) {
	if a.req.Progress != nil {
		a.req.Progress(text)
	}
}

func (a *analysis) limit(l ...evidence.Limit) { a.result.Limits = append(a.result.Limits, l...) }

func (a *analysis) open() error {
	start := time.Now()
	opts := a.imageOptions()
	var err error
	switch {
	case a.req.Core != "":
		a.process, err = image.OpenCore(a.req.Core, opts)
	case a.req.HasDump:
		a.process, err = image.OpenCoredumpctl(a.req.Dump, opts)
	default:
		a.process, err = image.OpenLive(a.req.PID, opts)
	}
	if err != nil {
		return &InputError{err}
	}
	if err := a.numberThreads(); err != nil {
		a.limit(evidence.Limit{Text: err.Error()})
	}
	if err := a.chooseThread(); err != nil {
		a.process.Close()
		return &InputError{err}
	}
	a.result.Timings = append(a.result.Timings, evidence.Timing{Stage: "open", Duration: time.Since(start)})
	return nil
}

// imageOptions say where the files of processes are.
func (a *analysis) imageOptions() image.Options {
	return image.Options{
		Exe:        a.req.Exe,
		NoDemangle: a.req.NoDemangle,
		Progress:   a.req.Progress,
		Finder: object.Finder{
			Sysroot:    a.req.Sysroot,
			DebugDirs:  a.req.DebugDirs,
			Debuginfod: a.req.Debuginfod,
			Timeout:    a.req.DebuginfodTimeout,
			Progress:   a.req.Progress,
		},
	}
}

// chooseThread finds the thread that was asked for by its number or TID, or
// the failing one.
func (a *analysis) chooseThread() error {
	p := a.process
	if a.exit != nil && p.Failing < 0 {
		p.Failing = slices.IndexFunc(p.Threads, func(t image.Thread) bool { return t.Ref.TID == a.exit.TID })
	}
	if a.req.Thread == 0 {
		if p.Failing >= 0 && p.Failing < len(p.Threads) {
			a.thread = &p.Threads[p.Failing]
		}
		return nil
	}
	for i := range p.Threads {
		if ref := p.Threads[i].Ref; ref.TID == a.req.Thread || ref.Number == a.req.Thread {
			a.thread = &p.Threads[i]
			return nil
		}
	}
	return fmt.Errorf("no thread %d: the process has %d threads", a.req.Thread, len(p.Threads))
}

// classify judges the failure, with the deadlocks that explain a hung process.
func (a *analysis) classify() error {
	waits := failure.WaitsOf(a.process, a.walked, failure.WaitOptions{Words: a.notedWaits(), Calls: a.waitingCalls(), Unhandled: a.unhandled(), NameOf: a.stackVariable})
	a.result.Findings = append(a.result.Findings, waits.Deadlocks()...)
	a.waiting, a.waits = waits.Texts(), waits.Edges()
	if err := a.nameCallWaits(); err != nil {
		a.limit(evidence.Limit{Text: "which system calls threads wait in is not known: " + err.Error()})
	}
	a.passEngine()
	a.unfold()
	in := a.judged()
	in.Findings, in.Blocked = a.result.Findings, waits.Blocked(a.stuck())
	f, limits := failure.Classify(in)
	a.limit(limits...)
	a.declareFailure(&f)
	if f.Site != nil {
		f.Source = failure.SourceLines(*f.Site, sourceContext, a.sourcePaths(f.Site))
	}
	a.result.Failure = f
	if a.bystander() {
		a.describeBystander()
	}
	return nil
}

// judged is the data that the end of the thread under judgement is judged by.
func (a *analysis) judged() failure.Input {
	in := failure.Input{Process: a.process, Thread: a.thread, Handled: a.handledSignals()}
	if a.thread != nil {
		in.Stack = a.stacks[0].stack
	}
	if a.exit != nil {
		in.Exit = &a.exit.Status
	}
	return in
}

// bystander reports whether the thread under judgement is one that was asked
// for while another one failed.
func (a *analysis) bystander() bool {
	p := a.process
	return a.thread != nil && p.Failing >= 0 && a.thread != &p.Threads[p.Failing]
}

func (a *analysis) describeBystander() {
	f := &a.result.Failure
	f.Kind, f.Instruction = evidence.NoFailure, nil
	f.Sentence = fmt.Sprintf("thread %d was", a.thread.Ref.Number)
	if f.Site != nil && f.Site.Function != "" {
		f.Sentence += " in " + evidence.ShortName(f.Site.Function)
	}
	f.Sentence += fmt.Sprintf(" when thread %d failed", a.process.Threads[a.process.Failing].Ref.Number)
	if waiting := a.waitingText(a.stacks[0]); waiting != "" {
		f.Sentence += "; it " + waiting
	}
}

// sourceContext is how many lines are shown on either side of the failing one.
const sourceContext = 4

func (a *analysis) sourcePaths(site *evidence.Site) failure.SourcePaths {
	paths := failure.SourcePaths{Sysroot: a.req.Sysroot}
	if m := a.process.ModuleAt(site.PC); m != nil {
		paths.Object = m.File
		if m.File != "" {
			paths.Dirs = []string{filepath.Dir(m.File)}
		}
	}
	return paths
}

// scan finds where the bad value came from and the suspects.
func (a *analysis) scan() error {
	asked := len(a.req.Functions) > 0 || a.req.Message != ""
	f := &a.result.Failure
	if !asked && (a.thread == nil || f.Kind == evidence.GoPanic || f.Site == nil && a.heapWords != nil) {
		return nil
	}
	in := staticscan.Input{Process: a.process, Thread: a.thread, Signal: a.result.Failure.Signal}
	opts := staticscan.Options{Depth: a.req.Depth, Functions: a.functions(), Message: a.req.Message}
	if f.Kind == evidence.ExitStatus && f.Site != nil && f.Site.Function == "main" && !asked {
		opts.Functions = []string{"main"} // it may have returned, and has no frame then
	}
	if a.thread != nil {
		in.Frames = failure.Frames(a.judged())
		a.assertion(in)
		var blame staticscan.Blame
		if f.Kind != evidence.ExitStatus {
			var err error
			if blame, err = staticscan.Origin(in, staticscan.OriginOptions{}); err != nil {
				a.limit(evidence.Limit{Text: err.Error()})
			}
		}
		a.name(&blame)
		a.blame = &blame
		opts.Blame = &blame
	}
	scan, limits, err := staticscan.Run(in, opts)
	a.limit(limits...)
	switch {
	case err != nil && len(limits) > 0:
		return nil // the limits say why
	case err != nil:
		return err
	}
	a.result.Scan = &scan
	return nil
}

// name adds the program's name for the bad value to the failure.
func (a *analysis) name(blame *staticscan.Blame) {
	if blame.Role == "" {
		return
	}
	f := &a.result.Failure
	f.Accessed, f.Pointer, f.Origin = blame.Accessed, blame.Pointer, blame.Steps
	if blame.Role == staticscan.RolePointer && blame.Value != nil && *blame.Value == 0 && nowhere(f.Kind) {
		f.Kind, f.Proof = evidence.NullPointer, evidence.Inferred
	}
	a.blameHeap(blame)
	a.names = failure.Names{Accessed: f.Accessed, Pointer: f.Pointer, Value: blame.Value,
		Index: blame.Index, Through: blame.Through, Freed: a.freed(blame)}
	a.resay()
	if f.Instruction == nil {
		return
	}
	for i := range f.Instruction.Operands {
		if o := &f.Instruction.Operands[i]; o.Address != nil && f.Fault != nil && *o.Address == f.Fault.Addr {
			o.Symbol = blame.Accessed
		}
	}
}

// nowhere are the kinds of failure of an element of an array at null: the index determines its
// distance from null.
func nowhere(kind evidence.FailureKind) bool {
	return kind == evidence.NearNullPointer || kind == evidence.UnmappedAddress || kind == evidence.WildPointer
}

// finish fills the fields that belong to no stage.
func (a *analysis) finish() {
	c, p := a.result, a.process
	if c.Diagnosis != nil && c.Run == nil {
		a.processes()
	}
	c.Program = p.Program
	c.Program.Threads = len(p.Threads)
	if a.thread != nil {
		c.Registers = a.registers().General()
	}
	for _, m := range p.Modules {
		c.Modules = append(c.Modules, evidence.Module{Path: m.Path, BuildID: m.BuildID, Start: m.Start, End: m.End,
			Symbols: symbolSource(m), DebugFile: m.DebugFile()})
	}
	if a.unwinder != nil {
		a.limit(a.unwinder.Limits()...)
	}
	a.limit(p.AllLimits()...)
	if c.Failure.Kind == "" {
		c.Failure = evidence.Failure{Kind: evidence.UnknownFailure, Proof: evidence.Inferred,
			Sentence: "the failure could not be judged; the limits say why"}
	}
	if c.Stacks == nil {
		c.Stacks = []evidence.ThreadGroup{}
	}
	a.stage("sources", func() error { a.readSources(); return nil })
}

// symbolSource names the source of a module's symbols.
func symbolSource(m *image.Module) string {
	switch {
	case m.Object == nil:
		return "none"
	case m.DebugFile() != "" || m.Object.HasDWARF():
		return "dwarf"
	}
	return m.Object.SymbolSource()
}

// panicSite is the first line of a panic's stack trace that names our code.
func panicSite(trace []byte) string {
	for _, l := range strings.Split(string(trace), "\n") {
		if strings.HasPrefix(l, "diagnose/") && !strings.Contains(l, "driver.(*analysis).stage") {
			return l
		}
	}
	return "unknown place"
}
