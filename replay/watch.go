package replay

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/replay/tracee"
	"diagnose/replay/tracepoint"
)

const (
	defaultSleeping  = 10 * time.Second
	defaultComputing = 60 * time.Second
	// watchInterval is the time between two looks, of some 30 us each. It is long because the
	// replay needs the processor.
	watchInterval = 10 * time.Millisecond
)

// watchdog makes sure that a replay ends. It looks at the process from another kernel thread. It
// wakes the tracing thread, which sleeps in wait4, by stopping the process.
type watchdog struct {
	sleeping, computing time.Duration
	progress            func(done uint64)
	done                <-chan struct{}
	tracer              int // the tracing thread

	quit   chan struct{}
	ended  sync.WaitGroup
	once   sync.Once
	paused atomic.Bool
	// process is the process to look at.
	process atomic.Pointer[watched]
	// wake is the reason why the tracing thread was woken.
	wake atomic.Int32
	// saw describes the state seen at that time; it is set before wake.
	saw string
	// question is about the thread that computes, which was stopped for it; nil: none.
	question atomic.Pointer[question]
	// asks: such questions are asked.
	asks bool
	// hits counts accesses to watched words: a program that makes many of them makes progress, if
	// slowly.
	hits atomic.Uint64
	// handled has the arrivals that are handled in the process; nil: there are none.
	handled atomic.Pointer[tracepoint.Tracepoints]
	// interrupt asks for a stop of the thread that has the right to run; nil: there are no such requests.
	interrupt *Interruption
}

type watched struct {
	pid     int
	control uint64
}

const (
	wakeNone = iota
	wakeSleeping
	wakeComputing
	wakeCancelled
	wakeHits // accesses could not be taken: tracing.err
)

func startWatchdog(c *controller) *watchdog {
	w := &watchdog{asks: c.request.free == nil, sleeping: c.judge.sleeping, computing: c.judge.computing, done: c.ctx.Done(), tracer: unix.Gettid(), quit: make(chan struct{})}
	if p := c.request.Progress; p != nil {
		w.progress = func(done uint64) { p(min(done, c.result.Total), c.result.Total) }
	}
	if d := c.request.debug; d != nil {
		w.interrupt = d.Interrupt
	}
	w.process.Store(&watched{pid: c.PID})
	w.ended.Go(w.keepWatch)
	return w
}

func (w *watchdog) stop() {
	w.once.Do(func() { close(w.quit) })
	w.ended.Wait()
}

func (w *watchdog) pause()  { w.paused.Store(true) }
func (w *watchdog) resume() { w.paused.Store(false) }

// watchProcess sets the process to watch.
func (w *watchdog) watchProcess(pid int, control uint64) { w.process.Store(&watched{pid, control}) }

func (w *watchdog) keepWatch() {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	var s watchState
	s.start(time.Now())
	for {
		select {
		case <-w.quit:
			return
		case <-w.done:
			w.rouse(wakeCancelled)
			return
		case now := <-tick.C:
			if w.paused.Load() {
				s.start(now)
				continue
			}
			s.noteLook(now)
			p := w.process.Load()
			if s.see(now, p.consumed(), processorTime(p.pid)) {
				w.question.Store(nil) // the signal came too late for that
			}
			s.hit(now, w.hits.Load()+w.handled.Load().Handled())
			if tid := p.holder(); w.interrupt.pending() && tid != 0 {
				unix.Tgkill(p.pid, tid, unix.SIGSTOP)
			}
			if w.progress != nil {
				w.progress(s.consumed)
			}
			switch {
			case now.Sub(s.moved) > w.sleeping && !tracee.Sleeps(p.pid, 0):
				// It waits for a processor, a disk, or this process.
				s.moved = now
			case now.Sub(s.moved) > w.sleeping:
				w.saw = w.describeThreads(&s)
				w.rouse(wakeSleeping)
				return
			case s.computes(now, w.computing):
				w.saw = w.describeThreads(&s)
				w.rouse(wakeComputing)
				return
			case w.asks && w.question.Load() == nil && s.asks():
				w.ask(p, &s, now)
			}
		}
	}
}

// watchState is the state seen last.
type watchState struct {
	consumed uint64
	time     uint64
	hits     uint64
	looks    int
	looked   time.Time // last
	event    time.Time // of the last event seen
	used     uint64    // processor time then
	moved    time.Time // of the last sign of life
	// came and since are the time of the last event and the processor time then, regardless of
	// hits. ask is the processor time after that at which the next question is due.
	came       time.Time
	since, ask uint64
}

func (s *watchState) start(now time.Time) {
	s.looked, s.event, s.moved, s.used = now, now, now, s.time
	s.came, s.since, s.ask = now, s.time, firstAsk
}

// noteLook discounts the time in which this process could not look, because it was stopped or had
// no processor: the replayed process may not have run either.
func (s *watchState) noteLook(now time.Time) {
	if late := now.Sub(s.looked) - watchInterval; late > watchInterval {
		s.event, s.moved = s.event.Add(late), s.moved.Add(late)
	}
	s.looked = now
	s.looks++
}

// see takes the current counts. came: there was an event.
func (s *watchState) see(now time.Time, consumed, time uint64) (came bool) {
	if time < s.time { // of another process
		s.used, s.since = time, time
	}
	if came = consumed != s.consumed; came {
		s.consumed, s.event, s.used, s.moved = consumed, now, time, now
		s.came, s.since, s.ask = now, time, firstAsk
	}
	if time != s.time {
		s.time, s.moved = time, now
	}
	return came
}

const (
	// firstAsk is the processor time, in ticks, after which the watchdog asks whether a loop has
	// an end. Each further question comes after twice as much.
	firstAsk = 3
	// stepsPerTick is how many instructions are stepped for a question: at 20 us each, a twentieth
	// of the time.
	stepsPerTick = 25
)

// asks reports whether it is time for a question.
func (s *watchState) asks() bool {
	used := s.time - s.since
	if used < s.ask {
		return false
	}
	s.ask = 2 * used
	return true
}

// ask stops the thread that has the right to run. The thread's next SIGSTOP then belongs to this
// question.
func (w *watchdog) ask(p *watched, s *watchState, now time.Time) {
	tid := p.holder()
	if tid == 0 {
		return
	}
	w.question.Store(&question{after: now.Sub(s.came), steps: int(s.time-s.since) * stepsPerTick})
	if unix.Tgkill(p.pid, tid, unix.SIGSTOP) != nil {
		w.question.Store(nil) // it has ended
	}
}

// busyShare: a process that computes may get as little as one part in busyShare of a processor.
// busyTimes is how many times longer it may take if it gets less, or is held up by its tracer.
const (
	busyShare = 8
	busyTimes = 10
)

// computes reports whether the process ran without an event for longer than it may. It must also
// have had the processor time for it.
func (s *watchState) computes(now time.Time, may time.Duration) bool {
	const tick = time.Second / 100 // USER_HZ
	since := now.Sub(s.event)
	return since > may && (time.Duration(s.time-s.used)*tick > may/busyShare || since > busyTimes*may)
}

func (s *watchState) hit(now time.Time, hits uint64) {
	if hits != s.hits {
		s.hits, s.event, s.used, s.moved = hits, now, s.time, now
	}
}

// rouse stops the process: SIGSTOP can be neither blocked nor ignored.
func (w *watchdog) rouse(why int32) {
	w.wake.Store(why)
	unix.Kill(w.process.Load().pid, unix.SIGSTOP)
}

// woke reports whether a SIGSTOP is the watchdog's.
func (w *watchdog) woke() bool { return w.wake.Load() != wakeNone }

// consumed returns the engine's count of events. A failed read counts as no progress.
func (p *watched) consumed() uint64 {
	if p.control == 0 {
		return 0
	}
	return p.word(p.control + uint64(unsafe.Offsetof(agent.RawControl{}.Consumed)))
}

// holder returns the kernel's id of the thread that has the right to run; 0 if it is not known.
func (p *watched) holder() int {
	if p.control == 0 {
		return 0
	}
	index := uint32(p.word(p.control + uint64(unsafe.Offsetof(agent.RawControl{}.Holder))))
	if index == 0 || index >= agent.RThreads {
		return 0
	}
	return int(uint32(p.word(agent.RThreadAddress(index) + uint64(unsafe.Offsetof(agent.RawRThread{}.RealTID)))))
}

// word reads 8 bytes; 0 if they cannot be read.
func (p *watched) word(addr uint64) uint64 {
	var b [8]byte
	local := []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}
	remote := []unix.RemoteIovec{{Base: uintptr(addr), Len: len(b)}}
	if n, err := unix.ProcessVMReadv(p.pid, local, remote, 0); err != nil || n != len(b) {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}

// processorTime returns the sum of utime and stime of proc_pid_stat(5), in ticks.
func processorTime(pid int) uint64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name, in parentheses, may have spaces and parentheses in it.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const user, system = 11, 12
	if len(fields) <= system {
		return 0
	}
	a, _ := strconv.ParseUint(string(fields[user]), 10, 64)
	b, _ := strconv.ParseUint(string(fields[system]), 10, 64)
	return a + b
}

// woken handles the wake-up of the tracing thread by the watchdog.
func (c *controller) woken(t *tracee.Thread) error {
	why := c.watch.wake.Load()
	switch why {
	case wakeCancelled:
		return c.ctx.Err()
	case wakeHits:
		return c.tracing.Err
	}
	if err := c.stuck(t, why == wakeComputing); err != nil {
		return err
	}
	c.end.failure.(*StuckError).Kernel = c.watch.saw
	return nil
}

// describeThreads describes what the kernel knows of a replay without progress: the state of the
// process's threads, and of the thread that traces them, which may itself be stuck.
func (w *watchdog) describeThreads(s *watchState) string {
	var b strings.Builder
	pid := w.process.Load().pid
	now := time.Now()
	fmt.Fprintf(&b, "process %d, looked at %d times, the last event %v ago, the last sign of life %v ago",
		pid, s.looks, now.Sub(s.event).Round(time.Millisecond), now.Sub(s.moved).Round(time.Millisecond))
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		fmt.Fprintf(&b, "; %v", err)
	}
	const most = 16
	for _, task := range tasks[:min(len(tasks), most)] {
		fmt.Fprintf(&b, "; thread %s %s", task.Name(), tracee.KernelState(pid, task.Name()))
	}
	fmt.Fprintf(&b, "; the tracing thread %d %s", w.tracer, tracee.KernelState(os.Getpid(), strconv.Itoa(w.tracer)))
	return b.String()
}
