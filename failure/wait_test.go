package failure

import (
	"encoding/binary"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/unwind"

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
	if got, want := w.text(waits[0]), "waits for mutex 0x555555558028 `b` held by thread 2"; got != want {
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

func TestConditionVariable(t *testing.T) {
	const word = 0x5028
	frames := make([]unwind.Frame, 3)
	if got := conditionVariable(frames, word); got != word {
		t.Errorf("without registers %v, want the word itself", got)
	}
	frames[1].Registers.Set(image.RBX, word)
	frames[1].Registers.Set(image.R12, word-48) // too far away
	frames[2].Registers.Set(image.R13, word-40)
	if got := conditionVariable(frames, word); got != word-40 {
		t.Errorf("got %v, want %v", got, evidence.Addr(word-40))
	}
}
