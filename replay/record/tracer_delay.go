package record

import (
	"bytes"
	"encoding/binary"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/replay/ptrace"
)

// delay is for a thread whose signals wait until it stands where a replay finds
// it again. It goes on without them, a step at a time: the kernel takes the
// signal back at such a stop. Where that takes long it runs for a moment, and
// stands elsewhere then.
type delay struct {
	signals []delayedSignal
	since   time.Time
	steps   int
	running time.Duration // how long it ran last
}

type delayedSignal struct {
	signal syscall.Signal
	info   ptrace.Siginfo
}

const (
	// delayedSteps are taken before a thread runs for a moment.
	delayedSteps = 400
	firstRun     = 20 * time.Microsecond
	longestRun   = time.Millisecond
	// longestDelay: then the signal is given, and the engine ends its log there.
	longestDelay = 10 * time.Second
	// mostDelayed is of signals that queue; the kernel has a limit, too.
	mostDelayed = 1024
)

// add keeps a signal. One that does not queue is lost if it waits already, as it
// is in the kernel.
func (d *delay) add(s syscall.Signal, info ptrace.Siginfo) {
	const firstReal = 32
	for i := range d.signals {
		if s < firstReal && d.signals[i].signal == s {
			return
		}
	}
	if len(d.signals) < mostDelayed {
		d.signals = append(d.signals, delayedSignal{s, info})
	}
}

// delays decides whether a signal that somebody sent waits.
func (t *tracer) delays(x *tracee, s syscall.Signal, info ptrace.Siginfo) (bool, error) {
	r := x.process.recording
	if r == nil {
		return false, nil
	}
	if x.delay != nil {
		x.delay.add(s, info)
		return true, t.proceed(x, 0)
	}
	if x.refused(s, &info) {
		return false, nil
	}
	at, err := r.standing(x)
	if err != nil || at.allows(x, s, &info) {
		return false, err
	}
	x.delay = &delay{since: time.Now()}
	x.delay.add(s, info)
	return true, t.proceed(x, 0)
}

// refused reports whether a signal is one that the engine's handler was given and has sent
// again with the default action, as the program has no handler (engine_signal.c): it ends the
// process where the thread was when it came.
func (x *tracee) refused(s syscall.Signal, info *ptrace.Siginfo) bool {
	const said = 24 // si_signo, si_errno, si_code, si_pid, si_uid
	handed := x.handed
	x.handed = nil
	return handed != nil && bytes.Equal(handed[:said], info[:said]) && isFatal(x.tid, s)
}

// allows reports whether a replay finds the thread again that gets the signal
// here. In the engine it is kept until the thread leaves, unless it ends the
// process there; one that the process sent itself comes before the call returns
// that sent it.
func (at *standing) allows(x *tracee, s syscall.Signal, info *ptrace.Siginfo) bool {
	if at.whereabouts == inEngine {
		return at.asleep || sender(info) == x.process.pid || !dumps(s) || !isFatal(x.tid, s)
	}
	return at.whereabouts == inProgram
}

// sender is the process that sent a signal; 0: none.
func sender(info *ptrace.Siginfo) int {
	const user, queued, thread = 0, -1, -6 // SI_USER, SI_QUEUE, SI_TKILL
	switch siCode(info) {
	case user, queued, thread:
		return int(binary.LittleEndian.Uint32(info[16:]))
	}
	return 0
}

// isStep reports whether a SIGTRAP is of a single step; given: in a stop in which
// another signal may take its place, which the one behind the making of a
// handler's frame is not.
func isStep(info *ptrace.Siginfo) (is, given bool) {
	const behindCall, trace, notified = 1, 2, int32(unix.SIGTRAP)
	switch siCode(info) {
	case behindCall, trace:
		return true, true
	case notified:
		return true, false
	}
	return false, false
}

// stepped is for a thread with signals that wait, behind a step.
func (t *tracer) stepped(x *tracee, given bool) error {
	d, r := x.delay, x.process.recording
	at, err := r.standing(x)
	if err != nil {
		return err
	}
	next := d.signals[0]
	if !given || !at.allows(x, next.signal, &next.info) && time.Since(d.since) < longestDelay {
		return t.crawl(x, at.regs.Rip)
	}
	if err := ptrace.SetSiginfo(x.tid, next.info); err != nil {
		return err
	}
	if d.signals = d.signals[1:]; len(d.signals) == 0 {
		x.delay = nil
	}
	return t.give(x, next.signal, next.info)
}

// crawl takes another step, or lets the thread run for a moment.
func (t *tracer) crawl(x *tracee, pc uint64) error {
	d := x.delay
	if d.steps++; d.steps%delayedSteps != 0 && !x.process.recording.crawls(pc) {
		return t.proceed(x, 0)
	}
	d.running = min(max(2*d.running, firstRun), longestRun)
	x.stopped = false
	if err := ptrace.Cont(x.tid, 0); err != nil {
		return err
	}
	time.Sleep(d.running)
	t.interrupt(x)
	return nil
}
