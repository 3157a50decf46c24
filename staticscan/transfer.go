package staticscan

import "diagnose/image/x86"

// callerSaved are the registers a callee is free to change (System V ABI,
// AMD64 supplement, figure 3.4).
var callerSaved = [...]x86.Reg{x86.RAX, x86.RCX, x86.RDX, x86.RSI, x86.RDI, x86.R8, x86.R9, x86.R10, x86.R11}

// step is the effect of one instruction on the state.
func (f *flow) step(st *state, in *x86.Inst) {
	switch in.Flow {
	case x86.FlowCall:
		f.call(st, in)
		return
	case x86.FlowSyscall:
		st.regs[x86.RAX], st.regs[x86.RCX], st.regs[x86.R11] = value{}, value{}, value{}
		return
	}
	switch in.Op {
	case "push":
		f.push(st, in)
	case "pop":
		f.pop(st, in)
	case "leave":
		at := st.regs[x86.RBP]
		st.regs[x86.RBP] = f.load(st, at, 8)
		st.regs[x86.RSP] = f.plus(at, 8)
	default:
		f.assign(st, in)
	}
}

func (f *flow) plus(v value, n int64) value { return add(v, number(uint64(n)), f.isData) }

func (f *flow) call(st *state, in *x86.Inst) {
	result := value{}
	if in.HasTarget && f.around.tlsAddress != nil {
		if arg, ok := st.regs[x86.RDI].constant(); ok {
			if addr, ok := f.around.tlsAddress(in.Target, uint64(arg)); ok {
				result = number(addr)
			}
		}
	}
	for _, r := range callerSaved {
		st.regs[r] = value{}
	}
	st.regs[x86.RAX] = result
}

func (f *flow) push(st *state, in *x86.Inst) {
	v, size := value{}, 8
	if op, ok := explicit(in, 0); ok {
		v = f.value(st, op)
		if op.Size == 2 {
			size = 2
		}
	}
	st.regs[x86.RSP] = f.plus(st.regs[x86.RSP], -int64(size))
	st.store(st.regs[x86.RSP], v, size)
}

func (f *flow) pop(st *state, in *x86.Inst) {
	top, size := st.regs[x86.RSP], int64(8)
	op, ok := explicit(in, 0)
	if ok && op.Size == 2 {
		size = 2
	}
	v := f.load(st, top, int(size))
	st.regs[x86.RSP] = f.plus(top, size)
	switch {
	case ok && op.IsMemory:
		st.store(f.address(st, &op.Memory), v, int(size))
	case ok && op.Reg.General():
		st.regs[op.Reg] = v
	}
}

// assign handles every instruction that computes its first operand from the
// others, and forgets what the rest may write.
func (f *flow) assign(st *state, in *x86.Inst) {
	dst, ok := explicit(in, 0)
	result := value{}
	if ok {
		result = f.compute(st, in, dst)
	}
	var at value
	toMemory := ok && dst.IsMemory && dst.Access.Writes()
	if toMemory {
		at = f.address(st, &dst.Memory)
	}
	f.spoil(st, in, toMemory)
	switch {
	case toMemory:
		st.store(at, result, dst.Size)
	case ok && dst.Reg.General() && dst.Access.Writes():
		st.regs[dst.Reg] = f.fit(result, dst, in)
	}
}

// fit is result as the register keeps it: a 32-bit write clears the upper
// half (Intel SDM volume 1, 3.4.1.1), a narrower one leaves a mixture.
func (f *flow) fit(result value, dst *x86.Operand, in *x86.Inst) value {
	switch {
	case dst.Reg == x86.RSP && (result.kind == unknown || result.varies):
		return value{kind: stack, base: in.PC}
	case dst.Size == 8:
		return result
	case dst.Size == 4:
		if n, ok := result.constant(); ok {
			return number(uint64(uint32(n)))
		}
	}
	return value{}
}

// spoil makes every register unknown that the instruction writes, and every
// stack word, except what assign takes care of.
func (f *flow) spoil(st *state, in *x86.Inst, skipFirst bool) {
	type write struct {
		at   value
		size int
	}
	var stores []write
	for n := range in.Operands {
		op := &in.Operands[n]
		if op.IsMemory && op.Access.Writes() && !(n == 0 && skipFirst) {
			stores = append(stores, write{f.address(st, &op.Memory), op.Size})
		}
	}
	for n := range in.Operands {
		op := &in.Operands[n]
		if !op.IsMemory && !op.IsImm && op.Reg.General() && op.Access.Writes() && op.Reg != x86.RSP {
			st.regs[op.Reg] = value{}
		}
	}
	for _, w := range stores {
		st.store(w.at, value{}, w.size)
	}
}

// compute is the value that the instruction gives to its first operand.
func (f *flow) compute(st *state, in *x86.Inst, dst *x86.Operand) value {
	src, two := explicit(in, 1)
	if !two {
		return f.unary(st, in, dst)
	}
	third, three := explicit(in, 2)
	switch in.Op {
	case "mov", "movabs":
		return f.value(st, src)
	case "lea":
		return f.address(st, &src.Memory)
	case "add":
		return add(f.value(st, dst), f.value(st, src), f.isData)
	case "sub":
		if sameRegister(dst, src) {
			return number(0)
		}
		if n, ok := f.value(st, src).constant(); ok {
			return f.plus(f.value(st, dst), -n)
		}
		return add(f.value(st, dst), value{}, f.isData)
	case "xor":
		if sameRegister(dst, src) {
			return number(0)
		}
	case "and":
		if n, ok := f.value(st, src).constant(); ok && n == 0 {
			return number(0)
		}
	case "shl":
		if n, ok := f.value(st, src).constant(); ok && n >= 0 && n < 32 {
			return scale(f.value(st, dst), 1<<n)
		}
	case "imul":
		if three && third.IsImm {
			return scale(f.value(st, src), third.Imm)
		}
	case "movsxd", "movsx", "movzx":
		if n, ok := f.value(st, src).constant(); ok && n >= 0 && n < 1<<7 {
			return number(uint64(n))
		}
	}
	return value{}
}

func (f *flow) unary(st *state, in *x86.Inst, dst *x86.Operand) value {
	switch in.Op {
	case "inc":
		return f.plus(f.value(st, dst), 1)
	case "dec":
		return f.plus(f.value(st, dst), -1)
	}
	return value{}
}

// value is what an operand holds.
func (f *flow) value(st *state, op *x86.Operand) value {
	switch {
	case op.IsImm:
		return number(uint64(op.Imm))
	case op.IsMemory:
		return f.load(st, f.address(st, &op.Memory), op.Size)
	case op.Reg.General() && op.Size == 8:
		return st.regs[op.Reg]
	case op.Reg.General() && op.Size == 4:
		if n, ok := st.regs[op.Reg].constant(); ok {
			return number(uint64(uint32(n)))
		}
	}
	return value{}
}

// explicit returns the n-th operand that is written in the text.
func explicit(in *x86.Inst, n int) (*x86.Operand, bool) {
	if n >= len(in.Operands) || in.Operands[n].Implicit {
		return nil, false
	}
	return &in.Operands[n], true
}

func sameRegister(a, b *x86.Operand) bool {
	return a.Reg.General() && !a.IsMemory && !b.IsMemory && !b.IsImm && a.Reg == b.Reg && a.Size == b.Size
}
