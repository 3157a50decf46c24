package record

import (
	"fmt"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/replay/ptrace"
)

// Refused is a system call that the recorder did not pass on to the kernel. A program that
// depends on it fails only while it is recorded.
type Refused struct {
	// Call is its name. Error is the symbol of the error that was returned, "ENOSYS", or empty
	// if success was returned (seccomp filters).
	Call  string `json:"call"`
	Error string `json:"error,omitempty"`
	// Thread and Ordinal identify the event of the first such call; Ordinal is 0 if that is not
	// known.
	Thread  uint32 `json:"thread"`
	Ordinal uint64 `json:"ordinal,string"`
}

// Moment is the moment of the first such call; its ordinal is 0 if that is not known.
func (r *Refused) Moment() evidence.Moment {
	return evidence.Moment{Thread: r.Thread, Ordinal: r.Ordinal}
}

// Filter reports whether the call set a filter for system calls, which is not enforced.
func (r *Refused) Filter() bool { return r.Error == "" }

// Why says why the recorder refuses it.
func (r *Refused) Why() string {
	if why := refusedWhy[r.Call]; why != "" {
		return why
	}
	return "a replay could not do the same"
}

const writesAtWill = "the kernel would write the program's memory at times of its own choosing"

// refusedWhy has the calls of class REFUSE in agent/src/engine/table.c that Linux has.
var refusedWhy = map[string]string{
	"io_uring_setup": writesAtWill, "io_uring_enter": writesAtWill, "io_uring_register": writesAtWill,
	"io_setup": writesAtWill, "io_destroy": writesAtWill, "io_getevents": writesAtWill, "io_submit": writesAtWill, "io_cancel": writesAtWill, "io_pgetevents": writesAtWill,
	"perf_event_open":  writesAtWill,
	"userfaultfd":      "other threads or processes would fill the program's memory while it waits",
	"memfd_secret":     "the recorder could not read such memory",
	"remap_file_pages": "a replay could not map the same", "map_shadow_stack": "a replay could not map the same",
	"pkey_mprotect": "protection keys are not recorded", "pkey_alloc": "protection keys are not recorded", "pkey_free": "protection keys are not recorded",
	"modify_ldt": "segments are not recorded", "iopl": "input and output ports are not recorded", "ioperm": "input and output ports are not recorded",
	"clone": madePastLibc, "clone3": madePastLibc,
	"prctl": "the recorder uses that itself", "arch_prctl": "the recorder uses that itself",
}

const madePastLibc = "the thread would be made past the C library, where the recorder does not see it"

// RefusedByRecorder reports whether the event is a system call that the kernel has, and that
// the recorder answered with ENOSYS itself.
func (e *Event) RefusedByRecorder() bool {
	return e.Kind == KindSyscall && e.Result == -int64(unix.ENOSYS) && refusedWhy[SyscallName(e.Object)] != ""
}

// lacking are the calls of that class that Linux itself answers with ENOSYS, and one that the C
// library replaces by itself.
var lacking = map[string]bool{"uselib": true, "_sysctl": true, "create_module": true, "get_kernel_syms": true, "query_module": true, "nfsservctl": true,
	"getpmsg": true, "putpmsg": true, "afs_syscall": true, "tuxcall": true, "security": true, "set_thread_area": true, "get_thread_area": true, "lookup_dcookie": true,
	"epoll_ctl_old": true, "epoll_wait_old": true, "restart_syscall": true, "vserver": true, "uretprobe": true, "rseq": true}

// mostRefused is the maximum length of a manifest's list. Each call is in it once.
const mostRefused = 64

// refused answers agent.TrapRefused.
func (t *tracer) refused(x *tracee, regs *ptrace.Registers) error {
	call := SyscallName(regs.Rdi & 0xffffffff)
	refused := Refused{Call: call, Thread: uint32(regs.Rsi >> 48), Ordinal: regs.Rsi & (1<<48 - 1)}
	if errno := unix.Errno(regs.Rdi >> 32); errno != 0 {
		refused.Error = unix.ErrnoName(errno)
	}
	if r := x.process.recording; r != nil && !lacking[call] && len(r.manifest.Refused) < mostRefused {
		r.manifest.Refused = append(r.manifest.Refused, refused)
		if refused.Filter() && !t.toldFilter && !r.run.quiet() {
			t.toldFilter = true
			t.link.warn("process %d sets a filter for system calls (%s), which is not enforced while it is recorded, nor in a replay: what the filter forbids succeeds", x.process.pid, call)
		}
	}
	return t.answer(x, regs, 0)
}

// shared answers agent.TrapShared. The writes of other processes are not recorded. The user
// should know that before a long run.
func (t *tracer) shared(x *tracee, regs *ptrace.Registers) error {
	if r := x.process.recording; r != nil && !t.toldShared && !r.run.quiet() {
		t.toldShared = true
		t.link.warn("process %d shares memory with other processes: their writes to it are not recorded, so a replay may diverge from the recording", x.process.pid)
	}
	return t.answer(x, regs, 0)
}

func (r *Refused) check(field string) error {
	if r.Call == "" || len(r.Call) > 64 || len(r.Error) > 32 {
		return &ManifestError{field, fmt.Sprintf("is %q, answered with %q", r.Call, r.Error)}
	}
	return nil
}
