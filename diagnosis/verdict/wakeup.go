package verdict

import (
	"fmt"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/replay/record/eventlog"
)

// wakeCall is a call of a thread to a condition variable or a semaphore.
type wakeCall struct {
	wakes    bool // it signals or posts; else it waits
	all      bool // it wakes all that wait
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
	k := &wakeups{work: w, before: len(w.out.Causes)}
	for i := range w.Waits {
		if _, known := wakeFunctions[w.Waits[i].What]; (known || futexWaits[w.Waits[i].What]) && w.Waits[i].Waiter.Recorded != 0 {
			k.edges = append(k.edges, &w.Waits[i])
		}
	}
	if len(k.edges) == 0 || w.Case.Failure.Kind != evidence.Deadlock || w.ringOfLocks() {
		return nil
	}
	if err := k.seeCalls(); err != nil {
		w.progress.limit(evidence.Limit{Code: evidence.LimitSignallers, Reason: err.Error()})
		return nil
	}
	told := map[evidence.Addr]bool{}
	for _, e := range k.edges {
		if told[e.Object] {
			continue
		}
		told[e.Object] = true
		if m := k.missing(e); m != nil {
			k.try(m)
		}
	}
	k.conditions()
	return w.progress.ctx.Err()
}

// wakeups is what threads of a deadlock wait for, and the calls of a replay to that, in its order.
type wakeups struct {
	*work
	edges []*evidence.WaitEdge
	calls []wakeCall
	// before are the causes of other parts; helped of this part's are those without which a run was seen to go on.
	before, helped int
	// vain are those that an experiment contradicts.
	vain []*missingWakeup
}

// missingWakeup is the cause of one object's waiters.
type missingWakeup struct {
	evidence.Cause
	edge *evidence.WaitEdge
	// calls are those to the object; first and last are the first and the last of the waits that did not end.
	calls       []wakeCall
	first, last int
	// waits are the threads that wait, with their last event before.
	waits map[uint32]uint64
	// lost is the signal that came before any wait; nil: none did.
	lost *wakeCall
}

// ringOfLocks reports whether threads wait for each other's locks, one for its own, or for that of one that has ended. Then
// a worker that idles at a condition variable is no cause, and a change of the order of
// threads may end the deadlock for another reason.
func (w *work) ringOfLocks() bool {
	return slices.ContainsFunc(w.Case.Findings, func(f evidence.Finding) bool {
		return f.Kind.Locks()
	})
}

// missing is the cause of one object's waiters; nil if some call signals it after they waited.
func (k *wakeups) missing(e *evidence.WaitEdge) *missingWakeup {
	waiting := map[uint32]bool{}
	for _, x := range k.edges {
		if x.Object == e.Object {
			waiting[uint32(x.Waiter.Recorded)] = true
		}
	}
	m := &missingWakeup{edge: e, first: -1, last: -1, waits: map[uint32]uint64{}}
	m.calls = slices.DeleteFunc(slices.Clone(k.calls), func(c wakeCall) bool { return c.object != e.Object })
	for i, c := range slices.Backward(m.calls) {
		if c.wakes || !waiting[c.thread] {
			continue
		}
		if _, later := m.waits[c.thread]; !later {
			m.waits[c.thread], m.first, m.last = c.ordinal, i, max(m.last, i)
		}
	}
	if len(m.waits) != len(waiting) || slices.ContainsFunc(m.calls[m.first:], func(c wakeCall) bool { return c.wakes && (c.all || !k.asleep(m)) }) {
		return nil // some signal came after that, and it is not known that it woke another thread
	}
	k.tell(m)
	return m
}

// asleep reports whether the kernel still had all waiting threads of a condition variable asleep when the process was ended: each signal
// of after their waits has ended another one.
func (k *wakeups) asleep(m *missingWakeup) bool {
	for thread := range m.waits {
		if k.rec.Manifest.Outcome.Asleep[thread] == 0 {
			return false
		}
	}
	return m.edge.What == evidence.WaitCondition
}

// tell words the cause.
func (k *wakeups) tell(m *missingWakeup) {
	var wake *wakeCall // the last
	wakeAt, wakes := 0, 0
	for i := range m.calls {
		if !m.calls[i].wakes {
			continue
		}
		wakes++
		wake, wakeAt = &m.calls[i], i
	}
	wait := m.calls[m.first]
	m.Kind, m.Proof, m.Variable = evidence.CauseMissingWakeup, evidence.Replayed, k.waitedName(m.edge)
	m.Site = k.waitedAt(&wait)
	if m.Site == nil {
		m.Site = m.edge.Site
	}
	waiter := k.threadText(wait.thread)
	step := func(text string, site *evidence.Site) {
		m.Story = append(m.Story, evidence.CauseStep{Text: text, Site: site, Proof: evidence.Replayed})
	}
	verb, done := "signals", "signalled"
	switch m.edge.What {
	case evidence.WaitSemaphore:
		verb, done = "posts", "posted"
	case evidence.WaitPrivateFutex:
		verb, done = "wakes", "woken"
	}
	waited := fmt.Sprintf("%s waits for %s", waiter, m.Variable)
	switch {
	case wake == nil:
		m.Summary = fmt.Sprintf("%s waits for %s, and no thread ever %s it", waiter, m.Variable, verb)
		step(waited, m.Site)
		step(fmt.Sprintf("no thread %s it before or after, up to the end of the recording", verb), nil)
	case m.edge.What == evidence.WaitSemaphore:
		m.Summary = fmt.Sprintf("%s waits for %s, which was waited for %s and posted %s; no thread posts it afterwards", waiter, m.Variable, timesText(uint64(len(m.calls)-wakes)), timesText(uint64(wakes)))
		step(fmt.Sprintf("%s posts %s for the last time", k.threadText(wake.thread), m.Variable), k.siteBefore(wake.returnTo))
		step(waited, m.Site)
		step("no thread posts it after that, up to the end of the recording", nil)
	case wakeAt > m.first:
		m.Summary = fmt.Sprintf("%s waits for %s; its last signal, by %s, ended the wait of another thread, and no thread %s it afterwards", waiter, m.Variable, k.threadText(wake.thread), verb)
		step(waited, m.Site)
		step(fmt.Sprintf("%s %s %s", k.threadText(wake.thread), verb, m.Variable), k.siteBefore(wake.returnTo))
		step(fmt.Sprintf("no thread %s it after that, up to the end of the recording", verb), nil)
	default:
		// Where some thread had waited by then, the signal may have woken it.
		kind, again := "", " again"
		if !wake.woke && !slices.ContainsFunc(m.calls[:wakeAt], func(c wakeCall) bool { return !c.wakes }) {
			kind, again, m.lost = "lost wakeup: ", "", wake
		}
		m.Summary = kind + fmt.Sprintf("%s was %s by %s before %s waited for it%s, and no thread %s it afterwards", m.Variable, done, k.threadText(wake.thread), waiter, again, verb)
		step(fmt.Sprintf("%s %s %s", k.threadText(wake.thread), verb, m.Variable), k.siteBefore(wake.returnTo))
		step(waited, m.Site)
		step(fmt.Sprintf("no thread %s it after that, up to the end of the recording", verb), nil)
	}
}

// waitedName is what the program calls that which is waited for.
func (w *work) waitedName(e *evidence.WaitEdge) string {
	if e.Name != "" {
		return e.Name
	}
	lock := waitedLock(e)
	return fmt.Sprintf("the %s at %s", e.What, lockText(&lock))
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

// waitedAt is where the program asked for a wait. Of one that did not end the stack is known.
func (k *wakeups) waitedAt(wait *wakeCall) *evidence.Site {
	for _, e := range k.edges {
		if uint32(e.Waiter.Recorded) == wait.thread && e.Object == wait.object && e.Site != nil {
			return e.Site
		}
	}
	return k.siteBefore(wait.returnTo)
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
