package eventlog

import (
	"golang.org/x/sys/unix"
)

const writesAtWill = "the kernel would write the program's memory at times of its own choosing"

// WhyRefused says why the recorder refuses a system call; empty if it does not.
func WhyRefused(call string) string { return refusedWhy[call] }

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

// LinuxRefuses reports whether Linux itself, or the C library, does without the call.
func LinuxRefuses(call string) bool { return lacking[call] }

// lacking are the calls of that class that Linux itself answers with ENOSYS, and one that the C
// library replaces by itself.
var lacking = map[string]bool{"uselib": true, "_sysctl": true, "create_module": true, "get_kernel_syms": true, "query_module": true, "nfsservctl": true,
	"getpmsg": true, "putpmsg": true, "afs_syscall": true, "tuxcall": true, "security": true, "set_thread_area": true, "get_thread_area": true, "lookup_dcookie": true,
	"epoll_ctl_old": true, "epoll_wait_old": true, "restart_syscall": true, "vserver": true, "uretprobe": true, "rseq": true}
