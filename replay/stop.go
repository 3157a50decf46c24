package replay

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/replay/ptrace"
)

// gone returns the error for a process that ended although the replay did not end it.
func (p *process) gone(stop *ptrace.Stop) error {
	if stop == nil {
		return fmt.Errorf("replay: process %d has vanished", p.pid)
	}
	if !p.started {
		return inputf("replay: the program came to %v before the recorder started in it", stop)
	}
	return fmt.Errorf("replay: process %d came to %v outside of the replay", p.pid, stop)
}

// stopAll stops every thread. Other stops that they report meanwhile are kept.
func (p *process) stopAll() error {
	for {
		waiting := 0
		for _, t := range p.threads {
			if t.stopped || t.tid == p.pid && leaderEnded(p.pid) {
				continue
			}
			if err := ptrace.Interrupt(t.tid); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
			waiting++
		}
		if waiting == 0 {
			return nil
		}
		for waiting > 0 {
			stop, found, err := p.waitStopped()
			if err != nil {
				return err
			}
			if !found {
				break
			}
			t := p.threads[stop.TID]
			switch {
			case stop.Kind == ptrace.Ended:
				if stop.TID == p.pid {
					return p.gone(&stop)
				}
				delete(p.threads, stop.TID)
			case t == nil: // new; its first stop
				p.threads[stop.TID] = &thread{tid: stop.TID, stopped: true, deferred: &stop}
				continue
			default:
				t.stopped = true
				if stop.Kind == ptrace.SignalStop || stop.Kind == ptrace.EventStop {
					t.deferred = &stop
				}
			}
			waiting--
		}
	}
}

// waitStopped waits for a stop of a thread that was interrupted. found is false if only the main
// thread is left and it has ended.
func (p *process) waitStopped() (stop ptrace.Stop, found bool, err error) {
	const interval = 100 * time.Microsecond
	for _, t := range p.threads {
		if !t.stopped && t.tid != p.pid {
			stop, err = ptrace.Wait()
			return stop, true, err
		}
	}
	for {
		if stop, found, err = ptrace.Poll(); found || err != nil || leaderEnded(p.pid) {
			return stop, found, err
		}
		time.Sleep(interval)
	}
}

// whileStopped calls do while the thread is stopped.
func (p *process) whileStopped(tid int, do func(tid int) error) error {
	if t := p.threads[tid]; t == nil || t.stopped {
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
	if stop.Kind != ptrace.Interrupted && !asked {
		return fmt.Errorf("replay: thread %d came to %v while it was waited for", tid, stop)
	}
	if err := do(tid); err != nil {
		return err
	}
	return ptrace.Cont(tid, 0)
}

// leaderEnded reports whether the main thread has ended by itself. While others run, the kernel
// keeps it, does not stop it, and reports its end after theirs.
func leaderEnded(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, found := bytes.Cut(stat, []byte(") "))
	return err == nil && found && bytes.HasPrefix(rest, []byte("Z"))
}
