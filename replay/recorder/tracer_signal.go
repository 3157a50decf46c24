package recorder

import (
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/internal/siginfo"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/recorder/sites"
)

// signalled handles a thread that is about to receive a signal. All signals but those meant for
// the tracer are passed on unchanged, perhaps a little later.
func (t *tracer) signalled(x *tracee, s syscall.Signal) error {
	if x.process.recording == nil && s != unix.SIGTRAP {
		return x.proceed(s)
	}
	info, err := x.siginfo(s)
	if err != nil {
		return err
	}
	if isFault(s, &info) {
		return t.faulted(x, s, info)
	}
	if x.isTurnsEnd(s, &info) {
		return t.turnTimedOut(x)
	}
	info, waits, err := x.pace(s, info)
	if err != nil || waits {
		return err
	}
	if waits, err := x.delays(s, info); err != nil || waits {
		return err
	}
	return t.give(x, s, info)
}

// give passes on a signal, which may end the process.
func (t *tracer) give(x *tracee, s syscall.Signal, info ptrace.Siginfo) error {
	fault := isFault(s, &info)
	switch r := x.process.recording; {
	case r == nil || !record.DumpsCore(s) && !ends(s):
	case fault && s != unix.SIGTRAP && x.process.failing.other(x):
		return x.refault()
	case !ptrace.Fatal(x.tid, s):
		if fault && r.unhandled(s) {
			x.process.failing = failing{thread: x, since: time.Now()}
		}
		if s == unix.SIGSEGV || s == unix.SIGILL || s == unix.SIGTRAP { // in any case it is the engine's
			x.handed = &info
		}
	case record.DumpsCore(s):
		return t.fatal(x, s, info)
	case ends(s):
		r.noteRelocked(x)
	}
	return x.proceed(s)
}

// faulted handles a signal raised by an instruction: one of the engine's, a step, or one of the
// program's own.
func (t *tracer) faulted(x *tracee, s syscall.Signal, info ptrace.Siginfo) error {
	step, given := isStep(&info)
	step = step && s == unix.SIGTRAP
	if step && x.delay != nil {
		return t.stepped(x, given)
	}
	if step && x.seeking > 0 {
		return t.turnTimedOut(x)
	}
	regs, err := ptrace.GetRegisters(x.tid)
	if err != nil {
		return err
	}
	if isQuestion(x.tid, s, &info, &regs) {
		return t.trapped(x, &regs)
	}
	if r := x.process.recording; r != nil {
		if err := r.points.AtOwn(x.tid, &regs); err != nil {
			return err
		}
		if err := sites.AtAtomic(r.memory, r.controlAt, x.tid, &regs); err != nil {
			return err
		}
		redirected, err := sites.RedirectIn(r.memory, x.tid, s, &regs, &r.control, r.patches.IsTrap)
		if err != nil {
			return err
		}
		if redirected {
			return x.proceed(0)
		}
	}
	return t.give(x, s, info)
}

// failing is the thread whose fault the engine's handler has, though the program has no handler for it. The engine makes the default
// action that of the whole process, and the fault comes again and is the end. A fault of another thread that was given meanwhile would
// end the process with no word to the tracer, and there would be no core.
type failing struct {
	thread *tracee
	since  time.Time
}

// failingLimit is the time for which other threads' faults wait. The thread comes again after a few system calls.
const failingLimit = time.Second

// other reports whether a thread that is not x is failing.
func (f failing) other(x *tracee) bool {
	return f.thread != nil && f.thread != x && time.Since(f.since) < failingLimit
}

// refault lets a thread execute the instruction that has failed once more, which changes nothing: it fails again.
func (x *tracee) refault() error {
	time.Sleep(refaultPause)
	return x.proceed(0)
}

const refaultPause = 50 * time.Microsecond

// unhandled reports whether the program has no handler of a signal, though the engine has one.
func (r *recording) unhandled(s syscall.Signal) bool {
	const size = 32 // of struct dg_action, which begins with the handler
	if r.control.Actions == 0 {
		return false
	}
	handler, err := r.memory.Word(r.control.Actions + size*uint64(s))
	return err == nil && handler == 0
}

// isFault distinguishes signals of an instruction from those that are sent, as the engine does.
func isFault(s syscall.Signal, info *ptrace.Siginfo) bool {
	return info.Code() > 0 && slices.Contains([]syscall.Signal{unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP}, s)
}

// isQuestion reports whether a signal is a question of the engine.
func isQuestion(tid int, s syscall.Signal, info *ptrace.Siginfo, regs *ptrace.Registers) bool {
	return s == unix.SIGTRAP && info.Code() == siginfo.Kernel && regs.Rbx == agent.TrapMagic && isBreakpoint(tid, regs.Rip-1)
}

func isBreakpoint(tid int, at uint64) bool {
	code, err := ptrace.Peek(tid, at)
	return err == nil && byte(code) == 0xcc
}

// ends reports whether the default action is Term in signal(7). SIGKILL is not reported to a
// tracer.
func ends(s syscall.Signal) bool {
	return slices.Contains([]syscall.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGPIPE, unix.SIGALRM, unix.SIGTERM, unix.SIGUSR1,
		unix.SIGUSR2, unix.SIGIO, unix.SIGPROF, unix.SIGVTALRM, unix.SIGSTKFLT, unix.SIGPWR}, s) || s >= firstRealTime
}

const firstRealTime = 32 // the kernel's

// fatal handles a signal that ends the process: the core is written before the kernel ends it.
func (t *tracer) fatal(x *tracee, s syscall.Signal, info ptrace.Siginfo) error {
	return t.stopAll(x, func() error {
		if !ptrace.Fatal(x.tid, s) {
			return t.release(x, s) // another thread has installed a handler meanwhile
		}
		r := x.process.recording
		r.noteUnsettled(x.process)
		r.noteHunted()
		r.noteTurns()
		r.failed(x, s, &info)
		r.takeEvidence()
		r.checkStopped(x.process.pid)
		r.writeCore(x, int(s), &info)
		return x.proceed(s)
	})
}
