package record

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/internal/ptrace"
)

// beginHunt tells a process whose threads are to run in an order of the engine's.
// A fork's child has its parent's memory, and so what its parent was told.
func (r *recording) beginHunt(tid int, memory *ptrace.Memory, forked bool) error {
	h := r.run.order.Hunt
	if h == nil {
		return nil
	}
	r.hunt, r.manifest.Hunt = h, &HuntedRun{Hunt: *h}
	if forked {
		return nil
	}
	r.control.Hunt = agent.EngineHunt
	if err := h.begin(tid, memory); err != nil {
		return err
	}
	return r.addPoints(tid, memory)
}

// share has the calling thread, which ends with the run, stay on the processor of the
// program's threads: of those one runs at a time, and none while it looks.
func (h *Hunt) share() {
	if h.Processor < 0 {
		return
	}
	var set unix.CPUSet
	set.Set(h.Processor)
	unix.SchedSetaffinity(0, &set) // without it the run takes longer
}

// noteHunted takes over what the process has come to.
func (r *recording) noteHunted() {
	if r.hunt == nil {
		return
	}
	hunted, err := readHunted(r.memory)
	if err != nil {
		r.limit("hunt", err.Error())
		return
	}
	if raw, err := readHunt(r.memory); err == nil && r.hunt.Globals && r.pointsOf > 0 {
		hunted.Globals = &GlobalPoints{Points: int(raw.SitesSet), Of: r.pointsOf}
	}
	r.manifest.Hunt.Hunted = *hunted
}

// stuck is for a process none of whose threads can go on. It ends as one would
// that somebody made leave a core.
func (t *tracer) stuck(x *tracee, regs *ptrace.Registers) error {
	return t.stopAll(x, func() error {
		r := x.process.recording
		var info ptrace.Siginfo
		r.noteHunted()
		r.noteUnsettled(x.process)
		r.failed(x, unix.SIGABRT, &info)
		r.ending.Stuck = stuckReasons[regs.Rsi]
		r.ending.Text = "the program " + r.ending.Stuck.words()
		r.takeEvidence(x.process.pid)
		r.checkStopped(x.process.pid)
		r.writeCore(x, int(unix.SIGABRT), &info)
		return unix.Kill(x.process.pid, unix.SIGKILL)
	})
}

// RunHunted is Run for Options.Hunt, traced by this process, as many of them at the
// same time as there are callers. The program has the given files as its first
// descriptors, and does not outlive this process; what it leaves behind is ended
// with it.
func RunHunted(ctx context.Context, o Options, files []*os.File) (Result, error) {
	work, err := o.order()
	if err != nil {
		return Result{}, err
	}
	if o.Hunt == nil {
		return Result{}, errors.New("record: a hunt without a schedule")
	}
	h := &hunted{ctx: ctx, warn: o.Warn}
	t := &tracer{order: work, link: &link{hear: h.hear}, threads: map[int]*tracee{}, processes: map[int]*process{}}
	for _, f := range files {
		t.streams = append(t.streams, f.Fd())
	}
	if t.run, err = newRun(work); err != nil {
		return Result{}, err
	}
	t.run.warn = h.warn
	h.tracer = t
	err = t.trace()
	if h.stop != nil {
		h.stop()
	}
	if err == nil && h.result == nil {
		err = errors.New("record: the program's end was not seen")
	}
	if err != nil {
		return Result{}, err
	}
	return *h.result, nil
}

// hunted is the launcher's side of RunHunted.
type hunted struct {
	ctx    context.Context
	tracer *tracer
	warn   func(string)
	stop   func() bool
	result *Result
}

// hear is called by the tracer's thread.
func (h *hunted) hear(n notice) {
	switch {
	case n.Started != 0:
		h.stop = context.AfterFunc(h.ctx, func() { unix.Kill(n.Started, unix.SIGKILL) })
	case n.Warning != "" && h.warn != nil:
		h.warn(n.Warning)
	case n.Ended != nil:
		n.Ended.Dir = string(n.Dir)
		h.result = n.Ended
		for pid := range h.tracer.processes {
			unix.Kill(pid, unix.SIGKILL)
		}
	}
}
