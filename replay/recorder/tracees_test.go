package recorder

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/replay/ptrace"
)

// A thread's first stop may be seen before that of the thread that made it. It is the same
// thread when its process is known.
func TestThreadBeforeItsProcess(t *testing.T) {
	all := newTracees()
	early := &tracee{tid: 12, stopped: true}
	all.threads[12] = early
	p := all.newProcess(10, &ancestor{})
	if x := all.thread(12, p); x != early || x.process != p || !x.stopped || len(p.threads) != 2 {
		t.Errorf("%+v of %d threads", x, len(p.threads))
	}
	if all.threads[10].process != p || all.processes[10] != p {
		t.Error("the process's first thread is not known")
	}
}

// Only processes whose first thread is still to be stopped are waited for.
func TestEndingProcesses(t *testing.T) {
	all := newTracees()
	for pid, c := range map[int]struct{ ends, done, stopped bool }{1: {}, 2: {ends: true}, 3: {ends: true, done: true}, 4: {ends: true, stopped: true}} {
		p := all.newProcess(pid, &ancestor{})
		if c.ends {
			p.ending = &ending{done: c.done}
		}
		p.threads[pid].stopped = c.stopped
	}
	if list := all.ending(); len(list) != 1 || list[0].pid != 2 {
		t.Errorf("%d processes", len(list))
	}
}

// The user is told of a thing once in a run.
func TestWarnedOnce(t *testing.T) {
	var told []string
	w := &warned{link: &link{hear: func(n notice) { told = append(told, n.Warning) }}}
	for range 2 {
		w.warnOnce(&w.shared, "process %d", 3)
		w.warnOnce(&w.filter, "a filter")
	}
	if len(told) != 2 || told[0] != "process 3" || told[1] != "a filter" {
		t.Errorf("%q", told)
	}
}

// A thread that was asked for a stop, and has stopped for another reason, may be asked again: the kernel takes the first request away when
// it stops for an event. Where it was not, the end of its process waited for it without limit.
func TestAskedAgain(t *testing.T) {
	cat := exec.Command("cat")
	in, err := cat.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cat.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cat.Process.Pid
	err = ptrace.OnThread(func() error {
		if err := ptrace.Seize(pid, 0); err != nil {
			return err
		}
		w := &tracer{tracees: newTracees()}
		x := w.tracees.newProcess(pid, &ancestor{}).threads[pid]
		x.interrupted = true
		if err := ptrace.Signal(pid, pid, unix.SIGWINCH); err != nil {
			return err
		}
		stop, err := ptrace.WaitFor(pid)
		if err != nil {
			return err
		}
		if err := w.handle(stop); err != nil {
			return err
		}
		if stop.Kind != ptrace.SignalStop || x.interrupted || x.stopped {
			t.Errorf("after %v (kind %d): asked for a stop: %v, stopped: %v", stop, stop.Kind, x.interrupted, x.stopped)
		}
		return nil
	})
	in.Close()
	cat.Wait()
	if err != nil {
		t.Fatal(err)
	}
}
