package recorder

import (
	"bytes"
	"encoding/binary"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/internal/siginfo"
	"diagnose/replay/ptrace"
)

// The handler of a timer may take longer while it is recorded than the timer's period: a fork
// costs several times what it costs natively. Then the next signal is pending when the handler
// returns, and the program itself never continues. So the signals of timers are spaced: after
// a handler the program runs for as long as the handler took before it gets another one.
// Where handlers take less than half of the period nothing waits.

// pacer spaces the signals of a process's timers. All times are CLOCK_MONOTONIC in ns.
type pacer struct {
	// given is when a thread was given its last such signal, until its handler has returned.
	given map[*tracee]int64
	// rests is until when the program runs without such signals.
	rests   int64
	waiting []*pacedSignal
}

// pacedSignal is a signal that waits. At its time it is sent to the thread again.
type pacedSignal struct {
	delayedSignal
	tid   int
	due   int64
	timer *time.Timer
}

const (
	// pacedValue is the value of signals that are sent at their time. See resentValue.
	pacedValue = 0x7265746c_705f6469
	// longestRest is for handlers that take very long natively, too.
	longestRest = int64(time.Second)
)

func monotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // every kernel has this clock
	}
	return t.Nano()
}

// isTimer reports whether a signal is of timer_create, or of setitimer and alarm. So does
// dg_is_timer of the engine.
func isTimer(s syscall.Signal, info *ptrace.Siginfo) bool {
	switch info.Code() {
	case siginfo.Timer:
		return true
	case siginfo.Kernel:
		return s == unix.SIGALRM || s == unix.SIGVTALRM || s == unix.SIGPROF
	}
	return false
}

// pace returns the siginfo with which a signal arrives in the program. waits: the thread has
// continued without the signal.
func (x *tracee) pace(s syscall.Signal, info ptrace.Siginfo) (_ ptrace.Siginfo, waits bool, err error) {
	r := x.process.recording
	again := info.Queued(pacedValue)
	if r == nil || r.hunt != nil || !again && !isTimer(s, &info) {
		return info, false, nil
	}
	p, now := &x.process.pacer, monotonic()
	if again {
		first, ok := p.take(x.process.pid, x.tid, s)
		if !ok { // a later signal of its timer has arrived instead
			return info, true, x.proceed(0)
		}
		info, err = first, ptrace.SetSiginfo(x.tid, first)
	} else if waits, err = x.waitsForRest(s, &info, now); waits && err == nil {
		return info, true, x.proceed(0)
	}
	if err != nil {
		return info, false, err
	}
	p.note(x, now)
	return info, false, nil
}

// waitsForRest decides whether a signal that a timer sends now waits.
func (x *tracee) waitsForRest(s syscall.Signal, info *ptrace.Siginfo, now int64) (bool, error) {
	p, r := &x.process.pacer, x.process.recording
	if waits, known := p.merge(s, info, now); known {
		return waits, nil
	}
	if p.look(r.timerReturned); now >= p.rests {
		return false, nil
	}
	at, err := r.standing(x)
	if err != nil || at.asleep && (len(x.process.threads) == 1 || int64(at.regs.Rax) == -int64(unix.EINTR)) {
		return false, err // the program waits for its signals; or the call would fail without one
	}
	w := &pacedSignal{delayedSignal: delayedSignal{s, *info}, tid: x.tid, due: p.rests}
	w.timer = time.AfterFunc(time.Duration(p.rests-now), func() { w.send(x.process.pid) })
	p.waiting = append(p.waiting, w)
	return true, nil
}

// note notes that a thread is given a signal.
func (p *pacer) note(x *tracee, now int64) {
	if p.given == nil {
		p.given = map[*tracee]int64{}
	}
	p.given[x] = now
}

// look finds out which handlers have returned. returned is as timerReturned.
func (p *pacer) look(returned func(*tracee) (int64, bool)) {
	for x, given := range p.given {
		at, known := returned(x)
		if known && at < given {
			continue // its handler runs
		}
		delete(p.given, x)
		if known {
			p.rests = max(p.rests, at+min(at-given, longestRest))
		}
	}
}

// merge adds a signal to one of the same timer that waits, as the kernel does. If the time of
// that one has come, the signal takes its place. known: there is one.
func (p *pacer) merge(s syscall.Signal, info *ptrace.Siginfo, now int64) (waits, known bool) {
	const same, overrun = 20, 20 // si_signo, si_errno, si_code, si_timerid; then si_overrun
	i := slices.IndexFunc(p.waiting, func(w *pacedSignal) bool { return bytes.Equal(w.info[:same], info[:same]) })
	if i < 0 {
		return false, false
	}
	w := p.waiting[i]
	if now >= w.due {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return false, true
	}
	if info.Code() == siginfo.Timer {
		le := binary.LittleEndian
		le.PutUint32(w.info[overrun:], le.Uint32(w.info[overrun:])+le.Uint32(info[overrun:])+1)
	}
	return true, true
}

// take removes the first signal that waited for a thread and returns its siginfo. Of several
// with one number the kernel has kept only one, so the others are sent once more.
func (p *pacer) take(pid, tid int, s syscall.Signal) (info ptrace.Siginfo, ok bool) {
	now := monotonic()
	due := func(w *pacedSignal) bool { return w.signal == s && now >= w.due }
	i := slices.IndexFunc(p.waiting, func(w *pacedSignal) bool { return due(w) && w.tid == tid })
	if i < 0 {
		i = slices.IndexFunc(p.waiting, due) // its thread has ended
	}
	if i < 0 {
		return info, false
	}
	info = p.waiting[i].info
	p.waiting = slices.Delete(p.waiting, i, i+1)
	for _, w := range p.waiting {
		if due(w) {
			w.send(pid)
		}
	}
	return info, true
}

// send sends the signal to its thread or, if that has ended, to the first one. It may be called
// from any kernel thread.
func (w *pacedSignal) send(pid int) {
	if ptrace.Queue(pid, w.tid, w.signal, pacedValue) != nil {
		ptrace.Queue(pid, pid, w.signal, pacedValue) // or the process has ended
	}
}

// executed is called when the process executes another program. Signals that wait remain.
func (p *pacer) executed() { p.given, p.rests = nil, 0 }

// ended is called when the process has ended.
func (p *pacer) ended() {
	for _, w := range p.waiting {
		w.timer.Stop()
	}
}
