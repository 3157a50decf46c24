package recorder

import (
	"golang.org/x/sys/unix"

	"diagnose/replay/ptrace"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// refused answers agent.TrapRefused.
func (t *tracer) refused(x *tracee, regs *ptrace.Registers) error {
	call := eventlog.SyscallName(regs.Rdi & 0xffffffff)
	refused := record.Refused{Call: call, Thread: uint32(regs.Rsi >> 48), Ordinal: regs.Rsi & (1<<48 - 1)}
	if errno := unix.Errno(regs.Rdi >> 32); errno != 0 {
		refused.Error = unix.ErrnoName(errno)
	}
	if r := x.process.recording; r != nil && !eventlog.LinuxRefuses(call) && len(r.manifest.Refused) < record.MostRefused {
		r.manifest.Refused = append(r.manifest.Refused, refused)
		if refused.Filter() && !r.run.quiet() {
			t.warned.warnOnce(&t.warned.filter, "process %d sets a filter for system calls (%s), which is not enforced while it is recorded, nor in a replay: what the filter forbids succeeds", x.process.pid, call)
		}
	}
	return x.answer(regs, 0)
}

// shared answers agent.TrapShared. The writes of other processes are not recorded. The user
// should know that before a long run.
func (t *tracer) shared(x *tracee, regs *ptrace.Registers) error {
	if r := x.process.recording; r != nil && !r.run.quiet() {
		t.warned.warnOnce(&t.warned.shared, "process %d shares memory with other processes: their writes to it are not recorded, so a replay may diverge from the recording", x.process.pid)
	}
	return x.answer(regs, 0)
}
