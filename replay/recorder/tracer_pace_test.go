package recorder

import (
	"encoding/binary"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/internal/siginfo"
	"diagnose/replay/ptrace"
)

const ms = int64(time.Millisecond)

// After the handler of a timer's signal, signals wait for as long as the handler took.
func TestRestAfterHandlers(t *testing.T) {
	slow, fast, other, gone := &tracee{tid: 1}, &tracee{tid: 2}, &tracee{tid: 3}, &tracee{tid: 4}
	for _, c := range []struct {
		name     string
		given    map[*tracee]int64
		returned map[*tracee]int64
		rests    int64
		left     int // handlers that have not returned
	}{
		{"never", nil, nil, 0, 0},
		{"running", map[*tracee]int64{slow: 100 * ms}, map[*tracee]int64{slow: 90 * ms}, 0, 1},
		{"returned", map[*tracee]int64{slow: 100 * ms}, map[*tracee]int64{slow: 106 * ms}, 112 * ms, 0},
		{"the later counts", map[*tracee]int64{slow: 100 * ms, fast: 105 * ms}, map[*tracee]int64{slow: 106 * ms, fast: 106 * ms}, 112 * ms, 0},
		{"another still runs", map[*tracee]int64{slow: 100 * ms, other: 103 * ms}, map[*tracee]int64{slow: 106 * ms, other: 0}, 112 * ms, 1},
		{"very long", map[*tracee]int64{slow: 0}, map[*tracee]int64{slow: 60000 * ms}, 61000 * ms, 0},
		{"its thread has ended", map[*tracee]int64{gone: 100 * ms}, nil, 0, 0},
	} {
		p := pacer{given: c.given}
		p.look(func(x *tracee) (int64, bool) { at, ok := c.returned[x]; return at, ok })
		if p.rests != c.rests || len(p.given) != c.left {
			t.Errorf("%s: rests until %d ms, want %d; %d handlers run, want %d", c.name, p.rests/ms, c.rests/ms, len(p.given), c.left)
		}
	}
}

func timerSignal(s syscall.Signal, code int32, id, overrun uint32) ptrace.Siginfo {
	var info ptrace.Siginfo
	le := binary.LittleEndian
	le.PutUint32(info[0:], uint32(s))
	le.PutUint32(info[8:], uint32(code))
	le.PutUint32(info[16:], id)
	le.PutUint32(info[20:], overrun)
	return info
}

// A timer has one signal at a time; how many it should have had is counted where the kernel
// counts it.
func TestWaitingSignalsMerge(t *testing.T) {
	alarm := timerSignal(unix.SIGALRM, siginfo.Kernel, 0, 0)
	first, second := timerSignal(40, siginfo.Timer, 1, 2), timerSignal(40, siginfo.Timer, 2, 0)
	p := pacer{waiting: []*pacedSignal{
		{delayedSignal: delayedSignal{unix.SIGALRM, alarm}, due: 100 * ms},
		{delayedSignal: delayedSignal{40, first}, due: 100 * ms},
	}}
	if waits, known := p.merge(40, &second, 50*ms); known || waits {
		t.Error("the signal of another timer is merged")
	}
	again := timerSignal(40, siginfo.Timer, 1, 3)
	if waits, known := p.merge(40, &again, 50*ms); !known || !waits {
		t.Error("the signal of one timer waits twice")
	}
	if n := binary.LittleEndian.Uint32(p.waiting[1].info[20:]); n != 2+3+1 {
		t.Errorf("%d overruns, want 6", n)
	}
	if waits, known := p.merge(unix.SIGALRM, &alarm, 50*ms); !known || !waits || p.waiting[0].info != alarm {
		t.Errorf("SIGALRM is not merged, or was changed: %v", p.waiting[0].info)
	}
	// What was sent at its time may have been dropped by the kernel for this one.
	if waits, known := p.merge(unix.SIGALRM, &alarm, 101*ms); !known || waits || len(p.waiting) != 1 {
		t.Errorf("a signal does not take the place of one that was due: %d wait", len(p.waiting))
	}
	if _, ok := p.take(1, 1, unix.SIGALRM); ok {
		t.Error("a signal is taken twice")
	}
}

func TestTimerSignals(t *testing.T) {
	for _, c := range []struct {
		signal syscall.Signal
		code   int32
		want   bool
	}{
		{unix.SIGALRM, siginfo.Kernel, true}, {unix.SIGPROF, siginfo.Kernel, true}, {unix.SIGVTALRM, siginfo.Kernel, true},
		{unix.SIGUSR1, siginfo.Timer, true}, {unix.SIGALRM, 0, false}, {unix.SIGALRM, -1, false}, {unix.SIGINT, siginfo.Kernel, false},
	} {
		info := timerSignal(c.signal, c.code, 0, 0)
		if got := isTimer(c.signal, &info); got != c.want {
			t.Errorf("signal %d, code %d: %v", c.signal, c.code, got)
		}
	}
}
