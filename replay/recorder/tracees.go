package recorder

import (
	"maps"
	"slices"
	"syscall"

	"diagnose/replay/ptrace"
	"diagnose/replay/record"
)

// tracees are the traced threads and processes of a program.
type tracees struct {
	// threads are those of all processes, by their ids in the kernel.
	threads   map[int]*tracee
	processes map[int]*process
	main      *process
}

func newTracees() tracees {
	return tracees{threads: map[int]*tracee{}, processes: map[int]*process{}}
}

// tracee is a traced thread.
type tracee struct {
	tid     int
	process *process
	// stopped: it is in a ptrace stop, and continues only by a request.
	stopped bool
	// interrupted: a stop was requested, and none was reported since. Any stop answers the request: an event's takes it away (ptrace_stop in
	// kernel/signal.c).
	interrupted bool
	// vforking: it waits in the kernel for a child of vfork, and cannot stop.
	vforking bool
	// held is a stop that is handled when the core is written.
	held *ptrace.Stop
	// index is the engine's number of the thread, if it was looked up; 0: none.
	index uint32
	// delay is set while signals wait for the thread to reach another place, settling while its
	// process is about to end.
	delay    *delay
	settling *settling
	// resent are signals that were sent to the thread again, and have not arrived.
	resent []delayedSignal
	// handed is the last signal sent by a process that the engine's handler was given, and for
	// which the program may have no handler.
	handed *ptrace.Siginfo
	// seeking counts the steps that it has made since its turn was over; 0: it is not stepped for that.
	seeking int
	// holding: the turn's timer cannot interrupt it.
	holding bool
	// vain is its last stop for the end of a turn that could not end there.
	vain vainStop
	// parent is the parent of a process whose creation has not been reported.
	parent int
}

// process is a traced process.
type process struct {
	pid     int
	threads map[int]*tracee
	// recording is nil while the process is not recorded.
	recording *recording
	// program is the program that it executed last while it was not recorded; empty: none.
	program record.Text
	// from is the recording that this one's will be a child of.
	from *ancestor
	// failing has one thread's fault: another's waits for it.
	failing failing
	// ending is set while the process is stopped for its core.
	ending *ending
	// leaving is set while the tracer detaches from the process.
	leaving *leaving
	// pacer spaces the signals of its timers.
	pacer pacer
}

func (t *tracees) newProcess(pid int, from *ancestor) *process {
	p := &process{pid: pid, threads: map[int]*tracee{}, from: from}
	t.processes[pid] = p
	t.thread(pid, p)
	return p
}

// thread adds a thread to a process. The first stop of a thread may be reported before that of
// the thread that made it. Until then it has no process.
func (t *tracees) thread(tid int, p *process) *tracee {
	x := t.threads[tid]
	if x == nil {
		x = &tracee{tid: tid}
		t.threads[tid] = x
	}
	x.process = p
	p.threads[tid] = x
	return x
}

// ending returns the processes whose threads are being stopped for their core, including the
// first thread.
func (t *tracees) ending() []*process {
	return slices.DeleteFunc(slices.Collect(maps.Values(t.processes)), func(p *process) bool {
		leader := p.threads[p.pid]
		return p.ending == nil || p.ending.done || leader == nil || leader.stopped
	})
}

// proceed continues a stopped thread, with a signal.
func (x *tracee) proceed(s syscall.Signal) error {
	x.releaseTimer()
	x.stopped, x.seeking = false, 0
	if x.delay != nil {
		return ptrace.Step(x.tid, s)
	}
	return ptrace.Cont(x.tid, s)
}

// answer answers a question of the engine.
func (x *tracee) answer(regs *ptrace.Registers, value uint64) error {
	regs.Rax, regs.Orig_rax = value, ^uint64(0)
	if err := ptrace.SetRegisters(x.tid, regs); err != nil {
		return err
	}
	return x.proceed(0)
}

// interrupt requests a stop of a thread.
func (x *tracee) interrupt() {
	if ptrace.Interrupt(x.tid) == nil { // otherwise it has just ended
		x.interrupted = true
	}
}
