package recorder

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"diagnose/replay/ptrace"
	"diagnose/replay/record"
)

// RunHunted is Run for Options.Hunt, traced by this process. Several may run at the same time.
// The program's first descriptors are the given files. It does not outlive this process, and
// the processes that it leaves are ended with it.
func RunHunted(ctx context.Context, o Options, files []*os.File) (Result, error) {
	h, err := newHunted(ctx, &o, files)
	if err != nil {
		return Result{}, err
	}
	return h.end(ptrace.OnThread(h.tracer.trace))
}

// Hunter runs a program repeatedly, as RunHunted does. Quiet runs are forks of a process that
// has loaded the program, where that is possible; later changes of the program's file do not
// matter to them. A Hunter is for one caller at a time.
type Hunter struct {
	options Options
	files   []*os.File
	thread  *hunterThread // nil: none yet, or it has ended
}

// NewHunter returns a Hunter with the options; their Hunt is ignored. Close ends it.
func NewHunter(o Options, files []*os.File) *Hunter { return &Hunter{options: o, files: files} }

// Run makes a run.
func (h *Hunter) Run(ctx context.Context, hunt *record.Hunt) (Result, error) {
	o := h.options
	o.Hunt = hunt
	if !hunt.Quiet {
		return RunHunted(ctx, o, h.files)
	}
	for {
		if h.thread == nil {
			h.thread = newHunterThread()
		}
		x, err := newHunted(ctx, &o, h.files)
		if err != nil {
			return Result{}, err
		}
		err = h.thread.runHunted(x.tracer)
		if x.tracer.server == nil || err != nil {
			h.Close()
		}
		if errors.Is(err, errServerLost) {
			continue // once: a new thread has no server to lose
		}
		return x.end(err)
	}
}

// Close ends the process that waits for the next run.
func (h *Hunter) Close() {
	if h.thread != nil {
		h.thread.close()
		h.thread = nil
	}
}

// hunterThread is the thread that traces a Hunter's runs: a fork server has one tracer, and a
// tracer is a thread.
type hunterThread struct {
	runs  chan *tracer
	ended chan error
}

func newHunterThread() *hunterThread {
	x := &hunterThread{runs: make(chan *tracer), ended: make(chan error)}
	go func() {
		ptrace.OnThread(x.serve)
		close(x.ended)
	}()
	return x
}

func (x *hunterThread) serve() error {
	var server *forkServer
	for t := range x.runs {
		t.serves, t.server = true, server
		err := t.trace()
		server = t.server
		x.ended <- err
	}
	if server != nil {
		server.end()
	}
	return nil
}

func (x *hunterThread) runHunted(t *tracer) error {
	x.runs <- t
	return <-x.ended
}

// close returns when the thread and its processes have ended.
func (x *hunterThread) close() {
	close(x.runs)
	<-x.ended
}

// hunted is the launcher's side of a run that this process traces.
type hunted struct {
	ctx    context.Context
	tracer *tracer
	warn   func(string)
	stop   func() bool
	result *Result
}

func newHunted(ctx context.Context, o *Options, files []*os.File) (*hunted, error) {
	work, err := o.order()
	if err != nil {
		return nil, err
	}
	if o.Hunt == nil {
		return nil, errors.New("record: a hunt without a schedule")
	}
	h := &hunted{ctx: ctx, warn: o.Warn}
	l := &link{hear: h.hear}
	t := &tracer{order: work, link: l, warned: warned{link: l}, tracees: newTracees()}
	for _, f := range files {
		t.streams = append(t.streams, f.Fd())
	}
	if t.run, err = newRun(work); err != nil {
		return nil, err
	}
	t.run.warn = h.warn
	h.tracer = t
	return h, nil
}

// end returns the result of the run. err is the error of the tracer.
func (h *hunted) end(err error) (Result, error) {
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

// hear is called by the tracer's thread.
func (h *hunted) hear(n notice) {
	switch {
	case n.Started != 0:
		if h.stop != nil {
			h.stop() // of the process that the program is a fork of
		}
		h.stop = context.AfterFunc(h.ctx, func() { unix.Kill(n.Started, unix.SIGKILL) })
	case n.Warning != "" && h.warn != nil:
		h.warn(n.Warning)
	case n.Ended != nil:
		n.Ended.Dir = string(n.Dir)
		h.result = n.Ended
		for pid := range h.tracer.tracees.processes {
			unix.Kill(pid, unix.SIGKILL)
		}
	}
}
