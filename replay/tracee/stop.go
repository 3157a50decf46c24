package tracee

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/replay/ptrace"
)

// Gone returns the error for a process that ended although the replay did not end it.
func (p *Process) Gone(stop *ptrace.Stop) error {
	if stop == nil {
		return fmt.Errorf("replay: process %d has vanished", p.PID)
	}
	if !p.Started {
		return Inputf("replay: the program came to %v before the recorder started in it", stop)
	}
	return fmt.Errorf("replay: process %d came to %v outside of the replay", p.PID, stop)
}

// queue keeps a stop that was waited for before its turn.
func (p *Process) queue(stop ptrace.Stop) { p.queued = append(p.queued, stop) }

// Queued returns the next stop that was waited for while another thread was handled, as if it had only been reported now.
func (p *Process) Queued() (stop ptrace.Stop, found bool) {
	for len(p.queued) > 0 && !found {
		stop = p.queued[0]
		p.queued = p.queued[1:]
		found = p.Threads[stop.TID] != nil
	}
	return stop, found
}

// runs reports whether a thread is in no ptrace stop.
func (p *Process) runs(t *Thread) bool {
	return !t.Stopped && !slices.ContainsFunc(p.queued, func(s ptrace.Stop) bool { return s.TID == t.TID })
}

// interrupt stops a thread if it runs. stopped: it has, and continues by its resumption. Any other stop is queued.
func (p *Process) interrupt(t *Thread) (stopped bool, err error) {
	if !p.runs(t) {
		return false, nil
	}
	if err := ptrace.Interrupt(t.TID); errors.Is(err, unix.ESRCH) {
		return false, nil // its end is reported next
	} else if err != nil {
		return false, err
	}
	stop, found, err := p.waitInterrupted(t.TID)
	if err != nil || !found {
		return false, err
	}
	if stop.Kind == ptrace.Interrupted && t.passing.pc == 0 && t.resumption != nil {
		return true, nil
	}
	p.queue(stop)
	return false, nil
}

// waitInterrupted waits for a stop of a thread that was interrupted. found is false if it is the main thread and has ended while others run.
func (p *Process) waitInterrupted(tid int) (stop ptrace.Stop, found bool, err error) {
	if tid != p.PID {
		stop, err = ptrace.WaitFor(tid)
		return stop, err == nil, err
	}
	const interval = 20 * time.Microsecond
	for {
		if stop, found, err = ptrace.PollFor(tid); found || err != nil || leaderEnded(p.PID) {
			return stop, found, err
		}
		time.Sleep(interval)
	}
}

// stopQueued makes the queued stops those of StopAll.
func (p *Process) stopQueued() error {
	for {
		stop, found := p.Queued()
		if !found {
			return nil
		}
		if stop.Kind != ptrace.Ended {
			t := p.Threads[stop.TID]
			t.Stopped, t.Deferred = true, &stop
			continue
		}
		if stop.TID == p.PID {
			return p.Gone(&stop)
		}
		delete(p.Threads, stop.TID)
	}
}

// StopAll stops every thread. Other stops that they report meanwhile are kept. A thread whose maker has already reported it, but
// which has not been seen itself, is among them.
func (p *Process) StopAll() error {
	if err := p.stopQueued(); err != nil {
		return err
	}
	for {
		waiting := 0
		for _, t := range p.Threads {
			if t.Stopped || t.TID == p.PID && leaderEnded(p.PID) {
				continue
			}
			if err := ptrace.Interrupt(t.TID); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
			waiting++
		}
		if waiting == 0 {
			return p.awaitNew()
		}
		for waiting > 0 {
			stop, found, err := p.waitStopped()
			if err != nil {
				return err
			}
			if !found {
				break
			}
			t := p.Threads[stop.TID]
			switch {
			case stop.Kind == ptrace.Ended:
				if stop.TID == p.PID {
					return p.Gone(&stop)
				}
				delete(p.Threads, stop.TID)
			case t == nil: // new; its first stop
				p.Threads[stop.TID] = &Thread{TID: stop.TID, Stopped: true, Deferred: &stop}
				continue
			default:
				t.Stopped = true
				if stop.Kind == ptrace.SignalStop || stop.Kind == ptrace.EventStop || stop.Kind == ptrace.CallStop {
					t.Deferred = &stop
				}
			}
			waiting--
		}
	}
}

// awaitNew waits for the first stops of threads that the kernel has made and that have not reported one yet. The kernel attaches a
// new thread to its maker's tracer before it runs, so each has a stop to report, or its end.
func (p *Process) awaitNew() error {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.PID))
	if err != nil {
		return nil // the process has ended; the thread that waits for it tells so
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil || tid == p.PID || p.Threads[tid] != nil {
			continue
		}
		stop, err := ptrace.WaitFor(tid)
		if errors.Is(err, unix.ECHILD) {
			continue // its end was reported before
		}
		if err != nil {
			return err
		}
		if stop.Kind != ptrace.Ended {
			p.Threads[tid] = &Thread{TID: tid, Stopped: true, Deferred: &stop}
		}
	}
	return nil
}

// waitStopped waits for a stop of a thread that was interrupted. found is false if only the main
// thread is left and it has ended.
func (p *Process) waitStopped() (stop ptrace.Stop, found bool, err error) {
	const interval = 100 * time.Microsecond
	for _, t := range p.Threads {
		if !t.Stopped && t.TID != p.PID {
			stop, err = ptrace.Wait()
			return stop, true, err
		}
	}
	for {
		if stop, found, err = ptrace.Poll(); found || err != nil || leaderEnded(p.PID) {
			return stop, found, err
		}
		time.Sleep(interval)
	}
}

// WhileStopped calls do while the thread is stopped.
func (p *Process) WhileStopped(tid int, do func(tid int) error) error {
	if t := p.Threads[tid]; t == nil || !p.runs(t) {
		return do(tid)
	}
	if err := ptrace.Interrupt(tid); err != nil {
		return err
	}
	stop, err := ptrace.WaitFor(tid)
	if err != nil {
		return err
	}
	asked := stop.Kind == ptrace.SignalStop && stop.Signal == unix.SIGSTOP // by the watchdog: the interruption follows
	called := stop.Kind == ptrace.CallStop && p.Protection != nil          // so does it then
	if stop.Kind != ptrace.Interrupted && !asked && !called {
		return fmt.Errorf("replay: thread %d came to %v while it was waited for", tid, stop)
	}
	if err := do(tid); err != nil {
		return err
	}
	if p.Protection == nil {
		return ptrace.Cont(tid, 0)
	}
	if called {
		if _, err := p.Protection.AtCall(p.Threads[tid]); err != nil {
			return err
		}
	}
	return ptrace.ContToCall(tid, 0)
}

// leaderEnded reports whether the main thread has ended by itself. While others run, the kernel
// keeps it, does not stop it, and reports its end after theirs.
func leaderEnded(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, found := bytes.Cut(stat, []byte(") "))
	return err == nil && found && bytes.HasPrefix(rest, []byte("Z"))
}

// AwaitFirstEnded waits until the main thread, which is about to end by itself, has ended.
func (p *Process) AwaitFirstEnded() error {
	const interval, most = 100 * time.Microsecond, 10 * time.Second
	for begun := time.Now(); !leaderEnded(p.PID); time.Sleep(interval) {
		if time.Since(begun) > most {
			return fmt.Errorf("replay: the first thread of process %d does not end", p.PID)
		}
	}
	return nil
}
