package x86

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Addresses of the processor's memory. The distances between the registers'
// areas exceed every access.
const (
	codeBase = 0x10000000
	dataBase = 0x20000000
	dataSize = 0x6000
	codeAt   = codeBase + 0x800
)

// debugRegister is offsetof(struct user, u_debugreg) (sys/user.h).
const debugRegister = 848

// noteXState is NT_X86_XSTATE (linux/elf.h).
const noteXState = 0x202

// processor is a child that is stopped at its exec and executes single
// instructions. It never runs code of its own.
type processor struct {
	t      *testing.T
	pid    int
	mem    *os.File
	regs   unix.PtraceRegs // the starting point
	vector []byte
	data   []byte
	armed  bool
}

// state is the state after an instruction.
type state struct {
	signal unix.Signal
	regs   unix.PtraceRegs
	vector []byte
	data   []byte
}

// newProcessor must be called on a locked thread.
func newProcessor(t *testing.T) *processor {
	t.Helper()
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	p := &processor{t: t}
	p.start()
	t.Cleanup(p.stop)
	return p
}

func (p *processor) start() {
	t := p.t
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Skipf("not supported here: ptrace: %v", err)
	}
	p.pid = cmd.Process.Pid
	if s := p.wait(); s != unix.SIGTRAP {
		t.Fatalf("the child stopped with %v at its exec", s)
	}
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", p.pid), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.mem = mem
	p.armed = false
	var regs unix.PtraceRegs
	p.must(unix.PtraceGetRegs(p.pid, &regs))
	p.map_(regs, codeBase, 0x2000)
	p.map_(regs, dataBase, dataSize)
}

func (p *processor) stop() {
	_ = unix.Kill(p.pid, unix.SIGKILL)
	var ws unix.WaitStatus
	_, _ = unix.Wait4(p.pid, &ws, 0, nil)
	_ = p.mem.Close()
}

func (p *processor) must(err error) {
	if err != nil {
		p.t.Helper()
		p.t.Fatal(err)
	}
}

// wait returns the signal that stopped the child; 0 if it ended.
func (p *processor) wait() unix.Signal {
	var ws unix.WaitStatus
	if _, err := unix.Wait4(p.pid, &ws, 0, nil); err != nil {
		p.t.Fatal(err)
	}
	if !ws.Stopped() {
		return 0
	}
	return ws.StopSignal()
}

func (p *processor) write(b []byte, at uint64) {
	_, err := p.mem.WriteAt(b, int64(at))
	p.must(err)
}

// map_ lets the child map memory to read, write and execute.
func (p *processor) map_(regs unix.PtraceRegs, at, size uint64) {
	p.write([]byte{0x0f, 0x05}, regs.Rip)
	call := regs
	call.Rax, call.Rdi, call.Rsi, call.Rdx = unix.SYS_MMAP, at, size, 7
	call.R10, call.R8, call.R9 = unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE, ^uint64(0), 0
	call.Orig_rax = ^uint64(0)
	p.must(unix.PtraceSetRegs(p.pid, &call))
	p.must(unix.PtraceSingleStep(p.pid))
	p.wait()
	p.must(unix.PtraceGetRegs(p.pid, &call))
	if call.Rax != at {
		p.t.Fatalf("mmap in the child: %#x", call.Rax)
	}
}

// step executes one instruction from regs and returns the signal.
func (p *processor) step(code []byte, regs *unix.PtraceRegs) unix.Signal {
	p.write(code, regs.Rip)
	p.must(unix.PtraceSetRegs(p.pid, regs))
	p.must(unix.PtraceSingleStep(p.pid))
	return p.wait()
}

func (p *processor) xstate(request uintptr, buf []byte) []byte {
	iov := unix.Iovec{Base: &buf[0], Len: uint64(len(buf))}
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, request, uintptr(p.pid), noteXState, uintptr(unsafe.Pointer(&iov)), 0, 0)
	if errno != 0 {
		p.t.Fatalf("ptrace %#x of the vector state: %v", request, errno)
	}
	return buf[:iov.Len]
}

// executes reports whether the processor knows the instruction.
func (p *processor) executes(code []byte) bool {
	regs := p.regs
	switch p.step(code, &regs) {
	case 0:
		p.must(p.mem.Close())
		p.start()
		return true
	case unix.SIGTRAP:
		return true
	}
	return false
}

// runCode executes one instruction from the starting state.
func (p *processor) runCode(code []byte, regs unix.PtraceRegs) state {
	p.write(p.data, dataBase)
	p.xstate(unix.PTRACE_SETREGSET, p.vector)
	var s state
	s.signal = p.step(code, &regs)
	if s.signal == 0 {
		p.must(p.mem.Close())
		p.start()
		return s
	}
	p.must(unix.PtraceGetRegs(p.pid, &s.regs))
	s.vector = p.xstate(unix.PTRACE_GETREGSET, make([]byte, len(p.vector)))
	s.data = make([]byte, dataSize)
	_, err := p.mem.ReadAt(s.data, dataBase)
	p.must(err)
	return s
}

// watch is one debug register: a byte, for writes or for any access.
type watch struct {
	addr  uint64
	write bool
}

// hits executes the instruction under up to four watches and returns which
// were hit (Intel SDM volume 3, 17.2.4).
func (p *processor) hits(code []byte, regs unix.PtraceRegs, watches ...watch) (hit []bool, sig unix.Signal) {
	p.write(p.data, dataBase)
	p.xstate(unix.PTRACE_SETREGSET, p.vector)
	p.poke(7, 0)
	control := uint64(0)
	for n, w := range watches {
		p.poke(n, w.addr)
		kind := uint64(3)
		if w.write {
			kind = 1
		}
		control |= 1<<(2*n) | kind<<(16+4*n)
	}
	p.poke(6, 0)
	p.poke(7, control)
	sig = p.step(code, &regs)
	if sig == 0 {
		p.t.Fatalf("% x ended the child", code)
	}
	dr6 := p.peek(6)
	for n := range watches {
		hit = append(hit, dr6>>n&1 != 0)
	}
	p.poke(7, 0)
	return hit, sig
}

func (p *processor) poke(n int, v uint64) {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_POKEUSR, uintptr(p.pid), uintptr(debugRegister+8*n), uintptr(v), 0, 0)
	if errno != 0 && n == 7 && v == 0 {
		p.t.Skipf("not supported here: hardware watchpoints: %v", errno)
	}
	if errno != 0 {
		p.t.Fatalf("debug register %d = %#x: %v", n, v, errno)
	}
}

func (p *processor) peek(n int) uint64 {
	var v uint64
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_PEEKUSR, uintptr(p.pid), uintptr(debugRegister+8*n), uintptr(unsafe.Pointer(&v)), 0, 0)
	if errno != 0 {
		p.t.Fatalf("debug register %d: %v", n, errno)
	}
	return v
}

// generalRegisters points into regs in our numbers.
func generalRegisters(regs *unix.PtraceRegs) [16]*uint64 {
	return [16]*uint64{&regs.Rax, &regs.Rdx, &regs.Rcx, &regs.Rbx, &regs.Rsi, &regs.Rdi, &regs.Rbp, &regs.Rsp,
		&regs.R8, &regs.R9, &regs.R10, &regs.R11, &regs.R12, &regs.R13, &regs.R14, &regs.R15}
}

// prepare makes the starting point: registers that serve as addresses in the
// data, others that suit divisions, shifts and counts; memory of varying bytes;
// vectors whose elements all have the sign bit, as masks require, except number
// 4, an index; masks of all ones.
func (p *processor) prepare() {
	p.must(unix.PtraceGetRegs(p.pid, &p.regs))
	r := &p.regs
	r.Rip, r.Eflags, r.Orig_rax = codeAt, 0x202, ^uint64(0)
	r.Fs_base, r.Gs_base = 0x200, 0x400
	r.Rax, r.Rcx, r.Rdx = 0x1122334455660288, 5, 3
	r.Rbx, r.Rsi, r.Rdi = dataBase+0x1000, dataBase+0x2041, dataBase+0x2842
	r.Rbp, r.Rsp = dataBase+0x3003, dataBase+0x3808
	r.R8, r.R9, r.R10, r.R11 = 0x8877665544332211, 0x11, 0x0102030405060708, dataBase+0x1800
	r.R12, r.R13, r.R14, r.R15 = dataBase+0x4000, dataBase+0x4800, dataBase+0x5041, 0x5a5a5a5a12345678
	p.data = make([]byte, dataSize)
	seed := uint32(1)
	for i := range p.data {
		seed = seed*1664525 + 1013904223
		p.data[i] = 0x41 + byte(seed>>24)%0x3e
	}
	p.fillVectors()
}

func (p *processor) fillVectors() {
	fill := append([]byte(nil), p.data...)
	for i := range fill {
		fill[i] |= 0x80
	}
	for i := range 64 {
		fill[0x1000+4*64+i] = 0
		fill[0x2041+i] = 0xff
	}
	p.write(fill, dataBase)
	for n := range 32 {
		// vmovdqu64 zmm(n), [rbx+64*n]
		e := evexCode{opmap: map0F, pp: ppF3, w: 1, l: 2, opcode: 0x6f, reg: n, mod: 2, rm: 3, disp32: int32(64 * n)}
		if s := p.step(e.bytes(), &p.regs); s != unix.SIGTRAP {
			p.t.Logf("no AVX-512 here (%v): its instructions are not validated", s)
			p.fillHalves()
			break
		}
	}
	for n := range 8 {
		// kmovq k(n), [rsi]
		p.step([]byte{0xc4, 0xe1, 0xf8, 0x90, byte(n<<3 | 6)}, &p.regs)
	}
	p.vector = p.xstate(unix.PTRACE_GETREGSET, make([]byte, 16384))
}

// fillHalves fills the registers of a processor without AVX-512.
func (p *processor) fillHalves() {
	for n := range 16 {
		// vmovdqu ymm(n), [rbx+64*n]
		code := []byte{0xc4, 0xe1 &^ byte(n>>3<<7), 0x7e, 0x6f, byte(0x83 | n&7<<3)}
		code = binary.LittleEndian.AppendUint32(code, uint32(64*n))
		if s := p.step(code, &p.regs); s != unix.SIGTRAP {
			p.t.Skipf("not supported here: AVX (%v)", s)
		}
	}
}
