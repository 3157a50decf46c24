package verdict

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/replay"
	"diagnose/staticscan"
)

var errNoThread = errors.New("the thread is not in the stopped process")

// heapCall is a call of the heap's, malloc or free, that a pass saw at work.
type heapCall struct {
	name  string
	entry evidence.Addr
	// thread and ordinal say when, at the latest; before is what the heap did then.
	thread  uint32
	ordinal uint64
	before  *before
}

// frees reports whether the call frees an object and does nothing else.
func (h *heapCall) frees() bool {
	return slices.Contains([]string{"free", "cfree", agent.APINew.Release(), agent.APINewArray.Release()}, h.name)
}

// heapCallOf finds the call by which the heap came to do what the link's hit is of,
// and what code of the program's made it.
func (vs *visits) heapCallOf(l *link, in staticscan.Input, hit *replay.Hit) error {
	for i := range in.Frames {
		if recordLibrary(in.Process, in.Frames[i].LookupPC()) {
			continue
		}
		if i == 0 {
			break
		}
		at, err := vs.callSite(in, i, hitArrivals(l, hit))
		if err != nil {
			return err
		}
		if !recordLibrary(in.Process, at.To) { // a library's function, which jumped on
			for _, jump := range staticscan.TailCalls(in, at.To, in.Frames[i-1].PC()) {
				if recordLibrary(in.Process, jump.To) {
					at.To = jump.To
					break
				}
			}
		}
		s, _ := in.Process.SymbolAt(at.To)
		l.call = &heapCall{name: cmp.Or(agent.HeapFunction(s.Name), s.Name), entry: at.To, thread: hit.Thread, ordinal: hit.Ordinal, before: hitBefore(l.plan, l.log, &l.access)}
		l.jumpedFrom(in.Process, at)
		return nil
	}
	return fmt.Errorf("the heap's store at %v is in no call of it", hit.PC)
}

// recordLibrary reports whether code is the recording library's, which has the heap.
func recordLibrary(p *image.Process, pc evidence.Addr) bool {
	m := p.ModuleAt(pc)
	return m != nil && strings.HasPrefix(filepath.Base(m.Path), agent.RecordLibraryName)
}

// heapEvents is behind how many events a call of the heap's may have been entered
// that did something behind the last of them: of its own it has few (a stack that is
// new, memory from the super-heap).
const heapEvents = 8

// ofCall finds when the call was entered with registers as asked for, the last time
// before the heap did what was seen. The Moment is the first instruction of the
// called function.
func (m *moments) ofCall(call heapCall, is func(*image.Registers) bool) (evidence.Moment, error) {
	at, err := m.last(arrivals{pc: call.entry, thread: call.thread, ordinal: call.ordinal, events: heapEvents, before: call.before, is: is})
	if err == nil && at.Count == 0 {
		err = fmt.Errorf("the call of %s that the heap answered after event %d of thread %d was not found", call.name, call.ordinal, call.thread)
	}
	return at, err
}

// read is what an instruction read.
type read struct {
	addr  evidence.Addr
	size  int
	name  string
	value uint64
	at    evidence.Moment
	// outside: it lies outside of the array that the code means.
	outside *staticscan.Outside
}

// lastRead stands at an instruction of the failing thread again, the last time
// before the failure, and says which memory it reads.
func (m *moments) lastRead(pc evidence.Addr) (read, error) {
	at, err := m.lastOfFailing(pc)
	if err != nil || at.Count == 0 {
		return read{}, err
	}
	return m.readAt(at)
}

// readAt stands at an instruction, and says which memory it reads.
func (m *moments) readAt(at evidence.Moment) (found read, err error) {
	err = m.standAt(at, func(s *replay.Stopped, p *image.Process, t *image.Thread) error {
		r, ok := staticscan.Read(staticscan.Input{Process: p, Thread: t, Frames: unwind.New(p).Walk(t, 1).Frames})
		if !ok {
			return nil
		}
		var b [wordSize]byte
		if n, err := s.ReadMemory(r.Addr, b[:min(r.Size, wordSize)]); err != nil || n != min(r.Size, wordSize) {
			return nil // it fails there
		}
		found = read{addr: r.Addr, size: r.Size, name: r.Name, outside: r.Outside, at: at, value: binary.LittleEndian.Uint64(b[:])}
		return nil
	})
	return found, err
}

// lastArgument is the first argument that the failing thread passed in a call, the
// last time before the failure.
func (m *moments) lastArgument(call evidence.Addr) (evidence.Addr, error) {
	at, err := m.lastOfFailing(call)
	if err != nil || at.Count == 0 {
		return 0, err
	}
	return m.firstArgument(at)
}

// firstArgument is that of the call that a thread is about to make.
func (m *moments) firstArgument(at evidence.Moment) (argument evidence.Addr, err error) {
	err = m.standAt(at, func(_ *replay.Stopped, _ *image.Process, t *image.Thread) error {
		v, _ := t.Registers.Get(image.RDI)
		argument = evidence.Addr(v)
		return nil
	})
	return argument, err
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
