package watchtrace

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/unwind"
	"diagnose/image/value"
	"diagnose/internal/wording"
	"diagnose/replay"
	"diagnose/replay/record/eventlog"
)

// Visit replays again the passes that saw these accesses of the log (indices of
// log.Accesses), and calls visit at each of them, with the process stopped
// right after the instruction that made it. Within a pass the calls are in the
// order of the replay. They are never concurrent. If visit returns an error its
// pass ends. Visit returns these errors, except replay.ErrEnough.
func (p *Plan) Visit(ctx context.Context, log *evidence.AccessLog, indices []int, visit func(index int, hit *replay.Hit, s *replay.Stopped) error) error {
	wanted := map[int]map[uint64]int{} // by pass: the hits, and the access of each
	for _, i := range indices {
		if i < 0 || i >= len(log.Accesses) {
			return fmt.Errorf("watchtrace: access %d of %d", i, len(log.Accesses))
		}
		pass, found := p.passOf(&log.Accesses[i])
		if !found {
			return fmt.Errorf("watchtrace: access %d of %s is of another plan", i, log.Recording)
		}
		if wanted[pass] == nil {
			wanted[pass] = map[uint64]int{}
		}
		wanted[pass][log.Accesses[i].Hit] = i
	}
	var mu sync.Mutex
	var workers sync.WaitGroup
	errs := make([]error, len(p.Passes))
	slots := make(chan struct{}, p.opts.Processes)
	for pass, hits := range wanted {
		workers.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[pass] = p.visitPass(ctx, log, pass, hits, func(index int, h *replay.Hit, s *replay.Stopped) error {
				mu.Lock()
				defer mu.Unlock()
				return visit(index, h, s)
			})
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}

// hitOf returns the hit that an access was made from.
func hitOf(a *evidence.Access, number uint64) *replay.Hit {
	return &replay.Hit{Number: number, Thread: a.Thread, Ordinal: a.Ordinal, Position: a.Position, Turn: a.Turn, PC: a.PC, Kind: a.Kind, By: a.By, Old: a.Old, New: a.New}
}

func (p *Plan) visitPass(ctx context.Context, log *evidence.AccessLog, pass int, hits map[uint64]int, visit func(int, *replay.Hit, *replay.Stopped) error) error {
	o := p.replayOptions(p.Passes[pass])
	p.bound(&o)
	o.Earlier = p.Earlier(log, pass, slices.Collect(maps.Keys(hits)))
	left := len(hits)
	o.Inspect = map[uint64]func(*replay.Hit, *replay.Stopped) error{}
	// Probes do not see the accesses of system calls; the log has them, by
	// event.
	calls := map[evidence.Moment][]func(*replay.Stopped) error{}
	for number, index := range hits {
		a := &log.Accesses[index]
		look := func(h *replay.Hit, s *replay.Stopped) error {
			if h.Thread != a.Thread || h.Ordinal != a.Ordinal || h.PC != a.PC {
				return fmt.Errorf("watchtrace: hit %d of pass %d is by thread %d at %v after event %d, and was by thread %d at %v after event %d", number, pass+1,
					h.Thread, h.PC, h.Ordinal, a.Thread, a.PC, a.Ordinal)
			}
			if err := visit(index, h, s); err != nil {
				return err
			}
			if left--; left == 0 {
				return replay.ErrEnough
			}
			return nil
		}
		if p.Passes[pass].Known && a.By == evidence.ByCall {
			at := evidence.Moment{Thread: a.Thread, Ordinal: a.Ordinal}
			calls[at] = append(calls[at], func(s *replay.Stopped) error { return look(hitOf(a, number), s) })
		} else {
			o.Inspect[number] = look
		}
	}
	for at, looks := range calls {
		o.Hooks = append(o.Hooks, replay.Hook{At: at, Do: func(s *replay.Stopped) error {
			for _, look := range looks {
				if err := look(s); err != nil {
					return err
				}
			}
			return nil
		}})
	}
	result, err := replay.Run(ctx, p.rec, o)
	if left > 0 && err == nil && result.End != replay.EndMoment {
		return fmt.Errorf("watchtrace: %d accesses of pass %d were not there again", left, pass+1)
	}
	if left == 0 {
		var diverged *replay.DivergenceError
		if errors.As(err, &diverged) {
			return nil
		}
	}
	return err
}

// passOf returns the pass that saw an access.
func (p *Plan) passOf(a *evidence.Access) (pass int, found bool) {
	for i := range p.Passes {
		for j, v := range p.Passes[i].Variables {
			if !p.Passes[i].locks && v == int(a.Variable) && p.Passes[i].Offsets[j] == int(a.Offset) {
				return i, true
			}
		}
	}
	return 0, false
}

// Details visits these accesses of the log, and returns them, in the given
// order, as a report shows them: with full stacks, values in the variable's type,
// and Moments.
func (p *Plan) Details(ctx context.Context, log *evidence.AccessLog, indices []int) ([]evidence.SeenAccess, error) {
	seen := map[int]evidence.SeenAccess{}
	err := p.Visit(ctx, log, indices, func(index int, h *replay.Hit, s *replay.Stopped) error {
		process, err := s.Process()
		if err != nil {
			return err
		}
		seen[index] = p.describe(process, log, index, h, s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	list := make([]evidence.SeenAccess, 0, len(indices))
	for _, i := range indices {
		x, found := seen[i]
		if !found {
			return nil, fmt.Errorf("watchtrace: access %d was not there again", i)
		}
		list = append(list, x)
	}
	return list, nil
}

// describe describes an access of a process that is stopped right after it.
func (p *Plan) describe(process *image.Process, log *evidence.AccessLog, index int, h *replay.Hit, s *replay.Stopped) evidence.SeenAccess {
	a := &log.Accesses[index]
	v := &log.Variables[a.Variable]
	x := evidence.SeenAccess{
		Position: a.Position, Thread: log.Threads[a.Thread],
		Variable: v.Name, Identity: v.Identity, Address: v.Address + evidence.Addr(a.Offset), Size: int(a.Size), Kind: a.Kind.Kind(), Locks: log.LockSets[a.Locks],
	}
	x.Moment = Moments(process, log, []int{index})[0]
	name, typ := nameAndType(process, x.Address, int(a.Size))
	if name != "" && v.Size > int(a.Size) {
		x.Variable, x.Identity = name, evidence.Expression(name)
	}
	if typ == nil && v.Type != "" && v.Size == int(a.Size) {
		typ = TypeNamed(process, v.Type)
	}
	x.Old, x.New = TextOf(process, a.Old, typ, int(a.Size)), TextOf(process, a.New, typ, int(a.Size))
	if a.Handler != 0 {
		x.Handler = wording.Signal(int(a.Handler))
	}
	if a.By == evidence.ByCall {
		x.Call = p.callOf(a)
	}
	x.Stack, x.Site, x.Library = stackAt(process, s, h)
	return x
}

// TextOf formats a value in a variable's type, or as a number.
func TextOf(process *image.Process, v uint64, typ debuginfo.Type, size int) string {
	data := make([]byte, 8)
	for i := range data {
		data[i] = byte(v >> (8 * i))
	}
	if typ != nil && int(typ.Size()) == size {
		switch typ.Kind() {
		case debuginfo.KindStruct, debuginfo.KindUnion, debuginfo.KindArray:
		default:
			if x := value.Scalar(process, data[:size], typ); x.Text != "" {
				return x.Text
			}
		}
	}
	const small = 1 << 16
	if v < small {
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("%#x", v)
}

// callOf names the system call that made an access.
func (p *Plan) callOf(a *evidence.Access) string {
	c := p.rec.Log.Cursor(a.Thread)
	for {
		e, err := c.Next()
		if err != nil || e.Ordinal > a.Ordinal {
			return ""
		}
		if e.Ordinal == a.Ordinal && e.Kind == eventlog.KindSyscall {
			return eventlog.SyscallName(e.Object)
		}
	}
}

// stackAt returns the stack of a thread that is stopped after an access, from
// the responsible code of the program outward, and the library's function that this code called.
func stackAt(process *image.Process, s *replay.Stopped, h *replay.Hit) (stack evidence.Stack, site *evidence.Site, library string) {
	at := evidence.Addr(0)
	if h.By != evidence.ByCall {
		at = h.PC
	}
	stack, own := walkedStack(process, at)
	if own < 0 {
		return stack, nil, ""
	}
	if own > 0 {
		library = stack.Frames[own-1].Site.Function
	}
	if h.Caller != 0 {
		stack.Frames = stack.Frames[own:] // without what the program called
		own = 0
	}
	for i := range stack.Frames {
		stack.Frames[i].Index = i
	}
	return stack, &stack.Frames[own].Site, library
}

// StackAfterCall returns the stack of the failing thread of a process that a replay has
// stopped right after a system call, and the innermost place of the program's own code in
// it; nil if there is none.
func StackAfterCall(process *image.Process) (evidence.Stack, *evidence.Site) {
	stack, own := walkedStack(process, 0)
	for i := range stack.Frames {
		stack.Frames[i].Index = i
	}
	if own < 0 {
		return stack, nil
	}
	return stack, &stack.Frames[own].Site
}

// walkedStack returns the whole stack of the failing thread, and the index of the
// innermost frame of the program's own code; -1 if there is none. at is the instruction
// of the program that the thread has just executed; 0: a system call.
func walkedStack(process *image.Process, at evidence.Addr) (stack evidence.Stack, own int) {
	const most = 200
	stack = evidence.Stack{Frames: []evidence.Frame{}}
	thread := process.Failing
	if thread < 0 || thread >= len(process.Threads) {
		stack.Stopped = "the thread is not known"
		return stack, -1
	}
	u := unwind.New(process)
	walked := u.Walk(&process.Threads[thread], most)
	u.Symbolize(walked.Frames)
	if len(walked.Frames) > 0 && at != 0 && sameFunction(process, at, walked.Frames[0].PC()) {
		// The pc is after the instruction, and may be of another line.
		walked.Frames[0].Calls = process.Symbolize(at, image.AtInstruction)
	}
	stack.Stopped = walked.Stopped
	own = -1
	for i := range walked.Frames {
		f := &walked.Frames[i]
		for j, call := range f.Calls {
			frame := evidence.Frame{Kind: f.Kind, Trust: f.Trust, Site: call.Site, CFA: f.CFA}
			if call.Inlined {
				frame.Kind = evidence.Inlined
			}
			stub := at == 0 && call.Site.Module == "" // it returns from the call through code of the recorder
			if own < 0 && !stub && f.Kind != evidence.SignalFrame && !image.LibraryCode(&f.Calls[j].Site) {
				own = len(stack.Frames)
			}
			stack.Frames = append(stack.Frames, frame)
		}
	}
	return stack, own
}

func sameFunction(p *image.Process, a, b evidence.Addr) bool {
	x, found := p.SymbolAt(a)
	y, also := p.SymbolAt(b)
	return found && also && x.Addr == y.Addr
}
