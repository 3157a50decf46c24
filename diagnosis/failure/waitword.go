package failure

import (
	"encoding/binary"
	"slices"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/internal/futex"

	"golang.org/x/sys/unix"
)

// wait is what one thread waits for.
type wait struct {
	thread *image.Thread
	what   evidence.WaitKind
	object evidence.Addr
	name   string
	// path is how the thread's frames name the object, where it has no name.
	path string
	// owner is the kernel's id of the holder; 0 if the object records none.
	owner uint64
	// readers are ids of threads that hold the lock for reading.
	readers []uint64
	// shared: threads of other processes may hold it.
	shared bool
	// note says why there is no owner, or how it is odd.
	note string
	site *evidence.Site
	// joined is the number, in the recording, of the thread that is joined.
	joined int
	// timed waits end by themselves.
	timed bool
	// called: the call is known, from WaitOptions.Calls.
	called bool
	// came: the event has happened, though the thread has not continued.
	came bool
}

// owners are the ids of the threads of which each has to act before the wait ends.
func (wt *wait) owners() []uint64 {
	if wt.owner != 0 {
		return []uint64{wt.owner}
	}
	return wt.readers
}

// futexCall returns the word on which a thread sleeps and the value that it expected there, from
// the system call's registers. ok is false if the thread is in no futex wait.
func futexCall(t *image.Thread) (word evidence.Addr, expected uint32, timed, ok bool) {
	if t.Registers.OrigRAX != unix.SYS_FUTEX {
		return 0, 0, false, false
	}
	rdi, known := t.Registers.Get(image.RDI)
	rsi, known2 := t.Registers.Get(image.RSI)
	rdx, _ := t.Registers.Get(image.RDX)
	r10, _ := t.Registers.Get(image.R10)
	if !known || !known2 || !futex.Waits(rsi) {
		return 0, 0, false, false
	}
	return evidence.Addr(rdi), uint32(rdx), r10 != 0, true
}

// waiter is a stopped process and the walked stacks of its threads.
type waiter struct {
	target
	threads []image.Thread
	stacks  []unwind.Stack
	opts    WaitOptions
}

// sleeps returns the result of futexCall for a thread, by its index. A thread that sleeps until it
// is its turn to run is in no wait of the program's.
func (w *waiter) sleeps(i int) (word evidence.Addr, expected uint32, timed, ok bool) {
	if i < len(w.opts.Words) && w.opts.Words[i] != 0 {
		return w.opts.Words[i], 0, false, true
	}
	word, expected, timed, ok = futexCall(&w.threads[i])
	if ok && w.opts.Turn != nil && w.opts.Turn(word) {
		return 0, 0, false, false
	}
	return word, expected, timed, ok
}

// waitOf says what a thread waits for; nil if it waits for nothing that is understood.
func (w *waiter) waitOf(i int) *wait {
	if i < len(w.opts.Calls) && w.opts.Calls[i].What != "" && i < len(w.stacks) {
		return w.waitIn(i, &w.opts.Calls[i])
	}
	t := &w.threads[i]
	word, expected, timed, ok := w.sleeps(i)
	if !ok || i >= len(w.stacks) {
		return nil
	}
	sites := sitesOfFrames(w.stacks[i].Frames, w)
	out := &wait{thread: t, timed: timed, object: word}
	switch kind := waitKind(sites); kind {
	case evidence.WaitMutex:
		w.mutex(out)
	case evidence.WaitRWLock:
		out.object = rwlockOf(word, inEngine(sites))
		w.rwlock(out)
	case evidence.WaitThreadExit:
		w.join(out, word, expected)
	case evidence.WaitCondition:
		out.what, out.object = kind, conditionVariable(w.stacks[i].Frames, word)
		if inEngine(sites) {
			out.object = word - CondSequence
		}
	default:
		out.what = kind
	}
	w.nameObject(out)
	if out.what == evidence.WaitThreadExit {
		w.joinInEngine(out)
	}
	out.site = w.askedAt(w.stacks[i].Frames, out.what)
	return out
}

func (w *waiter) nameObject(out *wait) {
	if out.name = w.objectName(out.object); out.name == "" && w.opts.NameOf != nil {
		out.name = w.opts.NameOf(out.object)
	}
	out.path = w.path(out, &out.thread.Ref)
}

// path is how the frames of a thread name the object of a wait; empty if it has a name.
func (w *waiter) path(wt *wait, of *evidence.ThreadRef) string {
	if wt.name != "" || w.opts.PathFrom == nil || of == nil || wt.what == evidence.WaitThreadExit {
		return ""
	}
	i := slices.IndexFunc(w.threads, func(t image.Thread) bool { return t.Ref.TID == of.TID })
	if i < 0 {
		return ""
	}
	return w.opts.PathFrom(i, wt.object)
}

// waitIn is waitOf for a known call.
func (w *waiter) waitIn(i int, c *WaitingCall) *wait {
	out := &wait{thread: &w.threads[i], what: c.What, object: c.Object, timed: c.Timed, came: c.Came, called: true}
	if c.What == evidence.WaitPrivateFutex || c.What == evidence.WaitFutex {
		if kind := waitKind(sitesOfFrames(w.stacks[i].Frames, w)); kind != evidence.WaitFutex {
			out.what = kind
		}
	}
	if c.Came {
		out.note = "which came meanwhile"
	}
	out.site = w.askedAt(w.stacks[i].Frames, out.what)
	switch c.What {
	case evidence.WaitMutex:
		w.mutex(out)
	case evidence.WaitRWLock:
		w.rwlock(out)
	case evidence.WaitThreadExit:
		w.joined(out, c.Joined)
		return out
	}
	w.nameObject(out)
	return out
}

// joined fills in a wait for the end of a thread, by its number in the recording.
func (w *waiter) joined(out *wait, number int) {
	out.joined = number
	for i := range w.threads {
		if ref := w.threads[i].Ref; ref.Recorded == number {
			out.owner = uint64(ref.TID)
		}
	}
}

// signalWords are the offsets in glibc's pthread_cond_t of the words that its waiters sleep on,
// __g_signals: from 2.25 on, and from 2.41 on (sysdeps/nptl/bits/thread-shared-types.h).
var signalWords = []evidence.Addr{40, 44, 32, 36}

// conditionVariable finds the start of the variable that a futex word belongs to. The offset
// depends on the version of glibc, so the start must be in a register that the waiting functions
// preserve. Otherwise the word stands for the variable.
func conditionVariable(frames []unwind.Frame, word evidence.Addr) evidence.Addr {
	const inner = 4
	for i := range min(len(frames), inner) {
		for _, r := range []image.Register{image.RBX, image.RBP, image.R12, image.R13, image.R14, image.R15} {
			v, ok := frames[i].Registers.Get(r)
			if ok && v%8 == 0 && slices.Contains(signalWords, word-evidence.Addr(v)) {
				return evidence.Addr(v)
			}
		}
	}
	return word
}

// waitFunctions maps the functions that block to the objects they wait for. The first one found
// from the innermost frame outward decides.
var waitFunctions = []struct {
	part string
	what evidence.WaitKind
}{
	{"pthread_cond_", evidence.WaitCondition},
	{"pthread_rwlock_", evidence.WaitRWLock},
	{"pthread_mutex_", evidence.WaitMutex},
	{"lll_lock_wait", evidence.WaitMutex},
	{"lll_mutex_", evidence.WaitMutex},
	{"pthread_clockjoin", evidence.WaitThreadExit},
	{"pthread_join", evidence.WaitThreadExit},
	{"pthread_timedjoin", evidence.WaitThreadExit},
	{"sem_", evidence.WaitSemaphore},
	{"new_sem_", evidence.WaitSemaphore},
	{"pthread_barrier_wait", evidence.WaitBarrier},
	{"pthread_once", evidence.WaitOnce},
	{"cxa_guard_acquire", evidence.WaitStatic},
	{"sync::mutex::futex", evidence.WaitRustMutex},
	{"sync::rwlock::futex", evidence.WaitRustRWLock},
	{"sync::condvar::futex", evidence.WaitRustCondition},
	{"thread_parking::futex", evidence.WaitUnparking},
	{"sync::once::futex", evidence.WaitOnce},
	{"std::__atomic_futex", evidence.WaitFuture},
	{"std::__detail::__platform_wait", evidence.WaitFuture},
	// The recording library's own: see inEngine.
	{"dg_op_mutex_lock", evidence.WaitMutex},
	{"dg_mutex_lock", evidence.WaitMutex}, // in a hunt, before the operation
	{"dg_op_rwlock", evidence.WaitRWLock},
	{"dg_op_cond_wait", evidence.WaitCondition},
	{"dg_op_sem", evidence.WaitSemaphore},
	{"dg_op_barrier", evidence.WaitBarrier},
	{"dg_op_once", evidence.WaitOnce},
	{"dg_op_guard", evidence.WaitStatic},
}

// CondSequence is the offset in a pthread_cond_t of the word that the recording library's waiters
// sleep on (agent/src/engine/sync.h, struct dg_cond).
const CondSequence = 40

// inEngine reports whether the thread waits in the recording library, whose operations have names
// with dg_op_, and not in glibc.
func inEngine(sites []evidence.Site) bool {
	return slices.ContainsFunc(sites, func(s evidence.Site) bool { return strings.HasPrefix(plainName(s.Function), "dg_op_") })
}

func waitKind(sites []evidence.Site) evidence.WaitKind {
	for i := range sites {
		name := strings.TrimLeft(plainName(sites[i].Function), "_")
		for _, f := range waitFunctions {
			if name == f.part || strings.Contains(name, f.part) && !strings.HasPrefix(name, "futex") {
				return f.what
			}
		}
		if ofProgram(&sites[i]) {
			break
		}
	}
	return evidence.WaitFutex
}

// mutexBytes covers the fields of glibc's pthread_mutex_t that are read
// (sysdeps/x86/nptl/bits/struct_mutex.h): __lock, __count, __owner, __nusers,
// __kind.
const mutexBytes = 24

// maxMutexKind covers the type, robust, priority, elision and shared bits
// (nptl/pthreadP.h).
const maxMutexKind = 0x3ff

// mutexShared is the bit of a kind of mutex that processes share (nptl/pthreadP.h, PTHREAD_MUTEX_PSHARED_BIT).
const mutexShared = 128

// mutex reads the owner of the mutex that a thread sleeps on. Its lock word is
// its first field, so the futex's address is the mutex's.
func (w *waiter) mutex(out *wait) {
	out.what = evidence.WaitMutex
	var b [mutexBytes]byte
	if _, err := w.ReadMemory(out.object, b[:]); err != nil {
		out.note = "which cannot be read: " + err.Error()
		return
	}
	lock := binary.LittleEndian.Uint32(b[0:])
	owner := uint64(binary.LittleEndian.Uint32(b[8:]))
	kind := binary.LittleEndian.Uint32(b[16:])
	out.shared = kind&mutexShared != 0
	switch {
	case kind > maxMutexKind:
		out.note = "which does not look like a mutex of glibc"
	case lock == 0:
		out.note = "which is free at this moment"
	case owner == 0:
		owner = w.lockWordOwner(lock)
		fallthrough
	default:
		w.setOwner(out, owner)
	}
}

// lockWordOwner takes the owner from the lock word, where robust and
// priority-inheriting mutexes keep it.
func (w *waiter) lockWordOwner(lock uint32) uint64 {
	if tid := uint64(lock & futex.TIDMask); threadNumbered(w.threads, tid) != nil {
		return tid
	}
	return 0
}

func (w *waiter) setOwner(out *wait, owner uint64) {
	switch {
	case owner == 0:
		out.note = "whose owner is not recorded"
	case threadNumbered(w.threads, owner) != nil:
		out.owner = owner
	default:
		out.owner, out.note = owner, "which is no thread of this process"
		if _, known := w.ended(owner); known {
			out.note = "which has ended"
		}
	}
}

// readersShift is where the number of readers begins in a lock's first word
// (nptl/pthread_rwlock_common.c).
const readersShift = 3

// Offsets in glibc's pthread_rwlock_t (sysdeps/x86/nptl/bits/struct_rwlock.h).
const (
	rwlockPhaseFutex   = 8
	rwlockWritersFutex = 12
	rwlockWriter       = 24
	rwlockShared       = 28
)

// rwlockOf finds the lock that one of its two futex words belongs to. Alignment distinguishes the
// two. The recording library's threads sleep on the first.
func rwlockOf(word evidence.Addr, engine bool) evidence.Addr {
	switch {
	case engine:
		return word
	case word%8 == 4:
		return word - rwlockWritersFutex
	}
	return word - rwlockPhaseFutex
}

// rwlock reads the writer that holds the lock.
func (w *waiter) rwlock(out *wait) {
	out.what = evidence.WaitRWLock
	readers, err := image.Uint32(w, out.object)
	if err != nil {
		out.note = "which cannot be read: " + err.Error()
		return
	}
	writer, err := image.Uint32(w, out.object+rwlockWriter)
	switch {
	case err != nil:
		out.note = "which cannot be read: " + err.Error()
	case writer != 0:
		w.setOwner(out, uint64(writer))
		shared, err := image.Uint32(w, out.object+rwlockShared)
		out.shared = err != nil || shared != 0
	case readers>>readersShift != 0:
		if w.opts.Readers != nil {
			out.readers = w.opts.Readers(out.object, readers>>readersShift)
		}
		if len(out.readers) == 0 {
			out.note = "which readers hold; a lock does not record them"
		}
	default:
		out.note = "whose owner is not recorded"
	}
}

// join reads the thread that is joined: the futex is the tid field of its
// descriptor, which the kernel clears when the thread ends
// (CLONE_CHILD_CLEARTID).
func (w *waiter) join(out *wait, word evidence.Addr, expected uint32) {
	out.what = evidence.WaitThreadExit
	tid, err := image.Uint32(w, word)
	switch {
	case err != nil:
		out.note = "which cannot be read: " + err.Error()
	case tid == 0:
		out.note = "which has ended at this moment"
	case tid != expected:
		out.note = "whose descriptor changed meanwhile"
	default:
		w.setOwner(out, uint64(tid))
	}
}

// joinInEngine is join for a process that is recorded. Its threads sleep on a word of the engine,
// which is 0 until the thread has ended.
func (w *waiter) joinInEngine(out *wait) {
	if w.opts.EndOf == nil {
		return
	}
	if out.joined = w.opts.EndOf(out.object); out.joined == 0 {
		return
	}
	out.owner, out.note = 0, ""
	switch ended, err := image.Uint32(w, out.object); {
	case err != nil:
		out.note = "which cannot be read: " + err.Error()
		return
	case ended != 0:
		out.note = "which has ended at this moment"
		return
	}
	w.joined(out, out.joined)
}
