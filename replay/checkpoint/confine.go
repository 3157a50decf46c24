package checkpoint

import (
	"encoding/binary"
	"errors"

	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// allowed are the system calls that the recording library makes in a copy. They act on the copy alone: files, sockets, signals to others and
// new processes are not among them. mmap is allowed without a file, clone for a thread.
var allowed = []uint32{
	unix.SYS_FUTEX, unix.SYS_RT_SIGRETURN, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGACTION, unix.SYS_SIGALTSTACK, unix.SYS_GETPID, unix.SYS_GETTID,
	unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_MPROTECT, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_MINCORE,
	unix.SYS_BRK, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_SET_ROBUST_LIST, unix.SYS_GET_ROBUST_LIST, unix.SYS_SET_TID_ADDRESS,
	unix.SYS_RSEQ, unix.SYS_PRCTL, unix.SYS_ARCH_PRCTL, unix.SYS_EXIT, unix.SYS_CLOCK_GETTIME, unix.SYS_NANOSLEEP,
}

// failing are those that fail there: the library makes them to tell of what its heap has found, before it aborts the program.
var failing = []uint32{unix.SYS_READLINK, unix.SYS_OPENAT, unix.SYS_WRITE}

// Offsets in struct seccomp_data of linux/seccomp.h. The kernel gives the address after the instruction.
const (
	dataNumber  = 0
	dataArch    = 4
	dataAddress = 8
	dataArgs    = 16
)

// filter is a program of classic BPF (linux/filter.h) for seccomp(2).
type filter []unix.SockFilter

func (f *filter) add(code uint16, k uint32, ifTrue, ifFalse uint8) {
	*f = append(*f, unix.SockFilter{Code: code, Jt: ifTrue, Jf: ifFalse, K: k})
}

func (f *filter) load(offset uint32)   { f.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset, 0, 0) }
func (f *filter) answer(action uint32) { f.add(unix.BPF_RET|unix.BPF_K, action, 0, 0) }

const (
	whenEqual   = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	whenAtLeast = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	whenAbove   = unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K
	whenSet     = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	always      = unix.BPF_JMP | unix.BPF_JA
)

// confinement is the filter of a copy. A call that it does not allow stops the thread before the call.
func confinement(library []tracee.Span) filter {
	var f filter
	f.load(dataArch)
	f.add(whenEqual, unix.AUDIT_ARCH_X86_64, 1, 0)
	f.answer(unix.SECCOMP_RET_TRACE)
	var jumps []int // to the calls that the library may make
	f.load(dataAddress + 4)
	f.add(whenAtLeast, uint32(agent.EngineBase>>32), 0, 2)
	f.add(whenAtLeast, uint32(agent.EngineEnd>>32), 1, 0)
	jumps = append(jumps, len(f))
	f.add(always, 0, 0, 0)
	for _, x := range library {
		for start := x.Start; start < x.End; start = (start>>32 + 1) << 32 {
			f.load(dataAddress + 4)
			f.add(whenEqual, uint32(start>>32), 0, 4)
			f.load(dataAddress)
			f.add(whenAbove, uint32(start), 0, 2)
			f.add(whenAbove, uint32(min(x.End, start|0xffffffff)), 1, 0)
			jumps = append(jumps, len(f))
			f.add(always, 0, 0, 0)
		}
	}
	f.answer(unix.SECCOMP_RET_TRACE)
	for _, at := range jumps {
		f[at].K = uint32(len(f) - at - 1)
	}
	f.allow()
	return f
}

// allow appends what the library, and the tool in the page, may call.
func (f *filter) allow() {
	const afterCall = page + 2
	f.load(dataAddress + 4)
	f.add(whenEqual, uint32(afterCall>>32), 0, 3)
	f.load(dataAddress)
	f.add(whenEqual, uint32(afterCall&0xffffffff), 0, 1)
	f.answer(unix.SECCOMP_RET_ALLOW)
	f.load(dataNumber)
	for _, number := range allowed {
		f.add(whenEqual, number, 0, 1)
		f.answer(unix.SECCOMP_RET_ALLOW)
	}
	for _, number := range failing {
		f.add(whenEqual, number, 0, 1)
		f.answer(unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES))
	}
	for _, x := range []struct{ number, argument, flag uint32 }{{unix.SYS_MMAP, 3, unix.MAP_ANONYMOUS}, {unix.SYS_CLONE, 0, unix.CLONE_THREAD}} {
		f.load(dataNumber)
		f.add(whenEqual, x.number, 0, 3)
		f.load(dataArgs + 8*x.argument)
		f.add(whenSet, x.flag, 0, 1)
		f.answer(unix.SECCOMP_RET_ALLOW)
	}
	f.answer(unix.SECCOMP_RET_TRACE)
}

// confine sets the filter in a process with one stopped thread. Threads that it makes have it, too.
func confine(pid int, library []tracee.Span) error {
	f := confinement(library)
	const header = 16 // of struct sock_fprog
	program := binary.LittleEndian.AppendUint64(nil, uint64(len(f)))
	program = binary.LittleEndian.AppendUint64(program, page+filterAt+header)
	for _, x := range f {
		program = binary.LittleEndian.AppendUint16(program, x.Code)
		program = binary.LittleEndian.AppendUint32(append(program, x.Jt, x.Jf), x.K)
	}
	if filterAt+len(program) > tracee.PageSize {
		return errors.New("checkpoint: there is no room in a copy for its filter of system calls")
	}
	m, err := ptrace.OpenMemory(pid)
	if err != nil {
		return err
	}
	defer m.Close()
	if _, err := m.WriteAt(program, page+filterAt); err != nil {
		return err
	}
	caller, err := ptrace.NewCaller(pid, page)
	if err != nil {
		return err
	}
	if _, err := caller.Call(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1); err != nil {
		return err
	}
	_, err = caller.Call(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, page+filterAt)
	if errors.Is(err, unix.EINVAL) {
		return impossible("this kernel has no filters of system calls, which confine a copy")
	}
	return err
}
