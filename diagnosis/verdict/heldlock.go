package verdict

import (
	"errors"
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/replay"
)

// heldLocks explains threads that wait for a lock which they hold themselves, or whose holder has ended, by the place where
// the holder took it.
func (w *work) heldLocks() error {
	for i := range w.Case.Findings {
		f := &w.Case.Findings[i]
		if f.Kind != evidence.FindingSelfLock && f.Kind != evidence.FindingAbandonedLock || len(f.Wait) == 0 {
			continue
		}
		e := &f.Wait[0]
		if e.Owner == nil || e.Owner.Recorded == 0 {
			continue
		}
		taken, err := w.lockTaken(e.Object, uint32(e.Owner.Recorded))
		switch {
		case w.progress.ctx.Err() != nil:
			return w.progress.ctx.Err()
		case err != nil:
			w.progress.failedPart(fmt.Errorf("where %s was taken is not known: %w", edgeName(e), err))
		case taken != nil:
			w.out.Causes = append(w.out.Causes, w.heldLock(f, taken))
		}
	}
	return nil
}

// edgeName is what the program calls the lock that is waited for.
func edgeName(e *evidence.WaitEdge) string {
	lock := waitedLock(e)
	return lockText(&lock)
}

func (w *work) heldLock(f *evidence.Finding, taken *lockCall) evidence.Cause {
	e := &f.Wait[0]
	holder, name, site := w.threadText(uint32(e.Owner.Recorded)), edgeName(e), taken.site
	took, waits := fmt.Sprintf("%s took %s", holder, name), w.threadText(uint32(e.Waiter.Recorded))
	if site != nil {
		took += " in " + siteText(site)
	}
	out := evidence.Cause{Kind: evidence.CauseDeadlock, Variable: name, Site: site, Proof: evidence.Replayed,
		Story: []evidence.CauseStep{{Text: took, Site: site, Proof: evidence.Replayed}}}
	if f.Kind == evidence.FindingAbandonedLock {
		took += " and ended without giving it back"
		out.Story = append(out.Story, evidence.CauseStep{Text: holder + " ended", Proof: evidence.Replayed})
		waits = ", and " + waits + " waits for it"
	} else {
		waits = ", and waits for it"
	}
	if e.Site != nil {
		waits += " in " + siteText(e.Site)
		out.Story = append(out.Story, evidence.CauseStep{Text: siteText(e.Site) + " waits for it", Site: e.Site, Proof: evidence.FromCore})
	}
	out.Summary = took + waits
	return out
}

// lockCall is a call by which a thread took a lock, in the program's own code. site is nil if that is not known.
type lockCall struct{ site *evidence.Site }

// mostLockCalls bounds the calls that are looked at: each time the stack is walked.
const mostLockCalls = 5000

// The functions that take a lock, their first argument, and give it back; and those that give back
// their second and take it again.
var (
	takeFunctions = []string{"pthread_mutex_lock", "pthread_mutex_trylock", "pthread_mutex_timedlock", "pthread_mutex_clocklock",
		"pthread_rwlock_rdlock", "pthread_rwlock_tryrdlock", "pthread_rwlock_timedrdlock", "pthread_rwlock_clockrdlock",
		"pthread_rwlock_wrlock", "pthread_rwlock_trywrlock", "pthread_rwlock_timedwrlock", "pthread_rwlock_clockwrlock"}
	giveFunctions = []string{"pthread_mutex_unlock", "pthread_rwlock_unlock"}
)

// lockTaken replays the run, and returns the first call by which a thread took a lock that it did not give back; nil if no
// such call was seen.
func (w *work) lockTaken(lock evidence.Addr, thread uint32) (*lockCall, error) {
	s := lockSearch{lock: lock, thread: thread}
	w.progress.say("replay for the calls that take %v", lock)
	opts := replay.FreeRequest{Common: replay.Common{Image: w.Image}}
	for _, x := range []struct {
		names []string
		do    func(*replay.Stopped) error
	}{{takeFunctions, s.takes(image.RDI)}, {giveFunctions, s.gives}, {wakeFunctions[evidence.WaitCondition].wait, s.takes(image.RSI)}} {
		for _, name := range x.names {
			pc, found := w.inRecorder(name)
			if !found {
				return nil, fmt.Errorf("the recording library has no %s", name)
			}
			opts.Breaks = append(opts.Breaks, replay.Break{PC: pc, Do: x.do})
		}
	}
	if err := callsSeen(replay.Run(w.progress.ctx, w.rec, opts)); err != nil {
		return nil, err
	}
	if len(s.held) == 0 {
		return nil, nil
	}
	return &s.held[0], nil
}

// callsSeen reports whether a replay that looked for calls did not see all of them.
func callsSeen(result *replay.Result, err error) error {
	var stuck *replay.StuckError
	switch {
	case result != nil && len(result.Unbroken) > 0:
		return errors.New("some calls cannot be stopped at")
	case result != nil && result.Left != nil:
		return result.Left
	case errors.As(err, &stuck) && stuck.Cause != replay.StuckEvents:
		return nil
	}
	return err
}

// lockSearch follows how a thread takes a lock and gives it back. held are the calls that it did not give back.
type lockSearch struct {
	lock   evidence.Addr
	thread uint32
	calls  int
	held   []lockCall
}

// concerns reports whether a call is one of the thread's, with the lock in an argument.
func (s *lockSearch) concerns(at *replay.Stopped, regs *image.Registers, argument image.Register) (bool, error) {
	if object, _ := regs.Get(argument); at.Moment.Thread != s.thread || evidence.Addr(object) != s.lock {
		return false, nil
	}
	if s.calls++; s.calls > mostLockCalls {
		return false, fmt.Errorf("there are more than %d calls", mostLockCalls)
	}
	return true, nil
}

// takes sees a function entered that takes the lock, and again when it has returned.
func (s *lockSearch) takes(argument image.Register) func(*replay.Stopped) error {
	return func(at *replay.Stopped) error {
		regs, err := at.Registers()
		if err != nil {
			return err
		}
		if concerns, err := s.concerns(at, &regs, argument); !concerns {
			return err
		}
		waits := argument != image.RDI // for a condition, with the lock given back
		if waits {
			s.release()
		}
		back, err := image.Uint64(at, regs.SP())
		if err != nil {
			return err
		}
		sp := regs.SP() + wordSize
		return at.AddBreak(replay.Break{PC: evidence.Addr(back), Do: func(at *replay.Stopped) error {
			regs, err := at.Registers()
			if err != nil || at.Moment.Thread != s.thread || regs.SP() != sp {
				return err
			}
			if result, _ := regs.Get(image.RAX); waits || uint32(result) == 0 {
				p, err := at.Process()
				if err != nil {
					return err
				}
				s.held = append(s.held, lockCall{returnedTo(p)})
			}
			return replay.ErrBreakOver
		}})
	}
}

func (s *lockSearch) gives(at *replay.Stopped) error {
	regs, err := at.Registers()
	if err != nil {
		return err
	}
	if concerns, err := s.concerns(at, &regs, image.RDI); !concerns {
		return err
	}
	s.release()
	return nil
}

func (s *lockSearch) release() { s.held = slices.Delete(s.held, max(len(s.held)-1, 0), len(s.held)) }

// returnedTo is the call of the program's own code from which the failing thread of a stopped process has just returned, there
// or to a library that the code called; nil if it is not known.
func returnedTo(p *image.Process) *evidence.Site {
	thread := p.FailingThread()
	if thread == nil {
		return nil
	}
	frames := unwind.New(p).Walk(thread, mostWalkedFrames).Frames
	for i := range frames {
		pc := frames[i].LookupPC()
		if i == 0 {
			pc-- // in the call
		}
		if s := ownSite(p, pc); s.Line != 0 && !image.LibraryCode(s) {
			return s
		}
	}
	return nil
}
