package recorder

import (
	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/recorder/schedule"
	"diagnose/replay/recorder/sites"
)

// beginHunt sets up the engine's scheduling of threads in a process. A fork's child has its
// parent's memory, and so the parent's setup.
func (r *recording) beginHunt(tid int, memory *ptrace.Memory, forked bool) error {
	if r.run.order.Turns != nil {
		return r.beginTurns(tid, memory, forked)
	}
	h := r.run.order.Hunt
	if h == nil {
		return nil
	}
	r.hunt, r.manifest.Hunt = h, &record.HuntedRun{Hunt: *h}
	if h.Globals {
		r.points = sites.Points{Memory: r.memory}
	}
	if forked {
		return nil
	}
	r.control.Hunt = agent.EngineHunt
	if err := schedule.Map(h, tid, memory); err != nil {
		return err
	}
	return r.addPoints(tid, memory)
}

// noteHunted stores the result of the hunt in the process.
func (r *recording) noteHunted() {
	if r.hunt == nil {
		return
	}
	hunted, err := schedule.Read(r.memory)
	if err != nil {
		r.limit("hunt", err.Error())
		return
	}
	if raw, err := sites.ReadHunt(r.memory); err == nil && r.points.Of > 0 {
		hunted.Globals = &record.GlobalPoints{Points: int(raw.SitesSet), Of: r.points.Of}
	}
	r.manifest.Hunt.Hunted = *hunted
}

// stuck handles a process none of whose threads can continue. It ends like a process that was
// made to leave a core.
func (t *tracer) stuck(x *tracee, regs *ptrace.Registers) error {
	return t.stopAll(x, func() error {
		r := x.process.recording
		var info ptrace.Siginfo
		r.noteHunted()
		r.noteUnsettled(x.process)
		r.failed(x, unix.SIGABRT, &info)
		r.ending.Stuck = schedule.StuckReasons[regs.Rsi]
		r.ending.Text = "the program " + r.ending.Stuck.Words()
		r.takeEvidence()
		r.checkStopped(x.process.pid)
		r.writeCore(x, int(unix.SIGABRT), &info)
		return unix.Kill(x.process.pid, unix.SIGKILL)
	})
}
