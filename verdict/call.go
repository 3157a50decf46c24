package verdict

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay"
	"diagnose/staticscan"
	"diagnose/unwind"
)

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
	if p.Failing < 0 || p.Failing >= len(p.Threads) {
		return heapCall{}, errors.New("verdict: the thread is not in the stopped process")
	}
	const frames = 32
	thread := &p.Threads[p.Failing]
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
		return heapCall{name: s.Name, entry: entry, thread: hit.Thread, ordinal: hit.Ordinal}, nil
	}
	return heapCall{}, fmt.Errorf("verdict: the heap's store at %v is in no call of it", hit.PC)
}

// mostCalls bounds how many calls between two events are looked at.
const mostCalls = 64

// moment finds when the call was entered: a register had a value then. The
// moment is the first instruction of the called function.
func (w *work) moment(call heapCall, register image.Register, value uint64) (evidence.Moment, error) {
	at := evidence.Moment{Thread: call.thread, Ordinal: call.ordinal, PC: call.entry}
	found := uint64(0)
	opts := replay.Options{Image: w.Image}
	for n := uint64(1); n <= mostCalls; n++ {
		at.Count = n
		opts.Hooks = append(opts.Hooks, replay.Hook{At: at, Do: func(s *replay.Stopped) error {
			p, err := s.Process()
			if err != nil {
				return err
			}
			if p.Failing < 0 || p.Failing >= len(p.Threads) {
				return errors.New("verdict: the thread is not in the stopped process")
			}
			if v, ok := p.Threads[p.Failing].Registers.Get(register); ok && v == value {
				found = s.Moment.Count // the last one is the one before the store
			}
			return nil
		}})
	}
	_, err := replay.Run(w.ctx, w.rec, opts)
	var missed *replay.MomentError
	if found != 0 && (err == nil || errors.As(err, &missed)) {
		at.Count = found
		return at, nil
	}
	if err == nil || errors.As(err, &missed) {
		err = fmt.Errorf("verdict: no call of %s with %#x was found behind event %d of thread %d", call.name, value, call.ordinal, call.thread)
	}
	return at, err
}
