package driver

import (
	"context"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"diagnose/canary/heapjudge"
	"diagnose/diagnosis/failure"
	"diagnose/diagnosis/severity"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/allocator"
	"diagnose/replay"
	"diagnose/replay/record/eventlog"
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
	req.files = image.NewFiles()
	defer req.files.Close()
	a := newAnalysis(req)
	recs, err := openRecordings(ctx, &a.req)
	if err != nil {
		return nil, &InputError{err}
	}
	a.recordings = *recs
	defer a.closeRecordings()
	ctx, kept := replay.KeepCheckpoints(ctx, replay.MostKept)
	defer kept.Close()
	a.result.Refused = a.refusedCalls()
	if a.atMoment() {
		if err := a.atDeclared(ctx, replays); err != nil {
			return nil, err
		}
		return a.result, nil
	}
	if hung, err := a.hungBefore(ctx, replays); hung || err != nil {
		return a.result, err
	}
	if a.cut {
		if err := a.atCut(ctx, replays); err != nil {
			return nil, err
		}
		return a.result, nil
	}
	if err := a.dataRaces(); err != nil {
		return nil, err
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
	if at := a.explanation(); at != nil {
		return a.explainHandled(ctx, at, "", replays)
	}
	if at := a.leftByJump(); at != nil {
		if jump := a.jumped(ctx, at); jump != "" {
			return a.explainHandled(ctx, at, jump, replays)
		}
	}
	return a.explain(ctx, replays)
}

// judge says what failed.
func (a *analysis) judge(ctx context.Context) error {
	return a.runStages(ctx, []stage{{"unwind", a.unwind}, {"signals", a.readHandled}, {"classify", a.classify}})
}

// explain looks for the reason of the failure that was judged.
func (a *analysis) explain(ctx context.Context, replays chan<- struct{}) error {
	err := a.runStages(ctx, []stage{
		{"heap", a.heapFailure},
		{"goroutines", a.goroutines},
		{"values", a.values},
		{"python", a.pythonFrames},
		{"canary", a.stackGuards},
		{"scan", a.scan},
		{"expectations", a.expectations},
		{"overrun", a.overrunArray},
		{"containers", a.containerUse},
		{"damage", a.heapFindings},
		{"signals", a.handledFaults},
		{"replays", func() error { return a.replay(ctx, replays) }},
	})
	if err == nil {
		a.finish()
	}
	return err
}

// analysis carries one failure through the stages. It knows their order, and passes the results of
// one to the next.
type analysis struct {
	req Request
	draft
	recordings
	stoppedProcess

	// handled are the signals of the failing thread whose handlers did not return, according to the
	// recording. ending is the process at its end, if the process that is judged is the one at
	// signalAt; nil otherwise.
	handled  handledSignals
	signalAt *eventlog.HandledSignal
	ending   *image.Process
	// handledFault is a fault whose handler was left by a jump, nil if there is none.
	handledFault *evidence.Finding
	// began is when the analysis began: Time bounds what comes before the search for the cause as well.
	began time.Time

	// blame is the scan's result for the failing instruction; nil before the scan.
	blame *staticscan.Blame
	// names are the expressions of the program that describe the failure.
	names failure.Names
	// heap is the explanation of the failure by the agent's heap; nil for a process without the
	// agent.
	heap *heapjudge.Explanation
	// other is the heap of an allocator instead of the C library's, nil if there is none or it was not
	// looked for: otherHeap has it.
	other       allocator.Heap
	otherOpened bool
}

// newAnalysis begins the analysis of a request.
func newAnalysis(req Request) *analysis {
	return &analysis{req: req, began: time.Now(), draft: draft{result: &evidence.Case{}, progress: req.Progress}, stoppedProcess: stoppedProcess{separate: req.AllThreads}}
}

func (a *analysis) open() error {
	start := time.Now()
	opts := a.req.imageOptions()
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
	if err := a.numberThreads(a.process); err != nil {
		a.limit(failedPart(err))
	}
	a.markExited(a.process)
	if err := a.chooseThread(a.req.Thread); err != nil {
		a.process.Close()
		return &InputError{err}
	}
	a.result.Timings = append(a.result.Timings, evidence.Timing{Stage: "open", Duration: time.Since(start)})
	return nil
}

// classify judges the failure, with the deadlocks that explain a hung process.
func (a *analysis) classify() error {
	w := waitReader{&a.stoppedProcess, &a.recordings}
	idle, err := w.idle()
	if err != nil {
		return err
	}
	waits := failure.WaitsOf(a.process, a.walked, failure.WaitOptions{Idle: idle, Words: w.notedWaits(), Turn: w.turn, Calls: w.waitingCalls(), Unhandled: w.unhandled(), EndOf: w.endOf, Readers: w.readers, Ended: w.ended(), NameOf: w.stackVariable, PathFrom: w.pathFrom})
	a.result.Findings = append(a.result.Findings, said(slices.Concat(waits.Deadlocks(), waits.Abandoned()))...)
	a.waiting, a.waits = waits.Texts(), waits.Edges()
	if err := w.nameCallWaits(); err != nil {
		a.limit(evidence.Limit{Code: evidence.LimitWaits, Reason: "which system calls threads wait in is not known: " + err.Error()}.Worded())
	}
	a.passEngine()
	a.unfold(a.result.Findings)
	in := a.judged()
	in.Findings, in.Blocked = a.result.Findings, waits.Blocked(a.stuck(a.process))
	f, limits := failure.Classify(in)
	a.limit(limits...)
	a.declareFailure(&f)
	if f.Site != nil {
		f.Source = a.sources().around(f.Site, sourceContext)
	}
	a.result.Failure = f
	if a.bystander() {
		a.describeBystander()
	}
	return nil
}

// judged is the data that the end of the thread under judgement is judged by.
func (a *analysis) judged() failure.Input {
	in := failure.Input{Process: a.process, Thread: a.thread}
	if len(a.stacks) > 0 {
		in.Handled = a.handled.onStack(a.stacks[0].stack.Frames)
	}
	if a.thread != nil {
		in.Stack = a.stacks[0].stack
	}
	if a.exit != nil {
		in.Exit = &a.exit.Status
	}
	return in
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
	f.Sentence, f.MessageInSentence = evidence.Say(f.Sentence), false
}

// scan finds the origin of the bad value and the suspects.
func (a *analysis) scan() error {
	asked := len(a.req.Functions) > 0 || a.req.Message != ""
	f := &a.result.Failure
	if !asked && (a.thread == nil || f.Kind == evidence.GoPanic || f.Site == nil && a.heap != nil && a.heap.Words != nil) {
		return nil
	}
	in := staticscan.Input{Process: a.process, Thread: a.thread, Signal: a.result.Failure.Signal}
	opts := staticscan.Options{Depth: a.req.Depth, Functions: a.functions(), Message: a.req.Message}
	if f.Kind == evidence.ExitStatus && f.Site != nil && f.Site.Function == "main" && !asked {
		opts.Functions = []string{"main"} // main may have returned, and then has no frame
	}
	if a.thread != nil {
		in.Frames = failure.Frames(a.judged())
		addAssertion(f, in)
		addCheck(f, in)
		var blame staticscan.Blame
		if f.Kind != evidence.ExitStatus {
			var err error
			if blame, err = staticscan.Origin(in, staticscan.OriginOptions{}); err != nil {
				a.limit(failedPart(err))
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
	f.Accessed, f.Pointer, f.PointerResult, f.Origin = blame.Accessed, blame.Pointer, blame.Result, blame.Steps
	if blame.Role == staticscan.RolePointer && blame.Value != nil && *blame.Value == 0 && nowhere(f.Kind) {
		f.Kind, f.Proof = evidence.NullPointer, evidence.Inferred
	}
	if a.heap != nil {
		a.heap.AddOrigin(blame)
	}
	a.names = failure.Names{Accessed: f.Accessed, Pointer: f.Pointer, Value: blame.Value,
		Index: blame.Index, Through: blame.Through}
	if a.heap == nil { // otherwise malloc is the agent's
		if freed := a.readFromFreeBlock(blame); freed != nil {
			a.names.Freed = freed.Proof == evidence.FromCore
			a.result.Findings = append(a.result.Findings, said([]evidence.Finding{*freed})...)
		}
	}
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
		a.tellProcesses(&a.draft, a.process)
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
			Sentence: evidence.Say("the failure could not be judged; the limits say why")}
	}
	if c.Stacks == nil {
		c.Stacks = []evidence.ThreadGroup{}
	}
	a.runStage("severity", func() error { c.Severity = severity.Of(severity.Input{Case: c, Code: a.failingCode()}); return nil })
	c.Next = a.nextStep()
	a.runStage("sources", func() error { a.sources().keepSources(a.result); return nil })
}

// severityCode is how many bytes from the failing instruction on the severity follows from: casr reads
// as many.
const severityCode = 64

// failingCode is the memory from the failing instruction on, as much as can be read. A report without
// it has the instruction alone.
func (a *analysis) failingCode() []byte {
	i := a.result.Failure.Instruction
	if i == nil {
		return nil
	}
	code := make([]byte, severityCode)
	n, err := a.process.ReadMemory(i.PC, code)
	if err != nil && n < len(i.Bytes)/2 {
		code, err := hex.DecodeString(i.Bytes)
		if err != nil {
			return nil
		}
		return code
	}
	return code[:n]
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
