package sandbox

import (
	"errors"
	"fmt"
	"os"
	"time"

	"diagnose/evidence"
	"diagnose/internal/procmaps"
)

// Program is the program at a stop.
type Program interface {
	// Read reads len(p) bytes, or fails.
	Read(addr evidence.Addr, p []byte) error
	// Call calls a function. What it does is seen by later reads and calls, and is no more at the next stop. why says why it did not return, if
	// so. The error is that of the tool.
	Call(call *FunctionCall) (result *Result, why string, err error)
}

// FunctionCall is a call of a function of the program: the registers and the part of the stack that may have arguments, by the System V ABI.
type FunctionCall struct {
	Function       evidence.Addr
	Integers       []uint64
	Vectors, Upper []uint64 // the halves of the vector registers
	Stack          []byte
	// Time bounds it.
	Time time.Duration
	// Own is the memory of the code, to which pointers among the arguments may lead.
	Own *Own
}

// Result has the registers that may have a result.
type Result struct {
	RAX, RDX uint64
	Vectors  [2][16]byte
	X87      []byte // the start of the FXSAVE area
}

// mostStack is how much of the stack above the return address a called function gets.
const mostStack = 1024

// call answers a call of the code's process. why is empty if the function has returned.
func (p *Process) call(program Program, within time.Duration) (why string, err error) {
	r := &p.control.Call
	r.Answered, p.control.Operations = 0, 0
	if !p.program.isCode(r.Function) {
		return "", nil
	}
	if p.own == nil {
		if p.own, err = openOwn(p.command.Process.Pid, p.program); err != nil {
			return "", err
		}
	}
	call := &FunctionCall{Function: evidence.Addr(r.Function), Integers: append([]uint64(nil), r.Integer[:]...), Time: within, Own: p.own}
	for _, v := range r.Vector {
		call.Vectors, call.Upper = append(call.Vectors, v[0]), append(call.Upper, v[1])
	}
	call.Stack = make([]byte, mostStack)
	n, _ := p.own.memory.ReadAt(call.Stack, int64(r.Stack)) // the stack may end before
	call.Stack = call.Stack[:n]
	result, why, err := program.Call(call)
	if err != nil || why != "" {
		return why, err
	}
	r.RAX, r.RDX, r.Result = result.RAX, result.RDX, result.Vectors
	copy(r.X87[:], result.X87)
	r.Answered = 1
	p.send(p.pages.begin(program.Read)) // it may have changed them
	return "", nil
}

// Own is the memory of the code's process.
type Own struct {
	pid          int
	memory, maps *os.File
	program      *neighbour
}

func openOwn(pid int, program *neighbour) (*Own, error) {
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	maps, err := procmaps.OpenQueries(pid)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sandbox: %w", err), memory.Close())
	}
	return &Own{pid, memory, maps, program}, nil
}

func (o *Own) close() {
	if o != nil {
		o.memory.Close()
		o.maps.Close()
	}
}

// ReadPage reads the page at an address. ok: the code has data there, which is not the tool's or the program's. Only private memory is writable.
func (o *Own) ReadPage(addr uint64, p []byte) (writable, ok bool) {
	if !o.program.isOwn(addr) {
		return false, false
	}
	addr &^= pageSize - 1
	flags := mappingFlags(o.pid, o.maps, addr)
	if flags&procmaps.Readable == 0 || flags&procmaps.Executable != 0 {
		return false, false
	}
	_, err := o.memory.ReadAt(p[:pageSize], int64(addr))
	return flags&procmaps.Writable != 0 && flags&procmaps.SharedFlag == 0, err == nil
}

// WritePage changes the page at an address for which ReadPage said that it is writable.
func (o *Own) WritePage(addr uint64, p []byte) error {
	if _, err := o.memory.WriteAt(p, int64(addr)); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	return nil
}
