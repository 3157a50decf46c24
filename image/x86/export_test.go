package x86

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Examined is an instruction that an external test executes.
type Examined struct {
	Code []byte
	Inst *Inst
	p    *processor
}

// Machine is the state of the processor around an instruction.
type Machine struct {
	Regs   unix.PtraceRegs
	Vector []byte // as PTRACE_GETREGSET gives it
	Data   []byte // from DataBase
}

// DataBase is the address of the data.
const DataBase = dataBase

// EachExamined calls f with an instruction of each shape that the processor executes without a fault, until f returns
// false. part is the share of the shapes: 1 for all.
func EachExamined(t *testing.T, part int, f func(*Examined) bool) {
	p := newProcessor(t)
	p.prepare()
	shapes := map[string]bool{}
	encodings(func(code []byte) bool {
		code = patchRIP(code)
		i, err := Decode(code, codeAt)
		if err != nil || i.HasTarget && i.Flow != FlowBranch {
			return true
		}
		c := check{p: p, inst: i, code: code}
		key := shape(&i)
		if shapes[key] || c.dangerous() || noisy[i.Op] || c.unnamed() {
			return true
		}
		shapes[key] = true
		if len(shapes)%part != 0 {
			return true
		}
		x := &Examined{Code: code, Inst: &i, p: p}
		if _, ok := x.Run(x.Start()); !ok {
			return true
		}
		return f(x)
	})
}

// Start is the state before the instruction.
func (x *Examined) Start() *Machine {
	return &Machine{Regs: x.p.regs, Vector: append([]byte(nil), x.p.vector...), Data: append([]byte(nil), x.p.data...)}
}

// Run executes the instruction; ok is false if it faults.
func (x *Examined) Run(m *Machine) (after *Machine, ok bool) {
	data, vector := x.p.data, x.p.vector
	x.p.data, x.p.vector = m.Data, append([]byte(nil), m.Vector...)
	s := x.p.runCode(x.Code, m.Regs)
	x.p.data, x.p.vector = data, vector
	if s.signal != unix.SIGTRAP {
		return nil, false
	}
	return &Machine{s.regs, s.vector, s.data}, true
}

// VectorBytes are bytes of a vector register as Start has them.
func (x *Examined) VectorBytes(n, off, size int) []byte {
	b := append([]byte(nil), x.p.data[0x1000+64*n+off:][:size]...)
	for i := range b {
		b[i] |= 0x80
	}
	return b
}
