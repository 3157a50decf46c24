package watchpoint

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"diagnose/replay/ptrace"
	"diagnose/replay/tracee"
)

// call makes a stopped thread make a system call for the tool. regs are the thread's registers,
// which it has again afterwards.
func (p *pages) call(t *tracee.Thread, regs *ptrace.Registers, number uint64, args ...uint64) (result int64, err error) {
	const length = 2
	call := *regs
	call.Rip, call.Orig_rax = p.syscall, ^uint64(0)
	ptrace.PrepareCall(&call, number, args)
	// A thread that has stopped in a system call traps when it leaves that call, before this one.
	const tries = 3
	for range tries {
		if err := ptrace.SetRegisters(t.TID, &call); err != nil {
			return 0, err
		}
		stop, err := p.step(t)
		if err == nil && stop != nil {
			err = fmt.Errorf("replay: thread %d came to %v in a call made for the tool", t.TID, stop)
		}
		if err != nil {
			return 0, err
		}
		after, err := ptrace.GetRegisters(t.TID)
		if err != nil {
			return 0, err
		}
		if after.Rip == call.Rip+length {
			return int64(after.Rax), ptrace.SetRegisters(t.TID, regs)
		}
	}
	return 0, fmt.Errorf("replay: thread %d does not make a call for the tool", t.TID)
}

// AtCall implements tracee.Protection.
func (p *pages) AtCall(t *tracee.Thread) (again bool, err error) {
	c, err := ptrace.GetCall(t.TID)
	if err != nil {
		return false, err
	}
	if c.Op == ptrace.CallExit {
		return false, p.called(t)
	}
	if p.calls[t.TID] = c; p.calling == t {
		return false, nil
	}
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil || !p.touches(t, c, &regs) {
		return false, err
	}
	if !p.uncovered() && !p.anyCovered() {
		p.calling = t
		return false, nil
	}
	// It is past the instruction, so it executes that once more.
	const length = 2
	regs.Rip, regs.Rax, regs.Orig_rax = regs.Rip-length, c.Number, ^uint64(0)
	if err := p.uncoverAll(t, &regs); err != nil {
		return false, err
	}
	p.calling = t
	return true, nil
}

func (p *pages) anyCovered() bool {
	for _, x := range p.list {
		if x.covered {
			return true
		}
	}
	return false
}

// called handles a thread that has made a system call.
func (p *pages) called(t *tracee.Thread) error {
	c := p.calls[t.TID]
	delete(p.calls, t.TID)
	if p.calling == t {
		p.calling = nil
	}
	if c == nil {
		return nil
	}
	regs, err := ptrace.GetRegisters(t.TID)
	if err != nil {
		return err
	}
	if clones(c) {
		p.cleared[int(regs.Rax)] = p.clearedAt(c)
		return p.cloned(int(regs.Rax))
	}
	if c.Number == unix.SYS_SET_TID_ADDRESS {
		p.cleared[t.TID] = c.Args[0]
	}
	if !p.maps(c, regs.Rax) {
		return nil
	}
	maps, err := tracee.ReadMaps(p.tr.process.PID)
	if err != nil {
		return err
	}
	p.refresh(maps)
	return nil
}

func clones(c *ptrace.Call) bool {
	return c != nil && (c.Number == unix.SYS_CLONE || c.Number == unix.SYS_CLONE3)
}

// cloned waits for the start of a new thread: the kernel writes the thread's id to its memory before
// that.
func (p *pages) cloned(tid int) error {
	if tid <= 0 || p.tr.process.Threads[tid] != nil {
		return nil
	}
	stop, err := ptrace.WaitFor(tid)
	if err != nil {
		return err
	}
	return p.tr.replay.HandleStop(stop)
}

// harmless are calls that do not access memory of the program at their arguments.
var harmless = map[uint64]bool{unix.SYS_SCHED_YIELD: true, unix.SYS_GETPID: true, unix.SYS_GETTID: true, unix.SYS_CLOSE: true,
	unix.SYS_KILL: true, unix.SYS_TGKILL: true, unix.SYS_TKILL: true, unix.SYS_MADVISE: true, unix.SYS_RESTART_SYSCALL: true,
	unix.SYS_SET_TID_ADDRESS: true, unix.SYS_SET_ROBUST_LIST: true, unix.SYS_EXIT_GROUP: true}

// pointed is memory that a system call may access: it is at an argument, of a fixed size or of that
// in another argument.
type pointed struct {
	arg  int
	size uint64 // 0: of as many bytes as the argument sizeArg says
	from int    // that argument
}

// accessedBy has the memory that system calls may access. It is of the calls that replays make often.
var accessedBy = map[uint64][]pointed{
	unix.SYS_FUTEX:          {{arg: 0, size: 4}, {arg: 3, size: 16}, {arg: 4, size: 4}},
	unix.SYS_RT_SIGPROCMASK: {{arg: 1, size: 8}, {arg: 2, size: 8}},
	unix.SYS_RT_SIGACTION:   {{arg: 1, size: 32}, {arg: 2, size: 32}},
	unix.SYS_SIGALTSTACK:    {{arg: 0, size: 24}, {arg: 1, size: 24}},
	unix.SYS_READ:           {{arg: 1, from: 2}},
	unix.SYS_WRITE:          {{arg: 1, from: 2}},
	unix.SYS_PREAD64:        {{arg: 1, from: 2}},
	unix.SYS_PWRITE64:       {{arg: 1, from: 2}},
	unix.SYS_GETRANDOM:      {{arg: 0, from: 1}},
	unix.SYS_OPEN:           {{arg: 0, size: tracee.PageSize}},
	unix.SYS_OPENAT:         {{arg: 1, size: tracee.PageSize}},
	unix.SYS_FSTAT:          {{arg: 1, size: 144}},
	unix.SYS_NEWFSTATAT:     {{arg: 1, size: tracee.PageSize}, {arg: 2, size: 144}},
	unix.SYS_CLOCK_GETTIME:  {{arg: 1, size: 16}},
	unix.SYS_NANOSLEEP:      {{arg: 0, size: 16}, {arg: 1, size: 16}},
	unix.SYS_PRLIMIT64:      {{arg: 2, size: 16}, {arg: 3, size: 16}},
}

// touches reports whether a system call may access the pages, or concerns their mappings.
func (p *pages) touches(t *tracee.Thread, c *ptrace.Call, regs *ptrace.Registers) bool {
	if !p.tr.process.Started {
		return true // the call's arguments may be replaced, and memory of the stack be used for that
	}
	a := &c.Args
	switch c.Number {
	case unix.SYS_MMAP:
		return a[3]&unix.MAP_FIXED != 0 && p.overlap(a[0], a[1])
	case unix.SYS_MUNMAP, unix.SYS_MPROTECT:
		return p.overlap(a[0], a[1])
	case unix.SYS_MREMAP:
		return p.overlap(a[0], a[1]) || a[3]&unix.MREMAP_FIXED != 0 && p.overlap(a[4], a[2])
	case unix.SYS_RT_SIGRETURN:
		return p.returns(regs.Rsp)
	case unix.SYS_EXIT:
		return p.exits(t)
	case unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV:
		return p.vectors(a[1], a[2]) || p.vectors(a[3], a[4])
	}
	list, known := accessedBy[c.Number]
	for _, x := range list {
		size := x.size
		if size == 0 {
			size = a[x.from]
		}
		if p.overlap(a[x.arg], size) {
			return true
		}
	}
	return !known && !harmless[c.Number]
}

// vectors reports whether an array of struct iovec, or memory that it names, is in the pages.
func (p *pages) vectors(at, count uint64) bool {
	const most, size = 1024, 16
	if count > most || p.overlap(at, count*size) {
		return true
	}
	list := make([]byte, count*size)
	if _, err := p.tr.process.Memory.ReadAt(list, int64(at)); err != nil {
		return true
	}
	for ; len(list) > 0; list = list[size:] {
		if p.overlap(binary.LittleEndian.Uint64(list), binary.LittleEndian.Uint64(list[8:])) {
			return true
		}
	}
	return false
}

// returns reports whether a signal's frame is in the pages. It has the address of the saved vector
// registers (struct rt_sigframe of the kernel, struct sigcontext).
func (p *pages) returns(sp uint64) bool {
	const frame, vectors = 1 << 10, 0xb8 + 40
	if p.overlap(sp-8, frame) {
		return true
	}
	at, err := p.tr.process.Memory.Word(sp + vectors)
	return err != nil || p.overlap(at, mostSaved)
}

// maps reports whether a call may have changed the mappings of the pages.
func (p *pages) maps(c *ptrace.Call, result uint64) bool {
	switch c.Number {
	case unix.SYS_MMAP:
		return p.overlap(result, c.Args[1])
	case unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_PKEY_MPROTECT:
		return p.overlap(c.Args[0], c.Args[1])
	case unix.SYS_MREMAP:
		return p.overlap(c.Args[0], c.Args[1]) || p.overlap(result, c.Args[2])
	case unix.SYS_BRK, unix.SYS_SHMAT, unix.SYS_SHMDT, unix.SYS_REMAP_FILE_PAGES:
		return true
	}
	return false
}

// exits reports whether the kernel accesses the pages when a thread ends: it clears the word that
// others wait for, and marks the robust mutexes that the thread still holds.
func (p *pages) exits(t *tracee.Thread) bool {
	if at := p.cleared[t.TID]; at != 0 && p.overlap(at, 4) {
		return true
	}
	var head, length uint64
	_, _, errno := unix.RawSyscall(unix.SYS_GET_ROBUST_LIST, uintptr(t.TID), uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&length)))
	if errno != 0 || head == 0 {
		return false
	}
	first, err := p.tr.process.Memory.Word(head)
	return err == nil && first != head
}

// ended is called for a thread that has ended.
func (p *pages) ended(tid int) {
	delete(p.calls, tid)
	delete(p.cleared, tid)
	if p.calling != nil && p.calling.TID == tid {
		p.calling = nil
	}
}

// clearedAt returns the address of the word that the kernel clears when the thread ends that a call
// has made; 0: none.
func (p *pages) clearedAt(c *ptrace.Call) uint64 {
	const flags, address = 0, 16 // in struct clone_args of linux/sched.h
	how, at := c.Args[0], c.Args[3]
	if c.Number == unix.SYS_CLONE3 {
		how, _ = p.tr.process.Memory.Word(c.Args[0] + flags)
		at, _ = p.tr.process.Memory.Word(c.Args[0] + address)
	}
	if how&unix.CLONE_CHILD_CLEARTID == 0 {
		return 0
	}
	return at
}
