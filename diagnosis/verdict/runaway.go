package verdict

import (
	"context"
	"errors"
	"maps"

	"diagnose/agent"
	"diagnose/diagnosis/provenance"
	"diagnose/evidence"
	"diagnose/flow"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/x86"
	"diagnose/replay"
)

// mostBegun bounds the instructions that are followed from the start of a function.
const mostBegun = flow.MostSteps / 3

// mostStrides bounds how often the failing instruction is looked at. Each time takes some 20 microseconds.
const mostStrides = 200_000

// runaway is for an access that failed far from where it first was outside of an object: a loop without an end, which came to memory that
// is not there after more instructions than can be followed. The trace of the run's end has no beginning of the pointer or index then. A
// trace from where the function that failed was last entered has it: the same instruction, in the same frame, had been outside of an object
// before. The result is the way to the first such access; nil: none is found.
func (x *exact) runaway(ctx context.Context, opts image.Options, say func(string, ...any)) *provenance.Way {
	if x.sought || x.whole || x.process == nil || x.process.FailingThread() == nil || x.failure == nil || x.failure.Fault == nil || x.failure.Instruction == nil {
		return x.begun
	}
	x.sought = true
	err := x.tracing(ctx, opts, say, func(t *tracing) (err error) {
		x.begun, err = t.begins()
		return err
	})
	if err != nil {
		x.begun = nil
	}
	return x.begun
}

// begins looks for the access from where the functions of the failing thread were last entered, the innermost first.
func (t *tracing) begins() (w *provenance.Way, err error) {
	schedule, err := t.rec.Log.Schedule()
	at := lastEvent(t.failing(), t.handled, schedule)
	if err != nil && len(schedule) == 0 || at == 0 {
		return nil, err
	}
	frames := unwind.New(t.process).Walk(t.process.FailingThread(), mostFrames).Frames
	var others map[uint32]replay.StepWindow
	if list := t.lastEvents(1); len(list) > 0 {
		others = list[0]
	}
	return w, t.entered(frames, at, farEvents, func(m evidence.Moment) (more bool, err error) {
		q := t.request
		q.Most, q.Windows = mostBegun, map[uint32]replay.StepWindow{}
		maps.Copy(q.Windows, others)
		q.Windows[t.failing()] = replay.StepWindow{From: m.Ordinal, To: t.lastOf(t.failing()), PC: m.PC, Count: m.Count}
		trace, err := flow.Record(t.ctx, t.rec, q)
		if err != nil || !trace.Cut {
			return false, err
		}
		n := t.arrived(trace)
		if n < 0 {
			return false, nil
		}
		if first := provenance.Strayed(trace, t.program, n); first >= 0 {
			n = first
		}
		found, ok := provenance.Failing(trace, t.program, n)
		if !ok {
			return false, nil
		}
		if found = provenance.FirstBroken(trace, t.program, found, false); found.End != provenance.Outside {
			if found = provenance.Later(trace, t.program, n, t.failure.Fault.Addr); found == nil {
				return true, nil // its pointer may be one that the caller handed over
			}
			if ok, err = t.strides(m, at, trace, n, found); err != nil || !ok {
				return false, err
			}
		}
		if o := found.Object; o != nil && o.Made < 0 {
			if ok, err = t.livedAt(m, o); err != nil || !ok {
				return false, err
			}
		}
		w, found.Failing = found, false // it is another access than the one that failed
		return false, nil
	})
}

// arrived is the last step of a trace at which the failing thread executed the instruction at which it failed later, in the same frame; -1:
// it did not.
func (t *tracing) arrived(trace *flow.Trace) int {
	stack := uint64(t.process.FailingThread().Registers.SP())
	for n := trace.Last(t.failing()); n >= 0; n = trace.Previous(n) {
		if s := trace.Step(n); !s.Library && s.PC == t.failure.Instruction.PC && trace.Register(n, x86.RSP) == stack {
			return n
		}
	}
	return -1
}

// livedAt reports whether a heap object that is known from the end of the run was there at a moment: its memory may have been another
// one's then.
func (t *tracing) livedAt(at evidence.Moment, o *flow.Object) (lived bool, err error) {
	hook := replay.Hook{At: at, Do: func(s *replay.Stopped) error {
		p, err := s.Process()
		if err != nil {
			return err
		}
		heap, err := agent.Open(p, 0)
		if err != nil {
			return err
		}
		near, found, err := heap.Nearest(o.Addr)
		if err != nil {
			return err
		}
		lived = found && near.Object.State == agent.Live && near.Object.Addr == o.Addr && near.Object.Size == o.Size
		return replay.ErrEnough
	}}
	_, err = replay.Run(t.ctx, t.rec, replay.PlainRequest{Common: replay.Common{Image: t.request.Image, Hooks: []replay.Hook{hook}}})
	return lived, err
}

// strides reports whether the failing instruction, which executed step n of a trace, came to its last address from within the object of a way by
// steps of one size: its pointer was derived from that object to the end. entered is when its function was entered, last the thread's last
// event.
func (t *tracing) strides(entered evidence.Moment, last uint64, trace *flow.Trace, n int, w *provenance.Way) (steady bool, err error) {
	memory := provenance.Operand(trace, n)
	if memory == nil || memory.Segment != x86.SegNone {
		return false, nil
	}
	stack := t.process.FailingThread().Registers.SP()
	var first, previous, distance evidence.Addr // of the latest accesses with equal distances
	_, err = lastArrival(t.ctx, t.rec, t.request.Image, arrivals{pc: t.failure.Instruction.PC, thread: t.failing(), ordinal: last,
		events: last - entered.Ordinal + 1, most: mostStrides, is: func(r *image.Registers) bool {
			v, known := memory.Address(func(x x86.Reg) (uint64, bool) { return r.Get(image.Register(x)) })
			if at := evidence.Addr(v); known && r.SP() == stack {
				if at-previous != distance {
					first, distance = previous, at-previous
				}
				previous = at
			}
			return false
		}})
	if errors.Is(err, errPassed) {
		return false, nil
	}
	return err == nil && previous == t.failure.Fault.Addr && w.Holds(first), err
}
