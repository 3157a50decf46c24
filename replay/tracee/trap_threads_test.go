package tracee_test

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"diagnose/internal/crashtest"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// counts has two threads that execute one instruction again and again, which counts for each how often.
const counts = `
#include <pthread.h>

long first, second;

static void *count(void *n)
{
	__asm__ volatile("1: .globl counted\ncounted: incq (%0)\njmp 1b" : : "r"(n));
	return 0;
}

int main(void)
{
	pthread_t made;

	pthread_create(&made, 0, count, &second);
	count(&first);
}`

// TestTrapOfOneThread: a thread stops each time at its trap although another executes the instruction under it at the same time.
func TestTrapOfOneThread(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "counts.c", Text: counts, Flags: []string{"-O1", "-pthread", "-no-pie", "-fno-pie"}})
	at := symbols(t, exe, "counted", "first")
	err := ptrace.OnThread(func() error {
		cmd := exec.Command(exe)
		if err := cmd.Start(); err != nil {
			return err
		}
		defer end(t, cmd.Process)
		p, err := seized(cmd.Process.Pid, 2)
		if err != nil {
			return err
		}
		defer p.Memory.Close()
		return countArrivals(t, p, at[0], at[1])
	})
	if err != nil {
		t.Fatal(err)
	}
}

// symbols returns the addresses of symbols of a program that is loaded where it was linked.
func symbols(t *testing.T, exe string, names ...string) []uint64 {
	t.Helper()
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	found := make([]uint64, len(names))
	for _, s := range list {
		for i, name := range names {
			if s.Name == name {
				found[i] = s.Value
			}
		}
	}
	return found
}

// seized stops the threads of a process, once it has that many.
func seized(pid, threads int) (*tracee.Process, error) {
	const limit = 10 * time.Second
	p := &tracee.Process{PID: pid, Threads: map[int]*tracee.Thread{}, Started: true}
	for begun := time.Now(); len(p.Threads) < threads; {
		if time.Since(begun) > limit {
			return nil, fmt.Errorf("the process has %d threads, not %d", len(p.Threads), threads)
		}
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return nil, err
		}
		if len(tasks) < threads {
			time.Sleep(time.Millisecond)
			continue
		}
		for _, task := range tasks {
			tid, err := strconv.Atoi(task.Name())
			if err != nil {
				return nil, err
			}
			if err := ptrace.Seize(tid, ptrace.ExitKill); err != nil {
				return nil, err
			}
			p.Threads[tid] = &tracee.Thread{TID: tid}
		}
	}
	var err error
	if p.Memory, err = tracee.OpenMemory(pid); err != nil {
		return nil, err
	}
	return p, p.StopAll()
}

// countArrivals lets the main thread stop at an instruction until the other one has executed it some times, and compares the number
// of stops with the count in memory.
func countArrivals(t *testing.T, p *tracee.Process, pc, count uint64) error {
	const passes, pause = 200, 200 * time.Microsecond
	p.UseTraps()
	before, err := wordOf(p, count)
	if err != nil {
		return err
	}
	if err := p.SetBreakpoints(p.PID, pc); err != nil {
		return err
	}
	for _, x := range p.Threads {
		x.Stopped = false
		if err := p.Resume(x, 0, false); err != nil {
			return err
		}
	}
	arrivals := uint64(0)
	for passed := 0; passed < passes; {
		stop, queued := p.Queued()
		if !queued {
			if stop, err = ptrace.Wait(); err != nil {
				return err
			}
		}
		x := p.Threads[stop.TID]
		x.Stopped = true
		if continues, err := p.Traps.Passed(x, &stop); err != nil {
			return err
		} else if continues {
			x.Stopped = false
			continue
		}
		own, err := isArrival(p, x, &stop)
		if err != nil {
			return err
		}
		if own {
			arrivals++
		}
		x.Stopped = false
		if err := p.Resume(x, 0, false); err != nil {
			return err
		}
		if !own {
			passed++
			time.Sleep(pause) // the main thread runs meanwhile
		}
	}
	if err := p.StopAll(); err != nil {
		return err
	}
	after, err := wordOf(p, count)
	if err != nil {
		return err
	}
	// It may be at the instruction, before it or after it.
	if n := after - before; n+1 < arrivals || n > arrivals+1 {
		t.Errorf("the main thread has stopped %d times, and executed the instruction %d times", arrivals, n)
	}
	return nil
}

// isArrival reports whether a stop is at the trap of the thread itself.
func isArrival(p *tracee.Process, x *tracee.Thread, stop *ptrace.Stop) (bool, error) {
	if stop.Kind == ptrace.Interrupted {
		return false, nil
	}
	if stop.Kind != ptrace.SignalStop {
		return false, fmt.Errorf("thread %d came to %v", x.TID, stop)
	}
	info, errInfo := ptrace.GetSiginfo(x.TID)
	regs, errRegs := ptrace.GetRegisters(x.TID)
	if err := errors.Join(errInfo, errRegs); err != nil {
		return false, err
	}
	s := tracee.SignalStop{Signal: stop.Signal, Code: info.Code(), Info: info, Regs: regs}
	others, err := p.Traps.AtTrap(x, &s)
	return err == nil && !others, err
}

func wordOf(p *tracee.Process, at uint64) (uint64, error) {
	var word [8]byte
	_, err := p.Memory.ReadAt(word[:], int64(at))
	return binary.LittleEndian.Uint64(word[:]), err
}
