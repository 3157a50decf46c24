package gocore

import (
	"errors"
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/gotable"
	"diagnose/image/unwind"
)

// stripped reads the runtime of a program without DWARF, or of a live one.
type stripped struct {
	*Result
	opts     Options
	process  *image.Process
	memory   image.Memory // the process's
	unwinder *unwind.Unwinder
	table    *gotable.Table
	layout   layout
	reasons  []string
	list     []goroutineRecord
	read     int // records, good or not
}

// ReadProcess is Read without DWARF: it finds the runtime's structures through
// the function table. An error means that nothing could be read; missing parts
// are limits.
func ReadProcess(p *image.Process, u *unwind.Unwinder, opts Options) (*Result, error) {
	opts.complete()
	table, err := p.Exe.GoTable()
	if err != nil {
		return nil, err
	}
	if table == nil {
		return nil, errors.New("it has no Go function table")
	}
	version, err := p.Exe.GoVersion()
	if err != nil {
		return nil, err
	}
	s := &stripped{Result: &Result{Version: version}, opts: opts, process: p, memory: p, unwinder: u, table: table}
	if s.layout, err = layoutOf(version); err != nil {
		return nil, err
	}
	if s.list, err = s.records(); err != nil {
		return nil, err
	}
	s.readGoroutines()
	s.readFailure()
	return s.Result, nil
}

func (s *stripped) readGoroutines() {
	var err error
	if s.reasons, err = s.waitReasons(); err != nil {
		s.limit("", "what goroutines wait for cannot be read: "+err.Error())
	}
	if len(s.list) > s.opts.Goroutines {
		s.limit("", fmt.Sprintf("only the first %d goroutines are listed", s.opts.Goroutines))
	}
	on := 0
	if t := s.process.FailingThread(); t != nil {
		on = t.Ref.TID
	}
	for i := range s.list {
		g := &s.list[i]
		if t := s.threadOf(g); i < s.opts.Goroutines || t != nil && t.Ref.TID == on {
			s.Goroutines = append(s.Goroutines, s.goroutine(g))
		}
		if len(s.Goroutines) > s.opts.Goroutines {
			break
		}
	}
	s.markFailing(func(g *evidence.Goroutine) bool { return on != 0 && g.TID == on })
}

func (s *stripped) goroutine(g *goroutineRecord) evidence.Goroutine {
	out := evidence.Goroutine{ID: int64(g.id), Status: statuses[g.status]}
	if out.Status == "waiting" && int(g.reason) < len(s.reasons) {
		out.Wait = s.reasons[g.reason]
	}
	thread := s.threadOf(g)
	if thread == nil {
		out.Stack = s.stack(g, nil)
		return out
	}
	out.TID = thread.Ref.TID
	out.Stack = s.stack(g, &thread.Registers)
	return out
}

// threadOf is the thread that runs a goroutine; nil if none does.
func (s *stripped) threadOf(g *goroutineRecord) *image.Thread {
	if g.thread == 0 {
		return nil
	}
	tid, err := image.Uint64(s.memory, g.thread+evidence.Addr(s.layout.threadID))
	if err != nil {
		return nil
	}
	for i := range s.process.Threads {
		if uint64(s.process.Threads[i].Ref.TID) == tid {
			return &s.process.Threads[i]
		}
	}
	return nil
}

// stack walks a goroutine's stack from the registers of its thread. If these
// are on another stack that does not lead to the goroutine's, the frames of the
// goroutine follow from the registers that it saved when it left its stack, as
// in the runtime's own tracebacks.
func (s *stripped) stack(g *goroutineRecord, regs *image.Registers) evidence.Stack {
	var frames []unwind.Frame
	var stopped string
	own := false
	walk := func(regs *image.Registers) {
		stack := s.unwinder.Walk(&image.Thread{Registers: *regs}, s.opts.Depth-len(frames))
		for i := range stack.Frames {
			sp := stack.Frames[i].Registers.SP()
			own = own || sp >= g.low && sp <= g.high
		}
		frames = append(frames, stack.Frames...)
		if stopped = stack.Stopped; stack.Truncated {
			stopped = "limit of frames"
		}
	}
	if regs != nil {
		walk(regs)
	}
	if !own && g.sp >= g.low && g.sp <= g.high && len(frames) < s.opts.Depth {
		saved := image.Registers{OrigRAX: -1}
		saved.Set(image.RIP, uint64(g.pc))
		saved.Set(image.RSP, uint64(g.sp))
		saved.Set(image.RBP, uint64(g.fp))
		walk(&saved)
	}
	s.unwinder.Symbolize(frames)
	out := evidence.Stack{Frames: []evidence.Frame{}, Stopped: evidence.Say(stopped)}
	for i := range frames {
		f := &frames[i]
		for _, call := range f.Calls {
			frame := evidence.Frame{Index: len(out.Frames), Kind: f.Kind, Trust: f.Trust, Site: call.Site, CFA: f.CFA}
			if call.Inlined {
				frame.Kind = evidence.Inlined
			}
			out.Frames = append(out.Frames, frame)
		}
	}
	return out
}
