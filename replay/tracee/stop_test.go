package tracee_test

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/internal/crashtest"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// makes makes threads that continue until its end.
const makes = `
#include <pthread.h>
#include <unistd.h>

static void *waits(void *argument)
{
	for (;;)
		pause();
	return argument;
}

int main(void)
{
	pthread_t made;

	__asm__ volatile("int3");
	for (int i = 0; i < 20; i++)
		pthread_create(&made, 0, waits, 0);
	pause();
}`

// TestStopAllNew: threads are stopped that have not reported a stop of their own yet.
func TestStopAllNew(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "makes.c", Text: makes, Flags: []string{"-pthread"}})
	err := ptrace.OnThread(func() error {
		cmd := exec.Command(exe)
		cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
		if err := cmd.Start(); err != nil {
			return err
		}
		pid := cmd.Process.Pid
		defer end(t, cmd.Process)
		if _, err := ptrace.WaitFor(pid); err != nil {
			return err
		}
		if err := ptrace.SetOptions(pid, ptrace.ExitKill|ptrace.TraceClone); err != nil {
			return err
		}
		if err := ptrace.Cont(pid, 0); err != nil {
			return err
		}
		if _, err := ptrace.WaitFor(pid); err != nil { // its int3
			return err
		}
		return stopWithNew(t, pid)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// end kills a process, and takes the ends of its threads, which the kernel tells before the process's own.
func end(t *testing.T, p *os.Process) {
	if err := p.Kill(); err != nil {
		t.Error(err)
		return
	}
	for {
		if stop, err := ptrace.Wait(); err != nil || stop.Kind == ptrace.Ended && stop.TID == p.Pid {
			return
		}
	}
}

// stopWithNew lets a process make threads, whose first stops are not taken, and stops them all.
func stopWithNew(t *testing.T, pid int) error {
	const threads = 20
	for range threads {
		if err := ptrace.Cont(pid, 0); err != nil {
			return err
		}
		stop, err := ptrace.WaitFor(pid)
		if err != nil {
			return err
		}
		if stop.Kind != ptrace.EventStop || stop.Event != unix.PTRACE_EVENT_CLONE {
			return fmt.Errorf("the program came to %v", stop)
		}
	}
	p := &tracee.Process{PID: pid, Threads: map[int]*tracee.Thread{pid: {TID: pid, Stopped: true}}}
	if err := p.StopAll(); err != nil {
		return err
	}
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	if len(tasks) != threads+1 || len(p.Threads) != len(tasks) {
		t.Errorf("%d threads of %d, %d were made", len(p.Threads), len(tasks), threads)
	}
	for _, x := range p.Threads {
		if !x.Stopped {
			t.Errorf("thread %d is not stopped", x.TID)
		}
	}
	return nil
}
