package unwind

import (
	"fmt"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

// scanWords bounds the stack scan: 8 KiB of stack for one frame.
const scanWords = 1024

// framePointerRow is the row of code that keeps the frame pointer chain of
// the ABI: the caller's frame pointer at [rbp], the return address above it.
func framePointerRow() row {
	return row{
		cfa: rule{kind: ruleRegister, reg: image.RBP, offset: 16},
		rules: []rule{
			{of: image.RBP, kind: ruleOffset, offset: -16},
			{of: image.RIP, kind: ruleOffset, offset: -8},
		},
		ra: image.RIP,
	}
}

// plausible rejects a guessed caller that cannot have made the call.
func (w *walk) plausible(caller *image.Registers, cfa evidence.Addr, how *way) error {
	sp := w.frame.Registers.SP()
	if how.switches {
		if !w.unwinder.followsCall(caller.PC()) {
			return fmt.Errorf("no call instruction precedes %v", caller.PC())
		}
		return nil
	}
	if cfa <= sp || cfa&7 != 0 {
		return fmt.Errorf("the frame address %v does not fit the stack pointer %v", cfa, sp)
	}
	if how.row.signal {
		return nil
	}
	if a, b := w.unwinder.process.MappingAt(sp), w.unwinder.process.MappingAt(cfa-8); a != b {
		return fmt.Errorf("the frame address %v is on another stack than %v", cfa, sp)
	}
	if !w.unwinder.followsCall(caller.PC()) {
		return fmt.Errorf("no call instruction precedes %v", caller.PC())
	}
	return nil
}

// scan looks for a return address on the stack, the last resort.
func (w *walk) scan(failed error) step {
	f := &w.frame
	sp, ok := f.Registers.Get(image.RSP)
	if !ok {
		return step{stopped: "the stack pointer is not known"}
	}
	if f.Kind == evidence.SignalFrame {
		return step{stopped: fmt.Sprintf("the interrupted registers cannot be read: %v", failed)}
	}
	addr := evidence.Addr(sp+7) &^ 7
	for range scanWords {
		v, err := w.stack.word(addr)
		if err != nil {
			return step{stopped: w.whyStopped(failed, err)}
		}
		addr += 8
		if !w.unwinder.followsCall(evidence.Addr(v)) {
			continue
		}
		f.CFA = addr
		return step{trust: evidence.TrustScan, caller: scannedCaller(&f.Registers, addr, v)}
	}
	return step{stopped: w.whyStopped(failed, fmt.Errorf("no return address in %d bytes of stack", 8*scanWords))}
}

// scannedCaller keeps the only register that may still be valid in the caller
// of a scanned frame: a frame pointer that points further out.
func scannedCaller(regs *image.Registers, cfa evidence.Addr, pc uint64) image.Registers {
	caller := *regs
	for n := image.RAX; n <= image.RIP; n++ {
		if v, ok := regs.Get(n); n != image.RBP || !ok || evidence.Addr(v) < cfa {
			caller.Forget(n)
		}
	}
	caller.Set(image.RSP, uint64(cfa))
	caller.Set(image.RIP, pc)
	caller.OrigRAX = -1
	caller.Vector = nil
	return caller
}

func (w *walk) whyStopped(failed, last error) string {
	if failed == nil {
		failed = fmt.Errorf("no call frame information covers %v", w.frame.PC())
	}
	return fmt.Sprintf("%v; %v", failed, last)
}

// followsCall reports whether pc is in executable memory, right after a call
// instruction.
func (u *Unwinder) followsCall(pc evidence.Addr) bool {
	if pc < 0x1000 || !pc.Canonical() {
		return false
	}
	if m := u.process.MappingAt(pc); m == nil || !m.Executable() {
		return false
	}
	var code [7]byte
	if _, err := u.process.ReadMemory(pc-7, code[:]); err != nil {
		return false
	}
	return endsInCall(code[:])
}

// endsInCall reports whether seven bytes of code end in a call: e8 rel32, or
// ff /2 with its ModRM, SIB and displacement (Intel SDM volume 2, CALL).
func endsInCall(code []byte) bool {
	if code[2] == 0xe8 {
		return true
	}
	for size := 2; size <= 7; size++ {
		c := code[7-size:]
		if c[0] == 0xff && c[1]>>3&7 == 2 && callLength(c) == size {
			return true
		}
	}
	return false
}

// callLength is the length of an ff /2 instruction by its ModRM and SIB.
func callLength(c []byte) int {
	mod, rm := c[1]>>6, c[1]&7
	length := 2
	if mod != 3 && rm == 4 {
		if length++; len(c) > 2 && mod == 0 && c[2]&7 == 5 {
			length += 4
		}
	}
	switch {
	case mod == 1:
		length++
	case mod == 2, mod == 0 && rm == 5:
		length += 4
	}
	return length
}

// maxPrologue bounds how far after a function's entry its prologue is followed.
const maxPrologue = 64 << 10

// prologue follows the instructions of a function without call frame
// information from its entry to pc, and makes a row from their effects on the
// stack and frame pointers.
func (u *Unwinder) prologue(pc evidence.Addr, lookup image.Lookup) (row, bool) {
	symbol, ok := u.process.SymbolAt(pc)
	if !ok || symbol.Addr > pc || pc-symbol.Addr > maxPrologue {
		return row{}, false
	}
	if u.modules.spent.spend(int(pc-symbol.Addr)) != nil {
		return row{}, false
	}
	// For a return address, the call itself is included; calls leave the stack
	// unchanged.
	code := make([]byte, pc-symbol.Addr)
	if _, err := u.process.ReadMemory(symbol.Addr, code); err != nil {
		return row{}, false
	}
	s := newFrameState()
	body := s
	for at := 0; at < len(code); {
		inst, err := x86.Decode(code[at:], uint64(symbol.Addr)+uint64(at))
		if err != nil {
			if lookup == image.ReturnAddress && len(code)-at < 15 {
				break // the call, cut by pc - 1
			}
			return row{}, false
		}
		at += inst.Len
		if s.apply(&inst) {
			body = s
		}
		if inst.Flow == x86.FlowReturn || inst.Flow == x86.FlowJump || inst.Flow == x86.FlowTrap {
			// The code that follows is reached from the body, not from this
			// epilogue.
			s = body
		}
	}
	return s.row()
}

// frameState is what the instructions since a function's entry have done to
// the stack.
type frameState struct {
	depth   int64 // CFA - rsp
	lost    bool  // rsp has changed by an amount that is not known
	fp      int64 // CFA - rbp
	hasFP   bool
	saved   [columns]int64 // CFA-relative slot of a pushed register
	isSaved [columns]bool
}

func newFrameState() frameState { return frameState{depth: 8} }

// apply follows one instruction; true if it belongs to a prologue.
func (s *frameState) apply(inst *x86.Inst) bool {
	switch inst.Op {
	case "push":
		s.depth += 8
		if r, ok := registerOperand(inst, 0); ok && !s.isSaved[r] {
			s.saved[r], s.isSaved[r] = -s.depth, true
		}
		return true
	case "pop":
		s.depth -= 8
	case "leave":
		s.depth, s.lost, s.hasFP = s.fp-8, false, false
	case "sub", "add", "and":
		return s.arithmetic(inst)
	case "mov":
		to, ok1 := registerOperand(inst, 0)
		from, ok2 := registerOperand(inst, 1)
		switch {
		case !ok1 || !ok2:
		case to == x86.RBP && from == x86.RSP:
			s.fp, s.hasFP = s.depth, !s.lost
			return true
		case to == x86.RSP && from == x86.RBP && s.hasFP:
			s.depth, s.lost = s.fp, false
		case to == x86.RSP:
			s.lost = true
		}
	case "lea":
		return s.lea(inst)
	}
	return false
}

// arithmetic follows sub, add and and on the stack pointer.
func (s *frameState) arithmetic(inst *x86.Inst) bool {
	if to, ok := registerOperand(inst, 0); !ok || to != x86.RSP {
		return false
	}
	by := inst.Operands[1]
	switch {
	case !by.IsImm || inst.Op == "and":
		s.lost = true
		return true
	case inst.Op == "sub":
		s.depth += by.Imm
		return by.Imm > 0
	}
	s.depth -= by.Imm
	return by.Imm < 0
}

// lea follows lea rsp, [rsp+n].
func (s *frameState) lea(inst *x86.Inst) bool {
	if to, ok := registerOperand(inst, 0); !ok || to != x86.RSP {
		return false
	}
	m := inst.Operands[1].Memory
	switch {
	case m.Base == x86.RSP && m.Index == x86.RegNone:
		s.depth -= m.Disp
		return m.Disp < 0
	case m.Base == x86.RBP && m.Index == x86.RegNone && s.hasFP:
		s.depth, s.lost = s.fp-m.Disp, false
	default:
		s.lost = true
	}
	return false
}

// registerOperand returns operand n if it is a general register.
func registerOperand(inst *x86.Inst, n int) (x86.Reg, bool) {
	if n >= len(inst.Operands) {
		return 0, false
	}
	o := &inst.Operands[n]
	if o.IsMemory || o.IsImm || int(o.Reg) >= int(x86.RIP) {
		return 0, false
	}
	return o.Reg, true
}

// row makes a row of the state.
func (s *frameState) row() (row, bool) {
	r := row{ra: image.RIP, rules: []rule{{of: image.RIP, kind: ruleOffset, offset: -8}}}
	switch {
	case s.hasFP:
		r.cfa = rule{kind: ruleRegister, reg: image.RBP, offset: s.fp}
	case !s.lost:
		r.cfa = rule{kind: ruleRegister, reg: image.RSP, offset: s.depth}
	default:
		return row{}, false
	}
	for _, n := range []image.Register{image.RBX, image.RBP, image.R12, image.R13, image.R14, image.R15} {
		if s.isSaved[n] {
			r.rules = append(r.rules, rule{of: n, kind: ruleOffset, offset: s.saved[n]})
		}
	}
	return r, true
}
