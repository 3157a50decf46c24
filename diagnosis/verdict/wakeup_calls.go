package verdict

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/futex"
	"diagnose/replay"
	"diagnose/replay/record/eventlog"
)

// seeCalls finds all calls of a replay to what is waited for.
func (k *wakeups) seeCalls() error {
	k.progress.say("replay for the calls to what threads wait for")
	opts := replay.FreeRequest{Common: replay.Common{Image: k.Image}}
	kinds, futexes := map[evidence.WaitKind]bool{}, false
	for _, e := range k.edges {
		if futexWaits[e.What] {
			futexes = true
		} else {
			kinds[e.What] = true
		}
	}
	for kind := range kinds {
		for wakes, names := range map[bool][]string{true: wakeFunctions[kind].wake, false: wakeFunctions[kind].wait} {
			for _, name := range names {
				breaks, err := k.breaks([]string{name}, func(s *replay.Stopped, object evidence.Addr) error {
					return k.see(s, wakeCall{wakes: wakes, all: name == "pthread_cond_broadcast", object: object})
				})
				if err != nil {
					return err
				}
				opts.Breaks = append(opts.Breaks, breaks...)
			}
		}
	}
	if futexes {
		list, err := k.futexCalls()
		if err != nil {
			return err
		}
		k.calls = append(k.calls, list...)
	}
	if len(opts.Breaks) == 0 {
		return nil
	}
	return callsSeen(replay.Run(k.progress.ctx, k.rec, opts))
}

// see adds a call that a thread makes, where threads wait for its object.
func (k *wakeups) see(s *replay.Stopped, c wakeCall) error {
	if !slices.ContainsFunc(k.edges, func(e *evidence.WaitEdge) bool { return e.Object == c.object }) {
		return nil
	}
	if len(k.calls) == mostWakeCalls {
		return fmt.Errorf("there are more than %d calls", mostWakeCalls)
	}
	regs, err := s.Registers()
	if err != nil {
		return err
	}
	c.thread, c.ordinal = s.Moment.Thread, s.Moment.Ordinal
	if back, err := image.Uint64(s, regs.SP()); err == nil {
		c.returnTo = evidence.Addr(back)
	}
	k.calls = append(k.calls, c)
	return nil
}

// breaks stop replays at functions of the recording library; do gets the object of the call.
func (k *wakeups) breaks(names []string, do func(s *replay.Stopped, object evidence.Addr) error) ([]replay.Break, error) {
	var list []replay.Break
	for _, name := range names {
		pc, found := k.inRecorder(name)
		if !found {
			return nil, fmt.Errorf("the recording library has no %s", name)
		}
		list = append(list, replay.Break{PC: pc, Do: func(s *replay.Stopped) error {
			regs, err := s.Registers()
			if err != nil {
				return err
			}
			object, _ := regs.Get(image.RDI)
			return do(s, evidence.Addr(object))
		}})
	}
	return list, nil
}

// futexCalls are the wakes of futexes, which the log has, and the waits that have not ended,
// which begin after their threads' last events.
func (k *wakeups) futexCalls() ([]wakeCall, error) {
	waiting := map[uint32]*evidence.WaitEdge{}
	objects := map[uint64]bool{}
	for _, e := range k.edges {
		if futexWaits[e.What] {
			waiting[uint32(e.Waiter.Recorded)] = e
			objects[uint64(e.Object)] = true
		}
	}
	var calls []wakeCall
	last := map[uint32]int{} // by waiting thread, how many wakes come before its last event
	ordinals := map[uint32]uint64{}
	for e, err := range k.rec.Log.Ordered() {
		if err != nil {
			return nil, err
		}
		if waiting[e.Thread] != nil {
			last[e.Thread], ordinals[e.Thread] = len(calls), e.Ordinal
		}
		if e.Kind != eventlog.KindSyscall || e.Object != unix.SYS_FUTEX || len(e.Args) < 2 || !objects[e.Args[0]] {
			continue
		}
		switch futex.Command(e.Args[1]) {
		case futex.Wake, futex.WakeBitset:
			calls = append(calls, wakeCall{wakes: true, woke: e.Result != 0, object: evidence.Addr(e.Args[0]), thread: e.Thread, ordinal: e.Ordinal - 1, returnTo: e.Site})
		case futex.Requeue, futex.CmpRequeue, futex.WakeOp: // they wake other threads as well
			return nil, errors.New("futexes are requeued")
		}
	}
	for thread, e := range waiting {
		at := last[thread]
		if at < len(calls) {
			return nil, errors.New("a futex was woken when it may have been waited for")
		}
		calls = append(calls, wakeCall{object: e.Object, thread: thread, ordinal: ordinals[thread]})
	}
	return calls, nil
}

// inRecorder is where the recording library has a function.
func (w *work) inRecorder(name string) (evidence.Addr, bool) {
	for _, m := range w.Process.Modules {
		if filepath.Base(m.Path) != agent.RecordLibraryName || m.Object == nil {
			continue
		}
		if s, found := m.Object.SymbolNamed(name); found {
			return m.Addr(s.Value), true
		}
	}
	return 0, false
}
