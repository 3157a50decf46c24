package failure

import (
	"encoding/binary"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"

	"golang.org/x/sys/unix"
)

// waitingIn makes a thread that sleeps on a word, called from a function of
// libc and one of the program.
func waitingIn(tid int, word evidence.Addr, expected uint64, function string) (image.Thread, unwind.Stack) {
	t := image.Thread{Ref: evidence.ThreadRef{Number: tid - 99, TID: tid}}
	t.Registers.OrigRAX = unix.SYS_FUTEX
	t.Registers.Set(image.RDI, uint64(word))
	t.Registers.Set(image.RSI, 0x80)
	t.Registers.Set(image.RDX, expected)
	var stack unwind.Stack
	for _, site := range []evidence.Site{
		{Module: "/lib/libc.so.6", Function: "__futex_wait"},
		{Module: "/lib/libc.so.6", Function: function},
		{Module: "/bin/program", Function: "take", File: "a.c", Line: 7},
	} {
		stack.Frames = append(stack.Frames, unwind.Frame{Kind: evidence.Physical, Calls: []image.SymbolizedCall{{Site: site}}})
	}
	return t, stack
}

func mutexHeldBy(tid uint32) []byte {
	b := make([]byte, 40)
	binary.LittleEndian.PutUint32(b, 2)
	binary.LittleEndian.PutUint32(b[8:], tid)
	binary.LittleEndian.PutUint32(b[12:], 1)
	return b
}

func TestDeadlockCycle(t *testing.T) {
	f := newFake(nil)
	f.symbols = []image.Symbol{{Name: "a", Addr: dataAt, Size: 40}, {Name: "b", Addr: dataAt + 40, Size: 40}}
	f.put(dataAt, mutexHeldBy(100))
	f.put(dataAt+40, mutexHeldBy(101))
	w := &waiter{target: f}
	for i, word := range []evidence.Addr{dataAt + 40, dataAt} {
		thread, stack := waitingIn(100+i, word, 2, "___pthread_mutex_lock")
		w.threads, w.stacks = append(w.threads, thread), append(w.stacks, stack)
	}
	idle, stack := waitingIn(102, dataAt+80, 0, "___pthread_cond_wait")
	w.threads, w.stacks = append(w.threads, idle), append(w.stacks, stack)

	waits := w.waits()
	if got, want := w.text(waits[0], false).For(1), "waits for mutex 0x555555558028 `b` held by thread 2"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if waits[2] == nil || waits[2].owner != 0 || waits[2].what != "condition variable" {
		t.Errorf("condition wait is %+v", waits[2])
	}
	found := w.cycles(waits)
	if len(found) != 1 || found[0].Kind != evidence.FindingDeadlock || len(found[0].Wait) != 2 {
		t.Fatalf("findings %+v", found)
	}
	if err := found[0].Check(); err != nil {
		t.Error(err)
	}
	if site := found[0].Site; site == nil || site.Line != 7 {
		t.Errorf("site %+v", site)
	}
}

// A thread that waits for one of a cycle is not part of it.
func TestWaiterOutsideCycle(t *testing.T) {
	f := newFake(nil)
	f.put(dataAt, mutexHeldBy(101))
	f.put(dataAt+40, mutexHeldBy(102))
	w := &waiter{target: f}
	for i, word := range []evidence.Addr{dataAt, dataAt + 40, dataAt} {
		thread, stack := waitingIn(100+i, word, 2, "pthread_mutex_lock")
		w.threads, w.stacks = append(w.threads, thread), append(w.stacks, stack)
	}
	found := w.cycles(w.waits())
	if len(found) != 1 || len(found[0].Wait) != 2 || found[0].Wait[0].Waiter.TID != 101 || found[0].Wait[1].Waiter.TID != 102 {
		t.Errorf("findings %+v", found)
	}
}

func TestNoCycle(t *testing.T) {
	tests := []struct {
		name  string
		mutex []byte
		tid   uint32
	}{
		{"holder runs", mutexHeldBy(101), 0},
		{"free", make([]byte, 40), 0},
		{"holder ended", mutexHeldBy(999), 0},
		{"no mutex", append(mutexHeldBy(100)[:16], 0xff, 0xff, 0xff, 0xff), 0},
	}
	for _, test := range tests {
		f := newFake(nil)
		f.put(dataAt, test.mutex)
		thread, stack := waitingIn(100, dataAt, 2, "pthread_mutex_lock")
		runs := image.Thread{Ref: evidence.ThreadRef{Number: 2, TID: 101}}
		runs.Registers.OrigRAX = -1
		w := &waiter{target: f, threads: []image.Thread{thread, runs}, stacks: []unwind.Stack{stack, {}}}
		if found := w.cycles(w.waits()); len(found) != 0 {
			t.Errorf("%s: %+v", test.name, found)
		}
	}
}

func TestSelfDeadlockAndJoin(t *testing.T) {
	f := newFake(nil)
	f.put(dataAt, mutexHeldBy(100))
	thread, stack := waitingIn(100, dataAt, 2, "pthread_mutex_lock")
	w := &waiter{target: f, threads: []image.Thread{thread}, stacks: []unwind.Stack{stack}}
	found := w.cycles(w.waits())
	if len(found) != 1 || found[0].Kind != evidence.FindingSelfLock {
		t.Fatalf("self lock: %+v", found)
	}
	if found[0].Check() != nil {
		t.Error(found[0].Check())
	}

	f.put64(dataAt+0x80, 101)
	joiner, stack2 := waitingIn(100, dataAt+0x80, 101, "__pthread_clockjoin_ex")
	other, stack3 := waitingIn(101, dataAt, 2, "pthread_mutex_lock")
	w = &waiter{target: f, threads: []image.Thread{joiner, other}, stacks: []unwind.Stack{stack2, stack3}}
	found = w.cycles(w.waits())
	if len(found) != 1 || len(found[0].Wait) != 2 || found[0].Wait[0].What != "thread exit" {
		t.Errorf("join of the holder: %+v", found)
	}
}

// A lock whose holder has ended is never given back. A lock that processes share may be held by a thread of another one.
func TestAbandonedLock(t *testing.T) {
	shared := mutexHeldBy(999)
	shared[16] = mutexShared
	for _, x := range []struct {
		name    string
		mutex   []byte
		ended   bool
		id      uint32         // that the C library has for the thread
		proof   evidence.Proof // empty: no finding
		summary string
	}{
		{"ended", mutexHeldBy(999), true, 0, evidence.FromCore, "thread 1 waits for mutex 0x555555558000 held by thread 7, which has ended"},
		{"not known", mutexHeldBy(999), false, 100, evidence.Inferred, "thread 1 waits for mutex 0x555555558000 held by thread id 999, which is no thread of this process"},
		{"another namespace", mutexHeldBy(999), false, 7, "", ""},
		{"shared", shared, false, 100, "", ""},
		{"held", mutexHeldBy(101), true, 100, "", ""},
	} {
		f := newFake(nil)
		f.put(dataAt, x.mutex)
		thread, stack := waitingIn(100, dataAt, 2, "pthread_mutex_lock")
		thread.Ref.Number = 1
		thread.Registers.FSBase = dataAt + 0x100
		id := make([]byte, 8)
		binary.LittleEndian.PutUint32(id, x.id)
		f.put(dataAt+0x100+ownID, id)
		runs := image.Thread{Ref: evidence.ThreadRef{Number: 2, TID: 101}}
		runs.Registers.OrigRAX = -1
		w := &waiter{target: f, threads: []image.Thread{thread, runs}, stacks: []unwind.Stack{stack, {}}}
		if x.ended {
			w.opts.Ended = func(tid uint64) (evidence.ThreadRef, bool) { return evidence.ThreadRef{Number: 7, TID: int(tid)}, true }
		}
		found := (&Waits{waiter: *w, list: w.waits()}).Abandoned()
		switch {
		case x.proof == "" && len(found) == 0:
		case len(found) != 1 || found[0].Proof != x.proof || found[0].Summary != x.summary || (found[0].Wait[0].Owner != nil) != x.ended:
			t.Errorf("%s: %+v", x.name, found)
		case found[0].Check() != nil:
			t.Error(found[0].Check())
		}
	}
}

func TestRwlock(t *testing.T) {
	for _, word := range []evidence.Addr{dataAt + rwlockPhaseFutex, dataAt + rwlockWritersFutex} {
		f := newFake(nil)
		lock := make([]byte, 56)
		binary.LittleEndian.PutUint32(lock[rwlockWriter:], 100)
		f.put(dataAt, lock)
		thread, stack := waitingIn(100, word, 1, "pthread_rwlock_wrlock")
		w := &waiter{target: f, threads: []image.Thread{thread}, stacks: []unwind.Stack{stack}}
		wt := w.waits()[0]
		if wt.object != dataAt || wt.owner != 100 {
			t.Errorf("futex %v: lock %v, owner %d", word, wt.object, wt.owner)
		}
	}
}

// A writer waits for all readers of a lock. One that runs is no deadlock, one that waits for the
// writer is.
func TestReaders(t *testing.T) {
	f := newFake(nil)
	lock := make([]byte, 56)
	binary.LittleEndian.PutUint32(lock, 2<<readersShift)
	f.put(dataAt, lock)
	f.put(dataAt+0x80, mutexHeldBy(100))
	writer, stack := waitingIn(100, dataAt+rwlockPhaseFutex, 1, "pthread_rwlock_wrlock")
	reader, stack2 := waitingIn(102, dataAt+0x80, 2, "pthread_mutex_lock")
	runs := image.Thread{Ref: evidence.ThreadRef{Number: 2, TID: 101}}
	runs.Registers.OrigRAX = -1
	w := &waiter{target: f, threads: []image.Thread{writer, runs, reader}, stacks: []unwind.Stack{stack, {}, stack2},
		opts: WaitOptions{Readers: func(_ evidence.Addr, count uint32) []uint64 {
			if count != 2 {
				t.Errorf("%d readers", count)
			}
			return []uint64{101, 102}
		}}}
	waits := w.waits()
	if got, want := w.text(waits[0], false).For(1), "waits for rwlock 0x555555558000 held for reading by thread 2 and thread 3"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	found := w.cycles(waits)
	if len(found) != 1 || found[0].Proof != evidence.Inferred || len(found[0].Wait) != 2 || found[0].Wait[0].Owner.TID != 102 || found[0].Wait[1].Owner.TID != 100 {
		t.Fatalf("findings %+v", found)
	}
	w.threads[2].Registers.OrigRAX = -1
	if found := w.cycles(w.waits()); len(found) != 0 {
		t.Errorf("with readers that run: %+v", found)
	}
}

// Of the object that a thread sleeps on, only certain facts are reported.
func TestNotes(t *testing.T) {
	word := func(at int, v uint32) []byte {
		b := make([]byte, 56)
		binary.LittleEndian.PutUint32(b[at:], v)
		return b
	}
	robust := word(0, 1<<31|1<<30|101)
	kind := mutexHeldBy(101)
	binary.LittleEndian.PutUint32(kind[16:], maxMutexKind+1)
	tests := []struct {
		name, function string
		object         []byte
		futex          evidence.Addr
		note           string
		owner          uint64
	}{
		{"held", "pthread_mutex_lock", mutexHeldBy(101), 0, "", 101},
		{"free", "pthread_mutex_lock", make([]byte, 40), 0, "which is free at this moment", 0},
		{"unlocked while it is read", "pthread_mutex_lock", mutexHeldBy(101)[4:], 0, "which is free at this moment", 0},
		{"owner in the word", "pthread_mutex_lock", robust, 0, "", 101},
		{"owner ended", "pthread_mutex_lock", mutexHeldBy(999), 0, "which is no thread of this process", 999},
		{"no mutex", "pthread_mutex_lock", kind, 0, "which does not look like a mutex of glibc", 0},
		{"read lock", "pthread_rwlock_wrlock", word(0, 8), 8, "which readers hold; a lock does not record them", 0},
		{"no readers", "pthread_rwlock_wrlock", word(0, 2), 8, "whose owner is not recorded", 0},
		{"thread runs", "pthread_join", word(0, 101), 0, "", 101},
		{"thread ended", "pthread_join", word(0, 0), 0, "which has ended at this moment", 0},
		{"another thread's", "pthread_join", word(0, 102), 0, "whose descriptor changed meanwhile", 0},
	}
	for _, test := range tests {
		f := newFake(nil)
		f.put(dataAt, test.object)
		thread, stack := waitingIn(100, dataAt+test.futex, 101, test.function)
		other := image.Thread{Ref: evidence.ThreadRef{Number: 2, TID: 101}}
		w := &waiter{target: f, threads: []image.Thread{thread, other}, stacks: []unwind.Stack{stack, {}}}
		if wt := w.waitOf(0); wt.note != test.note || wt.owner != test.owner {
			t.Errorf("%s: owner %d, %q; want %d, %q", test.name, wt.owner, wt.note, test.owner, test.note)
		}
	}
}

// In a process that is recorded, threads sleep in the recording library, on other words than
// glibc's.
func TestWaitInEngine(t *testing.T) {
	object := make([]byte, 56)
	binary.LittleEndian.PutUint32(object[rwlockWriter:], 101)
	for function, test := range map[string]struct {
		futex evidence.Addr
		what  evidence.WaitKind
		owner uint64
	}{
		"dg_op_rwlock":     {0, "rwlock", 101},
		"dg_op_cond_wait":  {CondSequence, "condition variable", 0},
		"dg_op_sem":        {0, "semaphore", 0},
		"dg_op_mutex_lock": {0, "mutex", 0},
	} {
		f := newFake(nil)
		f.put(dataAt, object)
		thread, stack := waitingIn(100, dataAt+test.futex, 2, function)
		other := image.Thread{Ref: evidence.ThreadRef{Number: 2, TID: 101}}
		w := &waiter{target: f, threads: []image.Thread{thread, other}, stacks: []unwind.Stack{stack, {}}}
		if wt := w.waitOf(0); wt.what != test.what || wt.object != dataAt || wt.owner != test.owner {
			t.Errorf("%s: %s %v, owner %d", function, wt.what, wt.object, wt.owner)
		}
	}
}

// A wait for a limited time ends by itself: a cycle with one is inferred.
func TestTimedCycle(t *testing.T) {
	f := newFake(nil)
	f.put(dataAt, mutexHeldBy(100))
	thread, stack := waitingIn(100, dataAt, 2, "pthread_mutex_timedlock")
	for timeout, want := range map[uint64]evidence.Proof{0: evidence.FromCore, dataAt: evidence.Inferred} {
		thread.Registers.Set(image.R10, timeout)
		w := &waiter{target: f, threads: []image.Thread{thread}, stacks: []unwind.Stack{stack}}
		found := w.cycles(w.waits())
		if len(found) != 1 || found[0].Proof != want {
			t.Errorf("timeout at %#x: %+v, want %s", timeout, found, want)
		}
	}
}

func TestUnknownFutexRegisters(t *testing.T) {
	for _, lost := range []image.Register{image.RDI, image.RSI} {
		thread, _ := waitingIn(100, dataAt, 2, "pthread_mutex_lock")
		thread.Registers.Forget(lost)
		if _, _, _, ok := futexCall(&thread); ok {
			t.Errorf("a wait was found without %v", lost)
		}
	}
}

// A thread that sleeps in the recording library until it is its turn waits for nothing that is
// known, though the function that it is in does wait.
func TestTurnIsNoWait(t *testing.T) {
	for _, function := range []string{"pthread_mutex_lock", "__pthread_clockjoin_ex", "pthread_cond_wait"} {
		f := newFake(nil)
		f.put(dataAt, []byte{2, 0, 0, 0})
		thread, stack := waitingIn(100, dataAt, 2, function)
		for turn, want := range map[evidence.Addr]bool{dataAt: false, dataAt + 8: true} {
			opts := WaitOptions{Turn: func(word evidence.Addr) bool { return word == turn }}
			w := &waiter{target: f, threads: []image.Thread{thread}, stacks: []unwind.Stack{stack}, opts: opts}
			if got := w.waitOf(0); (got != nil) != want {
				t.Errorf("%s, turn %v: %+v", function, turn, got)
			}
		}
	}
}

// A word that cannot be read does not say that the thread has ended.
func TestUnreadableEnd(t *testing.T) {
	w := &waiter{target: newFake(nil), opts: WaitOptions{EndOf: func(evidence.Addr) int { return 2 }}}
	out := &wait{what: evidence.WaitThreadExit, object: 0x10}
	if w.joinInEngine(out); !strings.HasPrefix(out.note, "which cannot be read: ") {
		t.Errorf("%+v", out)
	}
}

// A function of the program ends the search for the function that waits.
func TestWaitKind(t *testing.T) {
	tests := []struct {
		functions []string
		want      evidence.WaitKind
	}{
		{[]string{"__futex_wait", "pthread_mutex_lock"}, "mutex"},
		{[]string{"futex_lock_pthread_mutex_", "pthread_cond_wait"}, "condition variable"},
		{[]string{"syscall", "main:take", "pthread_mutex_lock"}, "futex"},
	}
	for _, test := range tests {
		var sites []evidence.Site
		for _, name := range test.functions {
			site := evidence.Site{Module: "/lib/libc.so.6", Function: name}
			if rest, own := strings.CutPrefix(name, "main:"); own {
				site = evidence.Site{Module: "/bin/program", Function: rest, File: "a.c"}
			}
			sites = append(sites, site)
		}
		if got := waitKind(sites); got != test.want {
			t.Errorf("%q: %s, want %s", test.functions, got, test.want)
		}
	}
}

func TestWaitText(t *testing.T) {
	w := &waiter{target: newFake(nil), threads: []image.Thread{{Ref: evidence.ThreadRef{Number: 2, TID: 101}}}}
	for want, wt := range map[string]*wait{
		"waits for the end of thread 2":                 {what: "thread exit", owner: 101},
		"waits for thread exit 0x0 held by thread id 7": {what: "thread exit", owner: 7},
		"waits for thread exit 0x0":                     {what: "thread exit"},
		"waits for the end of the recording's thread 5": {what: "thread exit", joined: 5},
	} {
		if got := w.text(wt, false).For(1); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestConditionVariable(t *testing.T) {
	const word = 0x5028
	frames := make([]unwind.Frame, 3)
	if got := conditionVariable(frames, word); got != word {
		t.Errorf("without registers %v, want the word itself", got)
	}
	frames[1].Registers.Set(image.RBX, word)
	frames[1].Registers.Set(image.R12, word-48) // too far away
	frames[2].Registers.Set(image.RBX, word-36) // not aligned
	frames[2].Registers.Set(image.R13, word-40)
	if got := conditionVariable(frames, word); got != word-40 {
		t.Errorf("got %v, want %v", got, evidence.Addr(word-40))
	}
}

// blockedBy makes a process whose first thread joins its second, and whose second waits in a
// function.
func blockedBy(function string, change func(joined, waits *image.Thread, f *fake)) *Waits {
	f := newFake(nil)
	f.symbols = []image.Symbol{{Name: "news", Addr: dataAt, Size: 48}}
	f.put(dataAt, make([]byte, 56))
	f.put(dataAt+64, []byte{101, 0, 0, 0})
	main, mainStack := waitingIn(100, dataAt+64, 101, "__pthread_clockjoin_ex")
	other, otherStack := waitingIn(101, dataAt+CondSequence, 0, function)
	otherStack.Frames[2].Calls[0].Site.Function = "serve"
	if change != nil {
		change(&main, &other, f)
	}
	w := waiter{target: f, threads: []image.Thread{main, other}, stacks: []unwind.Stack{mainStack, otherStack}}
	return &Waits{waiter: w, list: w.waits()}
}

// All threads wait, and none is left to signal: a deadlock without a cycle of owners.
func TestBlocked(t *testing.T) {
	const text = "thread 1 waits for the end of thread 2, thread 2 waits for condition variable `news`; no thread is left to end that"
	for stuck, proof := range map[bool]evidence.Proof{false: evidence.Inferred, true: evidence.FromCore} {
		b := blockedBy("dg_op_cond_wait", nil).Blocked(stuck)
		if b == nil || b.Text != text || b.Thread.Number != 2 || b.Site == nil || b.Site.Function != "serve" || b.Proof != proof {
			t.Errorf("stuck %v: %+v", stuck, b)
		}
		f := evidence.Failure{Kind: evidence.NoFailure}
		blocked(&f, b)
		if want := "deadlock in serve: " + text; f.Kind != evidence.Deadlock || sentence(f, Names{Threads: 2}) != want {
			t.Errorf("%s, kind %s", sentence(f, Names{Threads: 2}), f.Kind)
		}
		crash := evidence.Failure{Kind: evidence.NullPointer}
		if blocked(&crash, b); crash.Kind != evidence.NullPointer {
			t.Errorf("a crash became a %s", crash.Kind)
		}
	}
}

// A wait that may end by itself, or without an action of a thread, is no deadlock. If it is known
// that no thread can continue, only a wait for a limited time rules out a deadlock.
func TestNotBlocked(t *testing.T) {
	for what, x := range map[string]struct {
		function string
		change   func(joined, waits *image.Thread, f *fake)
		stuck    bool // it is blocked if that is known
	}{
		"a semaphore":         {function: "dg_op_sem", stuck: true},
		"a bare futex":        {function: "read", stuck: true},
		"a limited time":      {"dg_op_cond_wait", func(_, waits *image.Thread, _ *fake) { waits.Registers.Set(image.R10, dataAt) }, false},
		"a running thread":    {"dg_op_cond_wait", func(_, waits *image.Thread, _ *fake) { waits.Registers.OrigRAX = unix.SYS_READ }, false},
		"a thread that ended": {"dg_op_cond_wait", func(_, _ *image.Thread, f *fake) { f.put(dataAt+64, make([]byte, 4)) }, true},
	} {
		if b := blockedBy(x.function, x.change).Blocked(false); b != nil {
			t.Errorf("%s: %s", what, b.Text)
		}
		if b := blockedBy(x.function, x.change).Blocked(true); (b != nil) != x.stuck {
			t.Errorf("%s, and no thread continues: %+v", what, b)
		}
	}
	if b := (&Waits{}).Blocked(true); b != nil {
		t.Errorf("of no thread: %+v", b)
	}
}

// If one thread runs at a time, threads sleep on words of the recording library. The library notes
// the objects that they wait for.
func TestNotedWaits(t *testing.T) {
	w := blockedBy("dg_op_cond_wait", nil).waiter
	w.threads[1].Registers.Set(image.RDI, dataAt+100)
	w.threads[0].Registers.OrigRAX = unix.SYS_GETPID
	w.opts = WaitOptions{Words: []evidence.Addr{0, dataAt + CondSequence}, NameOf: func(evidence.Addr) string { return "main's news" }}
	if wt := w.waitOf(1); wt == nil || wt.object != dataAt || wt.name != "news" {
		t.Errorf("%+v", wt)
	}
	w.opts.Words[1] = dataAt + 8 + CondSequence + 1000
	if wt := w.waitOf(1); wt == nil || wt.name != "main's news" {
		t.Errorf("of no global: %+v", wt)
	}
	if wt := w.waitOf(0); wt != nil {
		t.Errorf("a thread in no futex: %+v", wt)
	}
}

// For the calls in which a replay's threads rest it is known what they wait for, whatever their
// stacks look like. A thread whose call is over can continue.
func TestBlockedInCalls(t *testing.T) {
	waits := func(change func(calls []WaitingCall, f *fake)) *Waits {
		f := newFake(nil)
		f.symbols = []image.Symbol{{Name: "news", Addr: dataAt, Size: 48}}
		calls := []WaitingCall{{What: "thread exit", Joined: 2}, {What: "condition variable", Object: dataAt}, {What: "condition variable", Object: dataAt}}
		change(calls, f)
		w := waiter{target: f, opts: WaitOptions{Calls: calls}}
		for tid := range len(calls) {
			thread, stack := waitingIn(100+tid, 0, 0, "read")
			thread.Ref.Recorded = thread.Ref.Number
			w.threads, w.stacks = append(w.threads, thread), append(w.stacks, stack)
		}
		return &Waits{waiter: w, list: w.waits()}
	}
	barrier := func(came byte) func([]WaitingCall, *fake) {
		return func(calls []WaitingCall, f *fake) {
			calls[1], calls[2] = WaitingCall{What: "barrier", Object: dataAt + 64}, WaitingCall{What: "barrier", Object: dataAt + 64}
			f.put(dataAt+64, []byte{came, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0})
		}
	}
	for name, x := range map[string]struct {
		change func([]WaitingCall, *fake)
		want   string
	}{
		"no thread signals": {func([]WaitingCall, *fake) {}, "threads 2 and 3 each wait for condition variable `news`"},
		"one too few":       {barrier(2), "threads 2 and 3 each wait for barrier"},
		"all came":          {barrier(3), ""},
		"signalled":         {func(calls []WaitingCall, _ *fake) { calls[2].Came = true }, ""},
		"timed":             {func(calls []WaitingCall, _ *fake) { calls[2].Timed = true }, ""},
		"no call":           {func(calls []WaitingCall, _ *fake) { calls[2].What = "" }, ""},
	} {
		b := waits(x.change).Blocked(false)
		if (b != nil) != (x.want != "") || b != nil && (!strings.Contains(b.Text, x.want) || !strings.Contains(b.Text, "thread 1 waits for the end of thread 2")) {
			t.Errorf("%s: %+v, want %q", name, b, x.want)
		}
	}
}
