package flow

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
	"diagnose/image/x86/transfer"
	"diagnose/replay"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// Request says which part of a recording is traced.
type Request struct {
	// Windows are the parts, by thread; nil: all threads from their first event on.
	Windows map[uint32]replay.StepWindow
	// Most bounds the instructions of all threads; 0: MostSteps. A trace with more is Cut. Skip is how many of the windows' first
	// instructions the trace leaves out (see Count).
	Most, Skip uint64
	Image      image.Options
	// HeapAt, if set, tells of the heap object at an address when the trace ends. Objects that were made before the trace are
	// known by it.
	HeapAt func(evidence.Addr) (HeapObject, bool)
	// Progress, if set, is called from time to time with the number of instructions.
	Progress func(done uint64)
}

// HeapObject is an object of the heap, as a process ended.
type HeapObject struct {
	Addr  evidence.Addr
	Size  uint64
	Freed bool
}

// MostSteps is the usual bound of instructions. Most take less than a microsecond, and some ten bytes (bench/flow).
const MostSteps = 3_000_000

// EndError says that the replay did not end as the recording did, so its steps are those of another run.
type EndError struct {
	End    replay.EndKind
	Moment evidence.Moment
}

func (e *EndError) Error() string {
	return fmt.Sprintf("flow: the traced replay ended differently: %v at %v", e.End, e.Moment)
}

// Record replays a part of a recording one instruction at a time.
func Record(ctx context.Context, rec *record.Recording, q Request) (*Trace, error) {
	if q.Most == 0 {
		q.Most = MostSteps
	}
	r, windows := newRecorder(q.Progress), q.windows(rec.Log)
	r.trace.heap.ended = q.HeapAt
	result, err := q.step(ctx, rec, windows, replay.Stepping{Most: q.Skip + q.Most, Skip: q.Skip, Each: r.each}, r.atEnd)
	if err != nil {
		return nil, err
	}
	r.trace.Cut = result.End == replay.EndMoment
	r.trace.readLog(rec.Log, windows)
	r.trace.finish()
	return r.trace, nil
}

// Count is the number of instructions of the windows, and bounded by Most: it is Most or more if there are as many.
func Count(ctx context.Context, rec *record.Recording, q Request) (uint64, error) {
	result, err := q.step(ctx, rec, q.windows(rec.Log), replay.Stepping{Most: q.Most, Skip: q.Most, Each: func(*replay.Executed) {}}, nil)
	if err != nil {
		return 0, err
	}
	return result.Steps, nil
}

// step makes a replay whose windows are stepped.
func (q *Request) step(ctx context.Context, rec *record.Recording, windows map[uint32]replay.StepWindow, s replay.Stepping, atEnd func(*replay.Stopped) error) (*replay.Result, error) {
	timing, err := rec.Timing()
	if err != nil {
		return nil, err
	}
	s.Windows, s.Ahead = windows, true
	result, err := replay.Run(ctx, rec, replay.StepRequest{
		Common:   replay.Common{Timing: cmp.Or(timing, record.TimingEager), Image: q.Image, Unnamed: true, AtEnd: atEnd},
		Stepping: s,
	})
	if err == nil && result.End != replay.EndMoment && result.End != replay.EndFailure && result.End != replay.EndExit {
		err = &EndError{result.End, result.Moment}
	}
	return result, err
}

func (q *Request) windows(log *eventlog.Log) map[uint32]replay.StepWindow {
	if q.Windows != nil {
		return q.Windows
	}
	windows := map[uint32]replay.StepWindow{}
	for _, thread := range log.Threads() {
		windows[thread] = replay.StepWindow{From: 1, To: ^uint64(0) >> 1}
	}
	return windows
}

// recorder makes a trace of what a replay reports.
type recorder struct {
	trace *Trace
	// latest is the step that was added last, and its instruction.
	latest      step
	instruction *instruction
	// known are some of the trace's instructions, by the low bits of their addresses.
	known    [1 << 12]*instruction
	progress func(uint64)
}

func newRecorder(progress func(uint64)) *recorder {
	return &recorder{progress: progress, trace: &Trace{steps: newSteps(), last: map[uint32]int32{}, instructions: map[uint64]*instruction{}, calls: map[evidence.Addr]string{}, outputs: map[event][]output{}, mappings: map[event][]eventlog.MemoryChange{}}}
}

// each takes the next instruction of a thread.
func (r *recorder) each(x *replay.Executed) {
	t := r.trace
	previous, known := t.last[x.Thread]
	if !known {
		previous = -1
	}
	before := &r.latest
	if known && int(previous) != t.steps.len()-1 {
		before = t.steps.at(int(previous))
	}
	if x.Again && known && !before.library && before.pc == x.PC {
		// It was preempted before it; the instruction takes place now.
		dropped := *before
		dropped.pc, dropped.library, dropped.called = 0, true, notExecuted
		t.steps.change(int(previous), dropped)
		before = &dropped
	}
	s := step{pc: x.PC, general: x.General, fsBase: x.FSBase, gsBase: x.GSBase, thread: x.Thread, previous: previous, ordinal: x.Ordinal}
	if known && r.interrupted(before, x) {
		gap := s
		gap.library, gap.called = true, evidence.Addr(x.Called)
		t.steps.add(&gap)
		s.previous = int32(t.steps.len() - 1)
		if x.Called != 0 {
			t.calls[gap.called] = ""
		}
	}
	r.instruction = r.instructionAt(x)
	s.holds = x.Holds
	if !x.Ahead && x.Inst != nil {
		s.holds, _ = transfer.Holds(x.Inst.Op, x.Flags)
	}
	t.last[x.Thread] = int32(t.steps.len())
	t.steps.add(&s)
	r.latest = s
	if n := t.steps.len(); r.progress != nil && n%4096 == 0 {
		r.progress(uint64(n))
	}
}

// instructionAt is the description of an executed instruction.
func (r *recorder) instructionAt(x *replay.Executed) *instruction {
	slot := &r.known[x.PC%uint64(len(r.known))]
	if i := *slot; i != nil && i.inst == x.Inst && x.Inst != nil && x.Inst.PC == x.PC {
		return i
	}
	i := r.trace.instructions[x.PC]
	if i == nil {
		i = newInstruction(x.Inst)
		r.trace.instructions[x.PC] = i
	}
	*slot = i
	return i
}

// notExecuted is the function of a step that did not take place.
const notExecuted = evidence.Addr(1)

// interrupted reports whether something happened between two instructions of a thread: in the recording library, in
// the kernel, or a signal.
func (r *recorder) interrupted(before *step, x *replay.Executed) bool {
	if x.Called != 0 || before.ordinal != x.Ordinal || before.called == notExecuted {
		return true
	}
	i := r.instruction
	if before != &r.latest {
		i = r.trace.instructions[before.pc]
	}
	if i == nil || i.inst == nil {
		return true
	}
	next := before.pc + uint64(i.inst.Len)
	switch i.inst.Flow {
	case x86.FlowNext:
		return x.PC != next && (x.PC != before.pc || !i.inst.Repeats())
	case x86.FlowBranch:
		return x.PC != next && x.PC != i.inst.Target
	case x86.FlowJump, x86.FlowCall:
		return i.inst.HasTarget && x.PC != i.inst.Target
	case x86.FlowReturn:
		return false
	}
	return true
}

func newInstruction(inst *x86.Inst) *instruction {
	i := &instruction{inst: inst}
	if inst == nil {
		return i
	}
	i.transfers = transfer.Of(inst)
	for _, x := range i.transfers {
		i.writes |= writesOf(x.To.Space, x.To.Num)
		i.memory = i.memory || x.To.Space == transfer.Memory
	}
	return i
}

// atEnd names the functions of the library.
func (r *recorder) atEnd(s *replay.Stopped) error {
	p, err := s.Process()
	if err != nil {
		return err
	}
	for addr := range r.trace.calls {
		if symbol, ok := p.SymbolAt(addr); ok {
			r.trace.calls[addr] = cmp.Or(agent.HeapFunction(symbol.Name), symbol.Name)
		}
	}
	return nil
}

// finish makes the indices.
func (t *Trace) finish() {
	t.written = map[uint64][]int32{}
	t.steps.all(func(n int, s *step) {
		t.noteBlock(n, s)
		if s.library {
			t.addLibrary(n)
			return
		}
		i := t.instructions[s.pc]
		if i == nil || !i.memory {
			return
		}
		for k := range i.transfers {
			if to := i.transfers[k].To; to.Space == transfer.Memory && t.happens(s, i) {
				if l, ok := t.locate(s, i, to); ok {
					t.addWrite(n, l)
				}
			}
		}
	})
	slices.SortStableFunc(t.ranges, func(a, b writtenRange) int { return int(a.at - b.at) })
}

// addWrite notes that a step writes to memory.
func (t *Trace) addWrite(n int, l Location) {
	for word := uint64(l.Addr) >> 3; word <= (uint64(l.Addr)+uint64(l.Size)-1)>>3; word++ {
		list := t.written[word]
		if len(list) == 0 || list[len(list)-1] != int32(n) {
			t.written[word] = append(list, int32(n))
		}
	}
}

// addLibrary notes what a step in the library did to memory.
func (t *Trace) addLibrary(n int) {
	s := t.steps.at(n)
	if s.called == notExecuted {
		return
	}
	first := uint64(0)
	if s.previous >= 0 {
		first = t.steps.at(int(s.previous)).ordinal
	}
	for ordinal := first + 1; ordinal <= s.ordinal && ordinal-first < mostEvents; ordinal++ {
		for _, m := range t.mappings[event{s.thread, ordinal}] {
			t.heap.mapped(n, m)
			t.setRange(n, m.Addr, m.Kept, Copied, m.Call, uint64(m.From))
		}
		for _, o := range t.outputs[event{s.thread, ordinal}] {
			t.ranges = append(t.ranges, writtenRange{at: int32(n), addr: uint64(o.addr), size: o.size, kind: Input, call: o.call})
		}
	}
	t.heap.note(t, n)
	t.noteWrapped(n)
}

// mostEvents bounds the events of one step: a thread that ran without being stepped may have many.
const mostEvents = 1 << 16
