package verdict

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/internal/wording"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// The bounds of traces.
const (
	// mostFollowed bounds the instructions of one, mostTraced the time for all.
	mostFollowed = flow.MostSteps
	mostTraced   = time.Minute
	// mostCounted bounds the instructions of which only the last are followed, mostCounting the time to count them. To leave them out takes as
	// long again.
	mostCounted  = 1 << 32
	mostCounting = mostTraced / 4
	// mostShort is the processor time of a process that may have so few instructions; its start takes most of it.
	mostShort = 20 * time.Millisecond
	// deepest is how many times as many instructions are followed where the stack was used up: that alone takes some ten for each frame.
	deepest = 4
	// untilEnd is the last event of a window that ends with the run.
	untilEnd = 1<<63 - 1
)

// windowEvents are the numbers of events in the windows that are tried.
var windowEvents = [...]int{4096, 1024, 256, 64, 16, 1}

// errLong says that the run has too many instructions to follow each.
var errLong = errors.New("the run is too long to follow each of its instructions")

// window is the end of the failing run of which there is a trace.
type window struct {
	teller
	rec     *record.Recording
	handled *eventlog.HandledSignal
	// end is the last event that matters; nil: all do.
	end   *evidence.Moment
	trace *flow.Trace
	// whole: the trace is of the whole run, not of its end.
	whole bool
	// tooLong is an event of the failing thread from which on there are too many instructions.
	tooLong uint64
	// larger is what did not fit; nil: all did, or more than what fitted was followed.
	larger *larger
	// err says why there is no trace; tried: it was looked for.
	err   error
	tried bool
}

// tracing makes traces of the end of a run.
type tracing struct {
	*window
	ctx     context.Context
	request flow.Request
}

// record makes the trace: of the whole run, or if that is too long of as much before the failure as can be followed.
func (x *window) record(ctx context.Context, opts image.Options, say func(string, ...any)) error {
	if x.tried {
		return x.err
	}
	x.tried = true
	x.err = x.tracing(ctx, opts, say, (*tracing).longest)
	return x.err
}

// tracing has traces made, within the bound of time.
func (x *window) tracing(ctx context.Context, opts image.Options, say func(string, ...any), do func(*tracing) error) error {
	ctx, cancel := context.WithTimeout(ctx, mostTraced)
	defer cancel()
	return do(&tracing{window: x, ctx: ctx, request: flow.Request{Image: opts, HeapAt: x.heapAt,
		Progress: func(done uint64) { say("following each instruction: %s", wording.Count(done, "instruction")) }}})
}

// again makes the trace again, from a moment of the failing thread on. made is false if there is none to begin with, or the new one does not
// fit.
func (x *window) again(ctx context.Context, opts image.Options, say func(string, ...any), from evidence.Moment) (made bool, err error) {
	if x.trace == nil || from.Ordinal < x.tooLong {
		return false, nil
	}
	return x.retrace(ctx, opts, say, func(t *tracing) (bool, error) {
		windows := map[uint32]replay.StepWindow{from.Thread: {From: from.Ordinal, To: untilEnd, PC: from.PC, Count: from.Count}}
		return t.try(windows, t.more())
	})
}

// retrace has another trace made in place of the one that is there.
func (x *window) retrace(ctx context.Context, opts image.Options, say func(string, ...any), do func(*tracing) (made bool, err error)) (made bool, err error) {
	err = x.tracing(ctx, opts, say, func(t *tracing) error {
		made, err = do(t)
		return err
	})
	return made, err
}

// failing is the thread that failed.
func (x *window) failing() uint32 {
	if x.handled != nil {
		return x.handled.Thread
	}
	return x.rec.Manifest.Outcome.Thread
}

// longest makes the longest trace that the bounds allow.
func (t *tracing) longest() error {
	times := &t.rec.Manifest.Times
	factor := uint64(1)
	if t.failure != nil && t.failure.Kind == evidence.StackOverflow {
		factor = deepest
	}
	short := uint64(times.UserNS+times.SystemNS) < factor*uint64(mostShort)
	if short {
		if fits, err := t.try(nil, factor*mostFollowed); err != nil || fits {
			t.whole = fits
			return err
		}
	}
	// The windows grow. Of a program that has computed for long, the smallest is most often too long as well; and one that
	// has very many more instructions than the one before is not worth the time to see that it has too many.
	list, most := t.lastEvents(windowEvents[:]...), uint64(mostFollowed/8)
	var smallest map[uint32]replay.StepWindow // nil: the run has no more events
	for i, windows := range slices.Backward(list) {
		if i == len(list)-1 {
			smallest = windows
		}
		fits, err := t.try(windows, most)
		if err != nil {
			return err
		}
		if !fits {
			t.larger = &larger{windows}
			break
		}
		most = t.more()
		if i == 0 && !short && len(list) < len(windowEvents) {
			if t.whole, err = t.try(nil, most); err != nil {
				return err
			}
			t.larger = &larger{}
		}
	}
	if t.trace == nil && smallest != nil {
		if _, err := t.tail(smallest); err != nil {
			return err
		}
	}
	if t.trace == nil {
		if err := t.near(smallest); err != nil {
			return err
		}
	}
	if t.trace == nil && smallest != nil {
		if _, err := t.try(smallest, mostFollowed); err != nil {
			return err
		}
	}
	if t.trace == nil {
		return errLong
	}
	return nil
}

// larger are windows with more instructions than were followed; nil: the whole run.
type larger struct {
	windows map[uint32]replay.StepWindow
}

// earlier makes the trace again, of as many instructions before the failure as can be followed, where that is of whole windows that have
// far fewer. made is false if there are no more.
func (x *window) earlier(ctx context.Context, opts image.Options, say func(string, ...any)) (made bool, err error) {
	from := x.larger
	if x.larger = nil; x.trace == nil || x.whole || from == nil {
		return false, nil
	}
	return x.retrace(ctx, opts, say, func(t *tracing) (bool, error) { return t.tail(from.windows) })
}

// tail makes the trace of the last instructions of windows that have too many. A replay counts them first, as without a counter of the
// processor there is no other way to begin so many before the end. made is false if there are too many to count.
func (t *tracing) tail(windows map[uint32]replay.StepWindow) (made bool, err error) {
	ctx, cancel := context.WithTimeout(t.ctx, mostCounting)
	defer cancel()
	q := t.request
	q.Windows, q.Most = windows, mostCounted
	n, err := flow.Count(ctx, t.rec, q)
	if err != nil && ctx.Err() != nil && t.ctx.Err() == nil {
		return false, nil
	}
	if err != nil || n >= mostCounted {
		return false, err
	}
	const differs = 1000 // where a replay stops threads makes a small difference
	q.Skip, q.Most = n-min(n, mostFollowed-differs), mostFollowed
	return t.follow(q)
}

// more is how many instructions the next larger trace may have.
func (t *tracing) more() uint64 {
	const times = 32
	return min(mostFollowed, max(mostFollowed/4, times*uint64(t.trace.Len())))
}

// try makes the trace of these windows, unless it has more instructions.
func (t *tracing) try(windows map[uint32]replay.StepWindow, most uint64) (fits bool, err error) {
	q := t.request
	q.Windows, q.Most = windows, most
	fits, err = t.follow(q)
	if window, ok := windows[t.failing()]; ok && err == nil && !fits {
		t.tooLong = max(t.tooLong, window.From)
	}
	return fits, err
}

// follow makes the trace that is asked for, unless it has too many instructions.
func (t *tracing) follow(q flow.Request) (fits bool, err error) {
	trace, err := flow.Record(t.ctx, t.rec, q)
	if err != nil || trace.Cut {
		return false, err
	}
	t.trace = trace
	return true, nil
}

// until is for a trace that ends after an event, of a run that continues for long: a panic was reported.
func (x *exact) until(m evidence.Moment) *exact {
	return &exact{window: window{teller: x.teller, rec: x.rec, end: &m}}
}

// before makes the longest trace that the bounds allow of what was before the end.
func (t *tracing) before() error {
	most := uint64(mostFollowed / 8)
	for _, windows := range slices.Backward(t.lastEvents(windowEvents[:]...)) {
		w := windows[t.end.Thread]
		w.To = t.end.Ordinal
		windows[t.end.Thread] = w
		if fits, err := t.try(windows, most); err != nil || !fits {
			return err
		}
		most = t.more()
	}
	return nil
}

// lastOf is the last event of a thread that matters: not what the handler of a fault did.
func (x *window) lastOf(thread uint32) uint64 {
	if x.handled != nil && x.handled.Thread == thread {
		return x.handled.Ordinal - 1
	}
	return untilEnd
}

// lastEvents are windows that begin so many events before the failure, for each of the numbers that the run has more
// events than. The numbers descend.
func (x *window) lastEvents(numbers ...int) (list []map[uint32]replay.StepWindow) {
	type event struct {
		thread  uint32
		ordinal uint64
	}
	before := map[uint32]uint64{} // the threads' last events of before the tail
	var tail []event              // the last events of all threads
	for e, err := range x.rec.Log.Ordered() {
		if e == nil || err != nil || x.end != nil && e.Thread == x.end.Thread && e.Ordinal == x.end.Ordinal || x.handled != nil && e.Thread == x.handled.Thread && e.Ordinal == x.handled.Ordinal {
			break
		}
		if tail = append(tail, event{e.Thread, e.Ordinal}); len(tail) > numbers[0] {
			before[tail[0].thread] = tail[0].ordinal
			tail = tail[1:]
		}
	}
	for _, n := range numbers {
		for ; len(tail) > n; tail = tail[1:] {
			before[tail[0].thread] = tail[0].ordinal
		}
		if len(before) == 0 {
			continue // there are no more
		}
		windows := map[uint32]replay.StepWindow{}
		for _, e := range slices.Backward(tail) { // a thread that begins in the tail is stepped from its first event on
			windows[e.thread] = replay.StepWindow{From: e.ordinal, To: x.lastOf(e.thread)}
		}
		for thread, ordinal := range before {
			windows[thread] = replay.StepWindow{From: ordinal, To: x.lastOf(thread)}
		}
		list = append(list, windows)
	}
	return list
}

// near is for a run that has too many instructions after its last event. The failing thread is followed from
// where it last entered the functions that it was in, the innermost first; or, in a loop of one of them, from one of the times
// before that it came to the failing instruction. others are the windows of the other threads.
func (t *tracing) near(others map[uint32]replay.StepWindow) error {
	thread := t.failing()
	if t.process == nil || t.process.FailingThread() == nil {
		return nil
	}
	schedule, err := t.rec.Log.Schedule()
	at := lastEvent(thread, t.handled, schedule)
	if err != nil && len(schedule) == 0 || at == 0 {
		return err
	}
	from := func(m evidence.Moment) (bool, error) {
		windows := map[uint32]replay.StepWindow{}
		maps.Copy(windows, others)
		windows[thread] = replay.StepWindow{From: at, To: t.lastOf(thread), PC: m.PC, Count: m.Count}
		return t.try(windows, mostFollowed)
	}
	frames := unwind.New(t.process).Walk(t.process.FailingThread(), mostFrames).Frames
	if err := t.entered(frames, at, 1, from); err != nil {
		return err
	}
	if t.trace != nil || len(frames) == 0 {
		return nil
	}
	m, err := lastArrival(t.ctx, t.rec, t.request.Image, arrivals{pc: frames[0].PC(), thread: thread, ordinal: at, events: 1})
	if err != nil && !errors.Is(err, errPassed) {
		return err
	}
	for _, back := range []uint64{1, 30, 1000} { // each fits if the one after it does
		if m.Count <= back {
			break
		}
		if fits, err := from(evidence.Moment{PC: m.PC, Count: m.Count - back}); err != nil || !fits {
			return err
		}
	}
	return nil
}

// entered calls do for each of the frames whose function was entered after an event of the failing thread, with when that was: the innermost
// first. The thread has as many events from that one to its last, which is given too. It ends where do returns false.
func (t *tracing) entered(frames []unwind.Frame, last, events uint64, do func(evidence.Moment) (more bool, err error)) error {
	for i := range frames {
		entry := t.entry(&frames[i])
		if entry == 0 {
			continue // the place that a bad pointer led to
		}
		m, err := lastArrival(t.ctx, t.rec, t.request.Image, arrivals{pc: entry, thread: t.failing(), ordinal: last, events: events})
		if errors.Is(err, errPassed) {
			continue // a function that is called very often
		}
		if err != nil || m.Count == 0 { // it was entered before the event, as those around it were
			return err
		}
		if more, err := do(m); err != nil || !more {
			return err
		}
	}
	return nil
}

// entry is the first instruction of the function of a frame; 0: it is not known.
func (t *tracing) entry(f *unwind.Frame) evidence.Addr {
	calls := t.process.Symbolize(f.PC(), f.Lookup)
	if len(calls) == 0 || calls[len(calls)-1].Site.Function == "" {
		return 0
	}
	return f.PC() - evidence.Addr(calls[len(calls)-1].Site.FunctionOffset)
}

// last is the failing instruction's step, or the last one of the thread that failed in a call; -1: the trace has none.
func (x *window) last() int {
	n := x.trace.Last(x.failing())
	if x.handled == nil {
		return n
	}
	for n >= 0 && (x.trace.Step(n).Ordinal >= x.handled.Ordinal || x.trace.Step(n).Library) {
		n = x.trace.Previous(n)
	}
	return n
}

// failed reports whether the trace ends at the instruction that raised the signal, if one did.
func (x *window) failed() bool {
	n := x.last()
	switch f := x.failure; {
	case n < 0:
		return false
	case f.Fault == nil && f.Kind != evidence.DivisionByZero, f.Instruction == nil:
		return true
	default:
		return x.trace.Step(n).PC == f.Instruction.PC
	}
}
