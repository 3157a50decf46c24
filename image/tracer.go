package image

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/internal/siginfo"
)

const (
	// Requests of linux/ptrace.h.
	ptraceSeize      = 0x4206
	ptraceInterrupt  = 0x4207
	ptraceGetRegset  = 0x4204
	ptraceGetSiginfo = 0x4202

	regsetPrstatus = notePrstatus
	regsetFP       = noteFPRegs
	// stopLimit is how long a thread may take to stop, mostListings how often
	// new threads may appear meanwhile.
	stopLimit    = 5 * time.Second
	mostListings = 50
)

// tracer stops the threads of a process. Linux lets only the kernel thread
// that attached use a tracee (ptrace(2)), so all calls are made on one.
type tracer struct {
	pid   int
	calls chan func()
	ended chan struct{}
	// threads that stopped, in ascending order of their ids.
	threads []*tracee
	// moving are seized threads that did not stop within limit.
	moving []int
	limit  time.Duration
}

// tracee is a stopped thread.
type tracee struct {
	tid int
	// pending is the signal that the thread was about to receive; it is
	// delivered when the thread resumes.
	pending int
	siginfo *evidence.Signal
	regs    Registers
}

// newTracer starts the kernel thread that traces.
func newTracer(pid int) *tracer {
	t := &tracer{pid: pid, limit: stopLimit, calls: make(chan func()), ended: make(chan struct{})}
	started := make(chan struct{})
	go t.serve(started)
	<-started
	return t
}

// serve makes the calls. The goroutine ends while locked to its kernel thread,
// so that thread ends too and the kernel detaches from everything that it still
// traces. The process's first thread would not end. So if this goroutine is on
// it, another goroutine serves, which cannot get the first thread while this
// one is locked to it.
func (t *tracer) serve(started chan struct{}) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		go t.serve(started)
		<-started
		runtime.UnlockOSThread()
		return
	}
	close(started)
	for f := range t.calls {
		f()
	}
	close(t.ended)
}

// do runs f on the tracing thread.
func (t *tracer) do(f func() error) error {
	result := make(chan error, 1)
	t.calls <- func() { result <- f() }
	return <-result
}

func ptraceCall(request, tid int, data uintptr) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), 0, data, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// ptraceRead is for requests that fill memory of ours.
func ptraceRead(request, tid int, addr uintptr, data unsafe.Pointer) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), addr, uintptr(data), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// stopAll stops every thread. New ones may be made while others still run, so
// the list is read until it has no new thread.
func (t *tracer) stopAll() error {
	known := map[int]bool{}
	for range mostListings {
		tids, err := listTasks(t.pid)
		if err != nil {
			return err
		}
		var fresh []int
		for _, tid := range tids {
			if known[tid] {
				continue
			}
			known[tid] = true
			seized, err := t.seize(tid)
			if err != nil {
				return err
			}
			if seized {
				fresh = append(fresh, tid)
			}
		}
		if len(fresh) == 0 {
			slices.SortFunc(t.threads, func(a, b *tracee) int { return a.tid - b.tid })
			return nil
		}
		t.await(fresh)
	}
	return fmt.Errorf("process %d makes threads faster than they can be stopped", t.pid)
}

// seize attaches to a thread without stopping the others; false when the
// thread has ended meanwhile.
func (t *tracer) seize(tid int) (bool, error) {
	err := ptraceCall(ptraceSeize, tid, 0)
	if err == nil {
		err = ptraceCall(ptraceInterrupt, tid, 0)
	}
	if err == nil {
		return true, nil
	}
	status, statusErr := readStatus(tid)
	if err == unix.ESRCH || statusErr != nil || status.zombie() {
		return false, nil
	}
	return false, attachError(tid, &status, err)
}

// await waits until the threads stop. Threads that do not within the limit,
// such as those in an uninterruptible sleep, are left out.
func (t *tracer) await(tids []int) {
	deadline := time.Now().Add(t.limit)
	pause := 20 * time.Microsecond
	for len(tids) > 0 {
		waiting := tids[:0]
		for _, tid := range tids {
			done := t.poll(tid)
			if !done {
				waiting = append(waiting, tid)
			}
		}
		tids = waiting
		if time.Now().After(deadline) {
			t.moving = append(t.moving, tids...)
			return
		}
		if len(tids) > 0 {
			time.Sleep(pause)
			pause = min(2*pause, 5*time.Millisecond)
		}
	}
}

// poll records a thread's stop; true when there is nothing more to wait for.
func (t *tracer) poll(tid int) bool {
	status, stopped, err := waitStop(tid)
	switch {
	case err == unix.EINTR, err == nil && !stopped && status == 0:
		return false
	case err != nil:
		return true
	case !stopped:
		unix.Wait4(tid, nil, unix.WNOHANG|unix.WALL, nil) // it has ended
		return true
	}
	thread := &tracee{tid: tid}
	if event := status >> 8; event == 0 {
		thread.pending = status & 0x7f
		thread.siginfo = t.pendingSiginfo(tid)
	}
	t.threads = append(t.threads, thread)
	return true
}

// waitStop polls for a thread's stop without consuming it (WNOWAIT). Once it is
// consumed, and this process dies before it detaches, the kernel loses the
// signal that the thread was about to receive (wait_task_stopped in
// kernel/exit.c, ptrace_stop in kernel/signal.c). status is the signal with the
// ptrace event above it, or not 0 for a thread that has ended.
func waitStop(tid int) (status int, stopped bool, err error) {
	// The fields of a siginfo_t for SIGCHLD (asm-generic/siginfo.h).
	const siCode, siPID, siStatus = 8, 16, 24
	var info [siginfo.Size]byte
	err = unix.Waitid(unix.P_PID, tid, (*unix.Siginfo)(unsafe.Pointer(&info)),
		unix.WEXITED|unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
	if err != nil {
		return 0, false, err
	}
	le := binary.LittleEndian
	if le.Uint32(info[siPID:]) == 0 {
		return 0, false, nil
	}
	const exited, killed, dumped = 1, 2, 3 // CLD_EXITED, CLD_KILLED, CLD_DUMPED
	switch le.Uint32(info[siCode:]) {
	case exited, killed, dumped:
		return -1, false, nil
	}
	return int(le.Uint32(info[siStatus:])), true, nil
}

// stragglers says which threads did not stop.
func (t *tracer) stragglers() []evidence.Limit {
	var list []evidence.Limit
	for _, tid := range t.moving {
		s, _ := readStatus(tid)
		list = append(list, evidence.Limit{Code: evidence.LimitThreadRuns, Subject: fmt.Sprintf("thread %d", tid), Severe: true, Reason: fmt.Sprintf(
			"thread %d (%s) did not stop within %v and is left out; its state is %s", tid, s.name, t.limit, s.state)}.Worded())
	}
	return list
}

func (t *tracer) pendingSiginfo(tid int) *evidence.Signal {
	var b [siginfo.Size]byte
	if ptraceRead(ptraceGetSiginfo, tid, 0, unsafe.Pointer(&b[0])) != nil {
		return nil
	}
	if s, ok := siginfo.Parse(b[:]); ok {
		return &s
	}
	return nil
}

// readRegisters fills the registers of every stopped thread.
func (t *tracer) readRegisters() error {
	for _, thread := range t.threads {
		b, err := regset(thread.tid, regsetPrstatus, userRegsSize)
		if err != nil {
			return fmt.Errorf("registers of thread %d: %w", thread.tid, err)
		}
		if len(b) == userRegs386Size {
			return fmt.Errorf("thread %d runs 32-bit code; only x86-64 is supported", thread.tid)
		}
		if thread.regs, err = parseUserRegs(b); err != nil {
			return fmt.Errorf("registers of thread %d: %w", thread.tid, err)
		}
		if b, err := regset(thread.tid, regsetFP, 512); err == nil {
			thread.regs.Vector = parseFXSave(b)
		}
	}
	return nil
}

func regset(tid, kind, size int) ([]byte, error) {
	b := make([]byte, size)
	iov := unix.Iovec{Base: &b[0], Len: uint64(size)}
	if err := ptraceRead(ptraceGetRegset, tid, uintptr(kind), unsafe.Pointer(&iov)); err != nil {
		return nil, err
	}
	return b[:iov.Len], nil
}

// detach resumes every thread as it was: with the signal that it was about to
// receive, or stopped if the process was.
func (t *tracer) detach() error {
	err := t.do(func() error {
		var first error
		for _, thread := range t.threads {
			err := ptraceCall(unix.PTRACE_DETACH, thread.tid, uintptr(thread.pending))
			if err != nil && !errors.Is(err, unix.ESRCH) && first == nil {
				first = fmt.Errorf("thread %d could not be detached from: %w", thread.tid, err)
			}
		}
		t.threads = nil
		return first
	})
	close(t.calls)
	<-t.ended
	return err
}

// attachError explains why a process cannot be traced.
func attachError(pid int, s *procStatus, err error) error {
	if s.tracer != 0 {
		tracer, name := s.tracer, "name unknown"
		if by, err := readStatus(s.tracer); err == nil {
			tracer, name = by.tgid, by.name // TracerPid is a thread's id
		}
		return fmt.Errorf("process %d is already traced by process %d (%s)", pid, tracer, name)
	}
	if !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("process %d: ptrace: %w", pid, err)
	}
	hint := "run as its owner or as root"
	switch {
	case os.Geteuid() == 0:
		hint = "even root may not: a container needs CAP_SYS_PTRACE, and the system may protect it (ptrace(2))"
	case yamaScope() > 0:
		hint = fmt.Sprintf("kernel.yama.ptrace_scope is %d, which allows it to root only (ptrace(2))", yamaScope())
	}
	return fmt.Errorf("process %d may not be traced: %w; %s", pid, os.ErrPermission, hint)
}

// yamaScope is 0 where everyone may trace their own processes.
func yamaScope() int {
	text, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope")
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return n
}
