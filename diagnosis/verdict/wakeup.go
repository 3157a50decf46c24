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

// wakeCall is a call of a thread to a condition variable or a semaphore.
type wakeCall struct {
	wakes    bool // it signals or posts; else it waits
	woke     bool // a thread waited: of a futex the kernel says so, of the others it is not known
	object   evidence.Addr
	thread   uint32
	ordinal  uint64        // the thread's last event before the call
	returnTo evidence.Addr // the caller
}

// wakeFunctions are what may let a waiter continue, and what waits, by what is waited for.
var wakeFunctions = map[evidence.WaitKind]struct{ wake, wait []string }{
	evidence.WaitCondition: {[]string{"pthread_cond_signal", "pthread_cond_broadcast"}, []string{"pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait"}},
	evidence.WaitSemaphore: {[]string{"sem_post"}, []string{"sem_wait", "sem_timedwait", "sem_clockwait", "sem_trywait"}},
}

// futexWaits are waits for a futex that the log has all wakes of. A std::future, std::atomic or Rust's
// mutex makes no call where it knows of no waiter.
var futexWaits = map[evidence.WaitKind]bool{evidence.WaitPrivateFutex: true, evidence.WaitRustCondition: true}

// mostWakeCalls bounds the calls that are looked at: each costs a stop. With more nothing is
// said, as the last ones count.
const mostWakeCalls = 20_000

// wakeups explains threads of a deadlock that wait for a condition variable or a semaphore
// which no thread signals or posts any more. One replay has all calls to those: it runs every
// thread as far as it can, so a thread that is not seen to signal does not.
func (w *work) wakeups() error {
	var edges []*evidence.WaitEdge
	for i := range w.Waits {
		if _, known := wakeFunctions[w.Waits[i].What]; (known || futexWaits[w.Waits[i].What]) && w.Waits[i].Waiter.Recorded != 0 {
			edges = append(edges, &w.Waits[i])
		}
	}
	if len(edges) == 0 || w.Case.Failure.Kind != evidence.Deadlock || w.ringOfLocks() {
		return nil
	}
	calls, err := w.wakeCalls(edges)
	if err != nil {
		w.limit(evidence.Limit{Code: evidence.LimitSignallers, Reason: err.Error()})
		return nil
	}
	told := map[evidence.Addr]bool{}
	for _, e := range edges {
		if !told[e.Object] {
			told[e.Object] = true
			w.lostWakeup(e, edges, calls)
		}
	}
	return w.ctx.Err()
}

// ringOfLocks reports whether threads wait for each other's locks, one for its own, or for that of one that has ended. Then
// a worker that idles at a condition variable is no cause, and a change of the order of
// threads may end the deadlock for another reason.
func (w *work) ringOfLocks() bool {
	return slices.ContainsFunc(w.Case.Findings, func(f evidence.Finding) bool {
		return f.Kind.Locks()
	})
}

// wakeCalls are all calls of a replay to what is waited for, in its order.
func (w *work) wakeCalls(edges []*evidence.WaitEdge) ([]wakeCall, error) {
	w.say("replay for the calls to what threads wait for")
	objects := map[evidence.Addr]bool{}
	opts := replay.FreeRequest{Common: replay.Common{Image: w.Image}}
	var calls []wakeCall
	kinds, futexes := map[evidence.WaitKind]bool{}, false
	for _, e := range edges {
		objects[e.Object] = true
		if futexWaits[e.What] {
			futexes = true
		} else {
			kinds[e.What] = true
		}
	}
	see := func(wakes bool) func(*replay.Stopped) error {
		return func(s *replay.Stopped) error {
			regs, err := s.Registers()
			if err != nil {
				return err
			}
			object, _ := regs.Get(image.RDI)
			if !objects[evidence.Addr(object)] {
				return nil
			}
			if len(calls) == mostWakeCalls {
				return fmt.Errorf("there are more than %d calls", mostWakeCalls)
			}
			c := wakeCall{wakes: wakes, object: evidence.Addr(object), thread: s.Moment.Thread, ordinal: s.Moment.Ordinal}
			if back, err := image.Uint64(s, regs.SP()); err == nil {
				c.returnTo = evidence.Addr(back)
			}
			calls = append(calls, c)
			return nil
		}
	}
	for kind := range kinds {
		for _, wakes := range []bool{true, false} {
			names := wakeFunctions[kind].wait
			if wakes {
				names = wakeFunctions[kind].wake
			}
			for _, name := range names {
				pc, found := w.inRecorder(name)
				if !found {
					return nil, fmt.Errorf("the recording library has no %s", name)
				}
				opts.Breaks = append(opts.Breaks, replay.Break{PC: pc, Do: see(wakes)})
			}
		}
	}
	if futexes {
		list, err := w.futexCalls(edges)
		if err != nil {
			return nil, err
		}
		calls = append(calls, list...)
	}
	if len(opts.Breaks) == 0 {
		return calls, nil
	}
	return calls, callsSeen(replay.Run(w.ctx, w.rec, opts))
}

// futexCalls are the wakes of futexes, which the log has, and the waits that have not ended,
// which begin after their threads' last events.
func (w *work) futexCalls(edges []*evidence.WaitEdge) ([]wakeCall, error) {
	waiting := map[uint32]*evidence.WaitEdge{}
	objects := map[uint64]bool{}
	for _, e := range edges {
		if futexWaits[e.What] {
			waiting[uint32(e.Waiter.Recorded)] = e
			objects[uint64(e.Object)] = true
		}
	}
	var calls []wakeCall
	last := map[uint32]int{} // by waiting thread, how many wakes come before its last event
	ordinals := map[uint32]uint64{}
	for e, err := range w.rec.Log.Ordered() {
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

// lostWakeup is the cause of one object's waiters, if no call signals it after they waited.
func (w *work) lostWakeup(e *evidence.WaitEdge, edges []*evidence.WaitEdge, calls []wakeCall) {
	waiting := map[uint32]bool{}
	for _, x := range edges {
		if x.Object == e.Object {
			waiting[uint32(x.Waiter.Recorded)] = true
		}
	}
	calls = slices.DeleteFunc(slices.Clone(calls), func(c wakeCall) bool { return c.object != e.Object })
	first, last := -1, -1 // of the last waits of those that wait
	seen := map[uint32]bool{}
	for i, c := range slices.Backward(calls) {
		if !c.wakes && waiting[c.thread] && !seen[c.thread] {
			seen[c.thread], first = true, i
			last = max(last, i)
		}
	}
	if len(seen) != len(waiting) || slices.ContainsFunc(calls[first:], func(c wakeCall) bool { return c.wakes }) {
		return // some signal came after that, and woke another thread
	}
	var wake *wakeCall // the last
	wakeAt, wakes, waits := 0, 0, 0
	for i := range calls {
		if !calls[i].wakes {
			waits++
			continue
		}
		wakes++
		if i < first {
			wake, wakeAt = &calls[i], i
		}
	}
	wait := calls[first]
	out := evidence.Cause{Kind: evidence.CauseMissingWakeup, Proof: evidence.Replayed, Variable: w.waitedName(e)}
	waitSite := w.siteBefore(wait.returnTo)
	if waitSite == nil {
		waitSite = e.Site
	}
	waiter := w.threadText(wait.thread)
	step := func(text string, site *evidence.Site) {
		out.Story = append(out.Story, evidence.CauseStep{Text: text, Site: site, Proof: evidence.Replayed})
	}
	verb, done := "signals", "signalled"
	switch e.What {
	case evidence.WaitSemaphore:
		verb, done = "posts", "posted"
	case evidence.WaitPrivateFutex:
		verb, done = "wakes", "woken"
	}
	waited := fmt.Sprintf("%s waits for %s", waiter, out.Variable)
	switch {
	case wake == nil:
		out.Site = waitSite
		out.Summary = fmt.Sprintf("%s waits for %s, and no thread ever %s it", waiter, out.Variable, verb)
		step(waited, waitSite)
		step(fmt.Sprintf("no thread %s it before or after, up to the end of the recording", verb), nil)
	case e.What == evidence.WaitSemaphore:
		out.Site = waitSite
		out.Summary = fmt.Sprintf("%s waits for %s, which was waited for %s and posted %s; no thread posts it afterwards", waiter, out.Variable, timesText(uint64(waits)), timesText(uint64(wakes)))
		step(fmt.Sprintf("%s posts %s for the last time", w.threadText(wake.thread), out.Variable), w.siteBefore(wake.returnTo))
		step(waited, waitSite)
		step("no thread posts it after that, up to the end of the recording", nil)
	default:
		out.Site = waitSite
		// Where some thread had waited by then, the signal may have woken it.
		lost := !wake.woke && !slices.ContainsFunc(calls[:wakeAt], func(c wakeCall) bool { return !c.wakes })
		kind, again := "lost wakeup: ", ""
		if !lost {
			kind, again = "", " again"
		}
		out.Summary = kind + fmt.Sprintf("%s was %s by %s before %s waited for it%s, and no thread %s it afterwards", out.Variable, done, w.threadText(wake.thread), waiter, again, verb)
		step(fmt.Sprintf("%s %s %s", w.threadText(wake.thread), verb, out.Variable), w.siteBefore(wake.returnTo))
		step(waited, waitSite)
		step(fmt.Sprintf("no thread %s it after that, up to the end of the recording", verb), nil)
		if lost && e.What == evidence.WaitCondition {
			w.proveWakeup(&out, wake, &calls[last])
		}
	}
	w.out.Causes = append(w.out.Causes, out)
}

// proveWakeup holds back the thread that signalled until the other one waits. That the
// failure is gone then proves the cause only if the wait was seen to end: the new order
// may have helped for another reason.
func (w *work) proveWakeup(out *evidence.Cause, wake, wait *wakeCall) {
	schedule, err := w.rec.Log.Schedule()
	if len(schedule) == 0 || wake.thread == wait.thread {
		if err != nil {
			w.limit(evidence.Limit{Code: evidence.LimitRecordedOrder, Reason: err.Error()})
		}
		return
	}
	again := w.unchanged(w.rec)
	returned := false
	see := func(s *replay.Stopped) error {
		returned = returned || s.Moment.Thread == wait.thread
		return nil
	}
	e := w.experiment(fmt.Sprintf("%s kept back before that until %s waits", w.threadText(wake.thread), w.threadText(wait.thread)),
		w.rec, replay.FreeRequest{Breaks: []replay.Break{{PC: wait.returnTo, Do: see}}, Schedule: replay.Reorder(schedule, replay.Hold{
			Thread: wake.thread, Ordinal: wake.ordinal, Until: replay.EventOf{Thread: wait.thread, Ordinal: replay.AsFarAsItCan}})}, false)
	if e.Agrees() && !returned {
		e.Undecided = "the wait was not seen to end"
	}
	claim := evidence.Event{Thing: out.Variable, At: evidence.Moment{Thread: wake.thread, Ordinal: wake.ordinal, PC: wake.returnTo, Count: 1}}
	e.Change = &claim
	out.Experiments = append(out.Experiments, again, e)
	w.proveBy(out, claim)
}

// waitedName is what the program calls that which is waited for.
func (w *work) waitedName(e *evidence.WaitEdge) string {
	if e.Name != "" {
		return e.Name
	}
	return fmt.Sprintf("the %s at %v", e.What, e.Object)
}

// siteBefore is the call before a return address; nil if it is not known.
func (w *work) siteBefore(back evidence.Addr) *evidence.Site {
	calls := w.Process.Symbolize(back, image.ReturnAddress)
	for i := range calls {
		if site := calls[i].Site; site.Function != "" && !image.LibraryCode(&site) {
			return &site
		}
	}
	return nil
}

// threadText names a thread of the recording, which may have ended, by the function that it
// was started with.
func (w *work) threadText(index uint32) string {
	if index == 1 {
		return "the main thread"
	}
	for t := uint32(1); ; t++ {
		any := false
		for e, err := range w.rec.Log.Events(t) {
			if err != nil {
				break
			}
			any = true
			if e.Kind == eventlog.KindCreate && e.Object == uint64(index) && len(e.Args) > 2 {
				if s, found := w.Process.SymbolAt(evidence.Addr(e.Args[2])); found {
					return fmt.Sprintf("thread %d %q", index, evidence.ShortName(s.Name))
				}
			}
		}
		if !any {
			return fmt.Sprintf("thread %d", index)
		}
	}
}
