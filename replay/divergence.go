package replay

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/internal/wording"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
	"diagnose/replay/tracee"
)

// Reason says how a replay diverged from the recording.
type Reason string

// The reasons. The first ones are those of enum dg_reason.
const (
	DiffersKind     Reason = "kind"     // another kind of event
	DiffersObject   Reason = "object"   // another variable, system call or signal
	DiffersSite     Reason = "site"     // called from another place
	DiffersArgument Reason = "argument" // another argument
	DiffersData     Reason = "data"     // other bytes were written
	DiffersSkipped  Reason = "skipped"  // more or fewer mutexes were taken in between
	DiffersMapping  Reason = "mapping"  // memory cannot be mapped at its recorded address
	DiffersState    Reason = "state"    // the variable is not in the recorded state
	DiffersThread   Reason = "thread"   // a thread could not be created
	DiffersLog      Reason = "log"      // the recording contradicts itself
	DiffersFault    Reason = "fault"    // an instruction raised a signal
	DiffersEnd      Reason = "end"      // the process ends differently
	DiffersOrder    Reason = "order"    // a variable or a thread is not as the recorded order needs it
)

var reasons = map[uint32]Reason{
	agent.DiffersKind: DiffersKind, agent.DiffersObject: DiffersObject, agent.DiffersSite: DiffersSite,
	agent.DiffersArgument: DiffersArgument, agent.DiffersData: DiffersData, agent.DiffersSkipped: DiffersSkipped,
	agent.DiffersMapping: DiffersMapping, agent.DiffersState: DiffersState, agent.DiffersThread: DiffersThread, agent.DiffersLog: DiffersLog,
}

// DivergenceError says where and how a replay diverged from the recording.
type DivergenceError struct {
	// Moment is where the thread was: Ordinal is that of the differing event, PC the address in
	// the replayed program.
	Moment evidence.Moment
	Reason Reason
	// Expected is the recording's event, nil if the thread has no more. Got is the replay's, as
	// far as it is known; nil if it is not an event.
	Expected, Got *eventlog.Event
	// Place is the argument's number, from 0, or the payload's.
	Place uint64
	// Want and Have are the differing values of the recording and of the replay.
	Want, Have uint64
	// Signal and Status describe a fault and an end.
	Signal, Status int
	PC             evidence.Addr
	// ExpectedAt and GotAt name the sites: "main at main.c:40". Stack is the
	// replay's, innermost first.
	ExpectedAt, GotAt string
	Stack             []string

	outcome string // the recorded end, in words
}

func (e *DivergenceError) Error() string {
	where := fmt.Sprintf("thread %d, event %d: ", e.Moment.Thread, e.Moment.Ordinal)
	return where + e.recorded() + ", " + e.replayed()
}

// recorded describes the recording's side.
func (e *DivergenceError) recorded() string {
	switch {
	case e.Expected == nil && e.outcome != "":
		return "the recording " + e.outcome
	case e.Expected == nil:
		return "the recording has no further event"
	}
	return "the recording has " + eventText(e.Expected) + calledAt(e.ExpectedAt)
}

// replayed describes the replay's side.
func (e *DivergenceError) replayed() string {
	switch e.Reason {
	case DiffersFault:
		return fmt.Sprintf("the replay reached %s%s", wording.Signal(e.Signal), inAt(e.GotAt))
	case DiffersEnd:
		if e.Status != 0 || e.Signal == 0 && e.Got != nil {
			return fmt.Sprintf("the replay ends with status %d", e.Status)
		}
		return "in the replay all threads wait and nothing is left to replay"
	case DiffersSite:
		return "the replay reached it" + inAt(e.GotAt)
	case DiffersArgument:
		return fmt.Sprintf("in the replay argument %d is %#x, not %#x%s", e.Place+1, e.Have, e.Want, calledAt(e.GotAt))
	case DiffersData:
		return fmt.Sprintf("in the replay the data that it hands over differs (payload %d)%s", e.Place+1, calledAt(e.GotAt))
	case DiffersSkipped:
		return fmt.Sprintf("the replay took %d uncontended mutexes before it, not %d%s", e.Have, e.Want, calledAt(e.GotAt))
	case DiffersMapping:
		return e.mapping()
	case DiffersState:
		return fmt.Sprintf("in the replay the variable is in another state (%#x, not %#x)%s", e.Have, e.Want, calledAt(e.GotAt))
	case DiffersOrder:
		return "in the replay a variable or a thread is not as the recorded order needs it" + inAt(e.GotAt)
	case DiffersLog:
		return "which contradicts itself: it was damaged"
	case DiffersThread:
		return fmt.Sprintf("in the replay the thread could not be created (%v)", errnoOf(e.Have))
	}
	if e.Got == nil {
		return "the replay continued" + inAt(e.GotAt)
	}
	return "the replay reached " + eventText(e.Got) + calledAt(e.GotAt)
}

// mapping says why a replay could not map the recorded memory. Place is set by dg_diverge in
// agent/src/engine/memory.c.
func (e *DivergenceError) mapping() string {
	file := "the file"
	if e.Expected != nil {
		for i := range e.Expected.Payloads {
			if m, ok := e.Expected.Payloads[i].Mapped(); ok && m.Path != "" {
				file = strconv.Quote(m.Path)
			}
		}
	}
	switch e.Place {
	case 1:
		return fmt.Sprintf("and %s cannot be opened now: %v", file, errnoOf(e.Have))
	case 2:
		return fmt.Sprintf("and %s changed since: it had %d bytes and has %d", file, e.Want, e.Have)
	case 3:
		return fmt.Sprintf("and %s changed since: it is of %s and was of %s", file, instant(e.Have), instant(e.Want))
	}
	return fmt.Sprintf("in the replay the memory at %#x cannot be mapped (%v)", e.Want, errnoOf(e.Have))
}

// instant formats a time in nanoseconds since 1970.
func instant(ns uint64) string {
	return time.Unix(0, int64(ns)).UTC().Format(time.DateTime)
}

// errnoOf returns the error with a number, which may be negated as in the result of a system call.
func errnoOf(v uint64) error {
	if err := ptrace.ResultError(int64(v)); err != nil {
		return err
	}
	return unix.Errno(v)
}

func calledAt(site string) string {
	if site == "" {
		return ""
	}
	return " called at " + site
}

func inAt(site string) string {
	if site == "" {
		return ""
	}
	return " at " + site
}

// eventText describes an event in the notation of a call.
func eventText(e *eventlog.Event) string {
	switch e.Kind {
	case eventlog.KindSyscall:
		return e.CallText()
	case eventlog.KindSignal:
		return fmt.Sprintf("signal %s", unix.SignalName(unix.Signal(e.Object)))
	case eventlog.KindMutex, eventlog.KindRWLock, eventlog.KindSpin, eventlog.KindCond, eventlog.KindSem, eventlog.KindBarrier,
		eventlog.KindOnce, eventlog.KindGuard:
		operation := ""
		if len(e.Args) > 0 {
			operation = " " + eventlog.Sync(e.Args[0]).String()
		}
		return fmt.Sprintf("%v%s of %#x", e.Kind, operation, e.Object)
	case eventlog.KindStart, eventlog.KindExit, eventlog.KindEnd:
		return "its " + e.Kind.String()
	case eventlog.KindPoint:
		return pointText(e)
	case eventlog.KindTSC:
		return "a read of the time-stamp counter"
	}
	return fmt.Sprintf("%v of %#x", e.Kind, e.Object)
}

// diverged handles DG_TRAP_DIVERGED.
func (j *judge) diverged(t *tracee.Thread) error {
	control, err := j.process.ReadControl()
	if err != nil {
		return err
	}
	e, err := j.divergence(t, control)
	if err != nil {
		return err
	}
	return j.diverge(t, e)
}

// divergence returns the divergence that the engine has noted.
func (j *judge) divergence(t *tracee.Thread, control *agent.RawControl) (*DivergenceError, error) {
	d := &control.Divergence
	// The engine may have refused the log before it made its first thread.
	if _, err := j.process.ReadThread(d.Thread); err == nil {
		t.Index = d.Thread
	}
	e := &DivergenceError{Reason: reasons[d.Reason], Place: d.Place, Want: d.Want, Have: d.Got, PC: evidence.Addr(d.PC)}
	e.Moment = evidence.Moment{Thread: d.Thread, Ordinal: d.Ordinal, PC: evidence.Addr(d.PC), Count: 1}
	if e.Reason == "" {
		return nil, fmt.Errorf("replay: the engine gave %d as the reason of a divergence", d.Reason)
	}
	if d.Expected != 0 {
		var err error
		if e.Expected, err = j.recordings.Stage().EventAt(d.Expected); err != nil {
			return nil, err
		}
		e.Expected.Thread, e.Expected.Ordinal = d.Thread, d.Ordinal
	}
	if d.Event.Kind != agent.EvNone {
		e.Got = &eventlog.Event{Thread: d.Thread, Ordinal: d.Ordinal, Kind: eventlog.Kind(d.Event.Kind), Object: d.Event.Object,
			Site: evidence.Addr(d.Event.Site), Result: d.Event.Result, Skipped: d.Event.Skipped,
			Args: d.Args[:min(int(d.Event.Args), len(d.Args))]}
	}
	return e, nil
}

// name stops all threads and finds names for the addresses of a divergence.
func (j *judge) name(t *tracee.Thread, e *DivergenceError) error {
	if err := j.process.StopAll(); err != nil {
		return err
	}
	if e.Moment.Thread == 0 {
		m, err := j.process.MomentOf(t)
		if err != nil {
			return err
		}
		e.Moment = m
		e.Moment.Ordinal++
		if e.Expected, err = j.recordings.NextEvent(j.process, t); err != nil {
			return err
		}
	}
	if e.Expected == nil {
		e.outcome = outcomeText(&j.recordings.Stage().Rec.Manifest.Outcome)
	}
	if j.unnamed {
		return nil
	}
	p, err := j.process.OpenImage(t)
	if err != nil {
		return nil // without names it is a divergence all the same
	}
	defer p.Close()
	if e.Expected != nil {
		e.ExpectedAt = siteName(p, e.Expected.Site)
	}
	e.Stack = stackOf(p, t.Index)
	if e.Got != nil {
		e.GotAt = siteName(p, e.Got.Site)
	} else if len(e.Stack) > 0 {
		e.GotAt = e.Stack[0]
	}
	return nil
}

func outcomeText(o *record.Outcome) string {
	switch o.Kind {
	case record.OutcomeSignal:
		text := "ends with " + wording.Signal(o.Signal)
		if o.Thread != 0 {
			text += fmt.Sprintf(" in thread %d", o.Thread)
		}
		if o.PC != nil {
			text += fmt.Sprintf(" at %v", *o.PC)
		}
		return text
	case record.OutcomeExit, record.OutcomePassed:
		return fmt.Sprintf("ends with status %d", o.Status)
	}
	return "ends here"
}

// siteName names a return address.
func siteName(p *image.Process, pc evidence.Addr) string {
	if pc == 0 {
		return ""
	}
	return callName(p.Symbolize(pc, image.ReturnAddress), pc)
}

func callName(calls []image.SymbolizedCall, pc evidence.Addr) string {
	if len(calls) == 0 {
		return pc.String()
	}
	s := calls[0].Site
	switch {
	case s.Function == "" && s.Module == "":
		return pc.String()
	case s.Function == "":
		return fmt.Sprintf("%v in %s+%#x", pc, s.Module[strings.LastIndexByte(s.Module, '/')+1:], uint64(s.ModuleOffset))
	case s.Line != 0:
		return fmt.Sprintf("%s (%s:%d)", s.Function, s.File[strings.LastIndexByte(s.File, '/')+1:], s.Line)
	case s.Module != "":
		return fmt.Sprintf("%s+%#x (%s)", s.Function, uint64(s.FunctionOffset), s.Module[strings.LastIndexByte(s.Module, '/')+1:])
	}
	return s.Function
}

// shownFrames is how many frames of a stack are reported.
const shownFrames = 16

// stackOf names the frames of a thread by its number.
func stackOf(p *image.Process, number uint32) []string {
	for i := range p.Threads {
		if p.Threads[i].Ref.Number != int(number) {
			continue
		}
		u := unwind.New(p)
		walked := u.Walk(&p.Threads[i], shownFrames)
		u.Symbolize(walked.Frames)
		var names []string
		for _, f := range walked.Frames {
			names = append(names, callName(f.Calls, f.PC()))
		}
		return names
	}
	return nil
}

// pointText describes a preemption's event.
func pointText(e *eventlog.Event) string {
	if len(e.Args) > 1 && e.Args[0] == agent.PointPC {
		return fmt.Sprintf("a preemption at %v, arrival %d", evidence.Addr(e.Object), e.Args[1])
	}
	return "a preemption"
}
