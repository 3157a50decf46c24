package verdict

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/record"
	"diagnose/replay"
	"diagnose/staticscan"
	"diagnose/unwind"
)

var errNoThread = errors.New("verdict: the thread is not in the stopped process")

// heapCall is a call of the heap's, malloc or free, that a pass saw at work.
type heapCall struct {
	name  string
	entry evidence.Addr
	// thread and ordinal say when.
	thread  uint32
	ordinal uint64
}

// heapCallOf finds the call by which the heap came to do what hit is of: the
// outermost of the innermost frames that are the agent's.
func heapCallOf(p *image.Process, hit *replay.Hit) (heapCall, error) {
	thread := p.FailingThread()
	if thread == nil {
		return heapCall{}, errNoThread
	}
	const frames = 32
	in := staticscan.Input{Process: p, Thread: thread, Frames: unwind.New(p).Walk(thread, frames).Frames}
	for i := range in.Frames {
		if m := p.ModuleAt(in.Frames[i].LookupPC()); m != nil && strings.HasPrefix(filepath.Base(m.Path), agent.RecordLibraryName) {
			continue
		}
		// The heap's functions jump on to others, so the frames do not name it.
		entry, ok := staticscan.Called(in, i)
		if !ok {
			return heapCall{}, fmt.Errorf("verdict: the call at %v does not tell where it went", in.Frames[i].LookupPC())
		}
		s, _ := p.SymbolAt(entry)
		return heapCall{name: heapName(s.Name), entry: entry, thread: hit.Thread, ordinal: hit.Ordinal}, nil
	}
	return heapCall{}, fmt.Errorf("verdict: the heap's store at %v is in no call of it", hit.PC)
}

// heapName is what programs call a function of the agent's (agent/src/cxx.c).
func heapName(symbol string) string {
	name := strings.TrimPrefix(symbol, "dg_own")
	for prefix, called := range map[string]string{"_Znwm": "operator new", "_Znam": "operator new[]", "_ZdlPv": "operator delete", "_ZdaPv": "operator delete[]"} {
		if strings.HasPrefix(name, prefix) {
			return called
		}
	}
	return symbol
}

// mostArrivals bounds how often an instruction is looked at between two events.
const mostArrivals = 20_000

// moment finds when the call was entered for an object: the last time, behind the
// event before, that its registers were as asked. The moment is the first
// instruction of the called function.
func (w *work) moment(call heapCall, is func(*image.Registers) bool) (evidence.Moment, error) {
	ordinals, err := w.heapOrdinals(call)
	if err != nil {
		return evidence.Moment{}, err
	}
	for _, ordinal := range ordinals {
		at := evidence.Moment{Thread: call.thread, Ordinal: ordinal, PC: call.entry, Count: 1}
		if at.Count, err = w.arrivals(at, is); err != nil || at.Count > 0 {
			return at, err
		}
	}
	return evidence.Moment{}, fmt.Errorf("verdict: the call of %s that the heap answered behind event %d of thread %d was not found", call.name, call.ordinal, call.thread)
}

// heapOrdinals are the events behind which the call may have been entered: the one
// before what it did, and those before the heap's own events of that call (a new
// stack, memory from the super-heap).
func (w *work) heapOrdinals(call heapCall) ([]uint64, error) {
	const most = 8
	var kinds []record.Kind // of the thread's events, the last ones
	for e, err := range w.rec.Log.Ordered() {
		if err != nil {
			return nil, err
		}
		if e.Thread == call.thread && e.Ordinal <= call.ordinal {
			if kinds = append(kinds, e.Kind); len(kinds) > most {
				kinds = kinds[1:]
			}
		}
	}
	ordinals := []uint64{call.ordinal}
	for i := len(kinds) - 1; i > 0 && kinds[i] == record.KindHeap; i-- {
		ordinals = append(ordinals, ordinals[len(ordinals)-1]-1)
	}
	return ordinals, nil
}

// arrivals counts how often the thread came to a function's entry when it did for
// the last time with such registers; 0: it did not.
func (w *work) arrivals(at evidence.Moment, is func(*image.Registers) bool) (found uint64, err error) {
	err = w.eachArrival(at, func(s *replay.Stopped, _ *image.Process, t *image.Thread) error {
		if is(&t.Registers) {
			found = s.Moment.Count
		}
		if s.Moment.Count == mostArrivals {
			return replay.ErrEnough
		}
		return nil
	})
	return found, err
}

// eachArrival replays and calls look each time that the thread comes to the
// Moment's pc, until its next event.
func (w *work) eachArrival(at evidence.Moment, look func(*replay.Stopped, *image.Process, *image.Thread) error) error {
	hook := replay.Hook{At: at, Every: true, Do: func(s *replay.Stopped) error {
		p, err := s.Process()
		if err != nil {
			return err
		}
		t := p.FailingThread()
		if t == nil {
			return errNoThread
		}
		return look(s, p, t)
	}}
	_, err := replay.Run(w.ctx, w.rec, replay.Options{Image: w.Image, Hooks: []replay.Hook{hook}})
	return err
}

// read is what an instruction read.
type read struct {
	addr  evidence.Addr
	size  int
	name  string
	value uint64
	at    evidence.Moment
}

// lastRead stands at an instruction of the failing thread again, the last time
// before the failure, and says which memory it reads.
func (w *work) lastRead(pc evidence.Addr) (read, error) {
	var last read
	err := w.lastArrival(pc, func(s *replay.Stopped, p *image.Process, t *image.Thread) error {
		addr, size, name, ok := staticscan.Read(staticscan.Input{Process: p, Thread: t, Frames: unwind.New(p).Walk(t, 1).Frames})
		if !ok {
			return nil
		}
		last = read{addr: addr, size: size, name: name, at: s.Moment}
		var b [wordSize]byte
		if n, err := s.ReadMemory(addr, b[:min(size, wordSize)]); err == nil && n == min(size, wordSize) {
			last.value = binary.LittleEndian.Uint64(b[:])
		}
		return nil
	})
	return last, err
}

// lastArgument is the first argument that the failing thread passed in a call, the
// last time before the failure.
func (w *work) lastArgument(call evidence.Addr) (argument evidence.Addr, err error) {
	err = w.lastArrival(call, func(_ *replay.Stopped, _ *image.Process, t *image.Thread) error {
		v, _ := t.Registers.Get(image.RDI)
		argument = evidence.Addr(v)
		return nil
	})
	return argument, err
}

// lastArrival calls look each time that the failing thread comes to an instruction
// behind its last event; the last call stands nearest to the failure.
func (w *work) lastArrival(pc evidence.Addr, look func(*replay.Stopped, *image.Process, *image.Thread) error) error {
	thread := w.rec.Manifest.Outcome.Thread
	schedule, err := w.rec.Log.Schedule()
	if err != nil && len(schedule) == 0 {
		return err
	}
	at := evidence.Moment{Thread: thread, Ordinal: schedule.Events()[thread], PC: pc, Count: 1}
	return w.eachArrival(at, func(s *replay.Stopped, p *image.Process, t *image.Thread) error {
		if s.Moment.Count == mostArrivals {
			return fmt.Errorf("verdict: the instruction at %v was passed more than %d times behind the last event", pc, mostArrivals)
		}
		return look(s, p, t)
	})
}

// asks tells from the registers at its entry whether a call is for so many bytes.
func (c *heapCall) asks(size uint64) func(*image.Registers) bool {
	value := func(r *image.Registers, n image.Register) uint64 {
		v, _ := r.Get(n)
		return v
	}
	return func(r *image.Registers) bool {
		first, second := value(r, image.RDI), value(r, image.RSI)
		switch strings.TrimPrefix(c.name, "__libc_") {
		case "calloc":
			return first*second == size
		case "realloc", "memalign", "aligned_alloc":
			return second == size
		case "reallocarray":
			return second*value(r, image.RDX) == size
		case "posix_memalign":
			return value(r, image.RDX) == size
		}
		return first == size
	}
}

// releases tells whether a call is for an object.
func releases(object evidence.Addr) func(*image.Registers) bool {
	return func(r *image.Registers) bool {
		v, ok := r.Get(image.RDI)
		return ok && v == uint64(object)
	}
}
