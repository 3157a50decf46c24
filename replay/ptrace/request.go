package ptrace

import (
	"encoding/binary"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Options of a tracee, PTRACE_O_... of linux/ptrace.h.
const (
	TraceFork      = unix.PTRACE_O_TRACEFORK
	TraceVFork     = unix.PTRACE_O_TRACEVFORK
	TraceClone     = unix.PTRACE_O_TRACECLONE
	TraceExec      = unix.PTRACE_O_TRACEEXEC
	TraceVForkDone = unix.PTRACE_O_TRACEVFORKDONE
	TraceExit      = unix.PTRACE_O_TRACEEXIT
	TraceSeccomp   = unix.PTRACE_O_TRACESECCOMP
	ExitKill       = unix.PTRACE_O_EXITKILL
	// TraceSysGood is for threads that are resumed by ContToCall.
	TraceSysGood = unix.PTRACE_O_TRACESYSGOOD
)

// request makes a ptrace request. Requests do not block, so the scheduler need not be informed.
func request(name string, number, tid int, addr, data uintptr) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, uintptr(number), uintptr(tid), addr, data, 0, 0)
	if errno != 0 {
		return fmt.Errorf("ptrace %s of thread %d: %w", name, tid, errno)
	}
	return nil
}

// requestMemory makes a request that reads or fills memory of this process.
func requestMemory(name string, number, tid int, addr uintptr, data unsafe.Pointer) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, uintptr(number), uintptr(tid), addr, uintptr(data), 0, 0)
	if errno != 0 {
		return fmt.Errorf("ptrace %s of thread %d: %w", name, tid, errno)
	}
	return nil
}

// Peek reads a word of a stopped thread's memory.
func Peek(tid int, at uint64) (uint64, error) {
	var word uint64 // the system call, unlike the function of libc, stores it
	err := requestMemory("PEEKTEXT", unix.PTRACE_PEEKTEXT, tid, uintptr(at), unsafe.Pointer(&word))
	return word, err
}

// Seize attaches to a thread without stopping it.
func Seize(tid, options int) error {
	return request("SEIZE", unix.PTRACE_SEIZE, tid, 0, uintptr(options))
}

// Interrupt makes a seized thread stop: a stop of kind Interrupted follows.
func Interrupt(tid int) error { return request("INTERRUPT", unix.PTRACE_INTERRUPT, tid, 0, 0) }

// Listen keeps a thread in a GroupStop stopped, but lets it report when it continues.
func Listen(tid int) error { return request("LISTEN", unix.PTRACE_LISTEN, tid, 0, 0) }

// Cont resumes a stopped thread with a signal (0: none). The signal is delivered only if the stop
// was a SignalStop.
func Cont(tid int, signal syscall.Signal) error {
	return request("CONT", unix.PTRACE_CONT, tid, 0, uintptr(signal))
}

// Step is Cont for one instruction.
func Step(tid int, signal syscall.Signal) error {
	return request("SINGLESTEP", unix.PTRACE_SINGLESTEP, tid, 0, uintptr(signal))
}

// ContToCall is Cont up to the start or the end of the next system call, where a CallStop follows.
func ContToCall(tid int, signal syscall.Signal) error {
	return request("SYSCALL", unix.PTRACE_SYSCALL, tid, 0, uintptr(signal))
}

// Call is the system call that a thread in a CallStop makes: struct
// ptrace_syscall_info of linux/ptrace.h (Linux 5.3).
type Call struct {
	Op   uint8 // CallEntry or CallExit
	_    [3]uint8
	Arch uint32 // AUDIT_ARCH_... of linux/audit.h: how the call is made
	_    [2]uint64
	// Number and Args are set at the call's entry only.
	Number uint64
	Args   [6]uint64
	_      [2]uint32
}

// The kinds of a CallStop: PTRACE_SYSCALL_INFO_ENTRY and EXIT.
const (
	CallEntry = 1
	CallExit  = 2
)

// GetCall returns the system call of a thread in a CallStop.
func GetCall(tid int) (*Call, error) {
	c := new(Call)
	err := requestMemory("GET_SYSCALL_INFO", unix.PTRACE_GET_SYSCALL_INFO, tid, unsafe.Sizeof(*c), unsafe.Pointer(c))
	return c, err
}

// StepQuietly is Step and WaitFor for a thread to which a SIGSTOP may be pending. The SIGSTOP is
// not delivered.
func StepQuietly(tid int) (Stop, error) {
	for {
		if err := Step(tid, 0); err != nil {
			return Stop{}, err
		}
		stop, err := WaitFor(tid)
		if err != nil || stop.Kind != SignalStop || stop.Signal != unix.SIGSTOP {
			return stop, err
		}
	}
}

// Detach detaches from a stopped thread, which resumes with a signal.
func Detach(tid int, signal syscall.Signal) error {
	return request("DETACH", unix.PTRACE_DETACH, tid, 0, uintptr(signal))
}

// SetOptions replaces the options of a stopped thread.
func SetOptions(tid, options int) error {
	return request("SETOPTIONS", unix.PTRACE_SETOPTIONS, tid, 0, uintptr(options))
}

// EventMessage returns the kernel's data for the last EventStop: the id of the new process or
// thread of a fork, vfork or clone, or of the former thread of an exec.
func EventMessage(tid int) (uint64, error) {
	var message uint64
	err := requestMemory("GETEVENTMSG", unix.PTRACE_GETEVENTMSG, tid, 0, unsafe.Pointer(&message))
	return message, err
}

// Siginfo is the kernel's siginfo_t: si_signo, si_errno and si_code are the
// first three words of 4 bytes.
type Siginfo [128]byte

// GetSiginfo returns the siginfo of the signal that is about to be delivered to a thread in a
// SignalStop.
func GetSiginfo(tid int) (Siginfo, error) {
	var info Siginfo
	err := requestMemory("GETSIGINFO", unix.PTRACE_GETSIGINFO, tid, 0, unsafe.Pointer(&info))
	return info, err
}

// Pending returns signals that wait for a stopped thread, and for its process, at most 8 of each. A signal that the kernel had no memory to
// describe is not among them.
func Pending(tid int) ([]syscall.Signal, error) {
	const request, most = 0x4209, 8 // PTRACE_PEEKSIGINFO
	var list []syscall.Signal
	for shared := range uint32(2) {
		args := struct {
			offset uint64
			flags  uint32 // 1: PTRACE_PEEKSIGINFO_SHARED
			count  int32
		}{0, shared, most}
		var infos [most]Siginfo
		n, _, errno := unix.Syscall6(unix.SYS_PTRACE, request, uintptr(tid), uintptr(unsafe.Pointer(&args)), uintptr(unsafe.Pointer(&infos)), 0, 0)
		if errno != 0 {
			return nil, fmt.Errorf("ptrace PEEKSIGINFO of thread %d: %w", tid, errno)
		}
		for i := range infos[:n] {
			list = append(list, syscall.Signal(binary.LittleEndian.Uint32(infos[i][:])))
		}
	}
	return list, nil
}

// SetSiginfo replaces that siginfo.
func SetSiginfo(tid int, info Siginfo) error {
	return requestMemory("SETSIGINFO", unix.PTRACE_SETSIGINFO, tid, 0, unsafe.Pointer(&info))
}

// GetSigmask returns the signals that a thread blocks; bit 0 is signal 1.
func GetSigmask(tid int) (uint64, error) {
	var mask uint64
	err := requestMemory("GETSIGMASK", 0x420a, tid, 8, unsafe.Pointer(&mask))
	return mask, err
}

// SetSigmask replaces the signals that a thread blocks.
func SetSigmask(tid int, mask uint64) error {
	return requestMemory("SETSIGMASK", 0x420b, tid, 8, unsafe.Pointer(&mask))
}

// Signal sends a signal to one thread of a process. It may be called from any kernel thread.
func Signal(pid, tid int, signal syscall.Signal) error { return unix.Tgkill(pid, tid, signal) }

// Queue sends a signal with a value to one thread of a process, with the code SI_QUEUE
// (rt_tgsigqueueinfo(2)). It may be called from any kernel thread.
func Queue(pid, tid int, signal syscall.Signal, value uint64) error {
	var info Siginfo
	le := binary.LittleEndian
	le.PutUint32(info[0:], uint32(signal))
	le.PutUint32(info[codeAt:], siQueue)
	le.PutUint64(info[valueAt:], value)
	_, _, e := unix.Syscall6(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(pid), uintptr(tid), uintptr(signal), uintptr(unsafe.Pointer(&info)), 0, 0)
	if e != 0 {
		return fmt.Errorf("ptrace: signal %d to thread %d: %w", signal, tid, e)
	}
	return nil
}

// Offsets in siginfo_t, and a value of si_code (asm-generic/siginfo.h).
const (
	codeAt  = 8
	valueAt = 24
	siQueue = ^uint32(0)
)

// Code is si_code.
func (s *Siginfo) Code() int32 { return int32(binary.LittleEndian.Uint32(s[codeAt:])) }

// Queued reports whether a signal was sent by Queue with a value, by this process or another.
func (s *Siginfo) Queued(value uint64) bool {
	le := binary.LittleEndian
	return le.Uint32(s[codeAt:]) == siQueue && le.Uint64(s[valueAt:]) == value
}
