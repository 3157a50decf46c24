package recorder

import (
	"bytes"
	"encoding/binary"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/replay/ptrace"
	"diagnose/replay/record"
)

// delay holds the signals of a thread until it is at a place that a replay finds again. The
// thread continues without them, one step at a time: at such a stop the kernel takes the signal
// back. If that takes long, the thread runs for a moment, and is then at another place.
type delay struct {
	signals []delayedSignal
	since   time.Time
	steps   int
	running time.Duration // duration of the last run
}

type delayedSignal struct {
	signal syscall.Signal
	info   ptrace.Siginfo
}

const (
	// delayedSteps is the number of steps before a thread runs for a moment.
	delayedSteps = 400
	firstRun     = 20 * time.Microsecond
	longestRun   = time.Millisecond
	// longestDelay is the time after which the signal is delivered anyway, and the engine ends
	// its log there.
	longestDelay = 10 * time.Second
	// mostDelayed is the maximum number of signals that queue; the kernel also has a limit.
	mostDelayed = 1024
)

// addSignal adds a signal. A signal that does not queue is dropped if it already waits, as in
// the kernel.
func (d *delay) addSignal(s syscall.Signal, info ptrace.Siginfo) {
	for i := range d.signals {
		if s < firstRealTime && d.signals[i].signal == s {
			return
		}
	}
	if len(d.signals) < mostDelayed {
		d.signals = append(d.signals, delayedSignal{s, info})
	}
}

// delays decides whether a sent signal waits.
func (x *tracee) delays(s syscall.Signal, info ptrace.Siginfo) (bool, error) {
	r := x.process.recording
	if r == nil {
		return false, nil
	}
	if x.delay != nil {
		x.delay.addSignal(s, info)
		return true, x.proceed(0)
	}
	if x.refused(s, &info) {
		return false, nil
	}
	at, err := r.standing(x)
	if err != nil || at.allows(x, s, &info) {
		return false, err
	}
	x.delay = &delay{since: time.Now()}
	x.delay.addSignal(s, info)
	return true, x.proceed(0)
}

// refused reports whether a signal is one that the engine's handler was given and has sent
// again with the default action, because the program has no handler (engine/signal.c). It ends
// the process where the thread was when it arrived.
func (x *tracee) refused(s syscall.Signal, info *ptrace.Siginfo) bool {
	const said = 24 // si_signo, si_errno, si_code, si_pid, si_uid
	handed := x.handed
	x.handed = nil
	return handed != nil && bytes.Equal(handed[:said], info[:said]) && ptrace.Fatal(x.tid, s)
}

// allows reports whether a replay can find the place again if the thread receives the signal
// here. In the engine the signal is kept until the thread leaves, unless it ends the process
// there. A signal that the process sent itself arrives before the sending call returns.
func (at *standing) allows(x *tracee, s syscall.Signal, info *ptrace.Siginfo) bool {
	if at.whereabouts == inEngine {
		return at.asleep || sender(info) == x.process.pid || !record.DumpsCore(s) || !ptrace.Fatal(x.tid, s)
	}
	return at.whereabouts == inProgram
}

// sender returns the process that sent a signal; 0: none.
func sender(info *ptrace.Siginfo) int {
	const user, queued, thread = 0, -1, -6 // SI_USER, SI_QUEUE, SI_TKILL
	switch info.Code() {
	case user, queued, thread:
		return int(binary.LittleEndian.Uint32(info[16:]))
	}
	return 0
}

// isStep reports whether a SIGTRAP is of a single step. given: it is in a stop in which another
// signal may replace it, unlike the stop after the kernel has made a handler's frame.
func isStep(info *ptrace.Siginfo) (is, given bool) {
	const behindCall, trace, notified = 1, 2, int32(unix.SIGTRAP)
	switch info.Code() {
	case behindCall, trace:
		return true, true
	case notified:
		return true, false
	}
	return false, false
}

// stepped handles a thread with delayed signals after a step.
func (t *tracer) stepped(x *tracee, given bool) error {
	d, r := x.delay, x.process.recording
	at, err := r.standing(x)
	if err != nil {
		return err
	}
	next := d.signals[0]
	if !given || !at.allows(x, next.signal, &next.info) && time.Since(d.since) < longestDelay {
		return x.crawl(at.regs.Rip)
	}
	if err := ptrace.SetSiginfo(x.tid, next.info); err != nil {
		return err
	}
	if d.signals = d.signals[1:]; len(d.signals) == 0 {
		x.delay = nil
	}
	return t.give(x, next.signal, next.info)
}

// resentValue is the value of signals that the tracer sends again. A program that sends one with
// this value and signal only loses its own siginfo.
const resentValue = 0x6c61746572_5f6469

// resend handles a thread with delayed signals that was interrupted in a system call that waits.
// A step would end only with that call, for which the signals may be needed, and only a stop for
// a signal allows one to be given. So the signals are sent to the thread again. They arrive as
// in the kernel: now, or when the call ends if it blocks them. sent: the thread continues.
func (x *tracee) resend() (sent bool, err error) {
	at, err := x.process.recording.standing(x)
	if err != nil {
		return false, err
	}
	d := x.delay
	if next := d.signals[0]; !at.asleep || !at.allows(x, next.signal, &next.info) {
		return false, nil
	}
	for len(d.signals) != 0 {
		if err := ptrace.Queue(x.process.pid, x.tid, d.signals[0].signal, resentValue); err != nil {
			return false, err
		}
		x.resent = append(x.resent, d.signals[0])
		d.signals = d.signals[1:]
	}
	x.delay = nil
	return true, x.proceed(0)
}

// siginfo returns the siginfo of the signal that is about to be delivered to the thread. A
// signal that was sent again has the siginfo of its first arrival.
func (x *tracee) siginfo(s syscall.Signal) (ptrace.Siginfo, error) {
	info, err := ptrace.GetSiginfo(x.tid)
	if err != nil {
		return info, err
	}
	i := slices.IndexFunc(x.resent, func(d delayedSignal) bool { return d.signal == s })
	queued := info.Queued(resentValue)
	if i < 0 || !queued && s >= firstRealTime {
		return info, nil
	}
	again := x.resent[i]
	x.resent = slices.Delete(x.resent, i, i+1)
	if !queued {
		return info, nil // another was pending already, and the kernel dropped the one sent again
	}
	return again.info, ptrace.SetSiginfo(x.tid, again.info)
}

// crawl makes the thread take another step, or run for a moment.
func (x *tracee) crawl(pc uint64) error {
	d := x.delay
	if d.steps++; d.steps%delayedSteps != 0 && !x.process.recording.crawls(pc) {
		return x.proceed(0)
	}
	return x.runFor(&d.running)
}

// runFor makes the thread run for longer than last time, and asks for a stop.
func (x *tracee) runFor(last *time.Duration) error {
	x.stopped = false
	if err := ptrace.Cont(x.tid, 0); err != nil {
		return err
	}
	*last = longer(*last)
	time.Sleep(*last)
	x.interrupt()
	return nil
}

// longer returns how long a thread runs that has run for a time in vain.
func longer(last time.Duration) time.Duration { return min(max(2*last, firstRun), longestRun) }
