package x86

import "errors"

// Function decodes code from its entry to its end. Undecodable bytes are
// skipped and counted.
func Function(code []byte, pc uint64) (insts []Inst, undecodable int) {
	// Compiled code has 4 to 5 bytes an instruction and 2 to 3 operands.
	insts = make([]Inst, 0, len(code)/4+1)
	d := decoder{}
	for at := 0; at < len(code); {
		if cap(d.slab)-len(d.slab) < maxOperands {
			d.slab = make([]Operand, 0, min(slabSize, len(code)+maxOperands))
		}
		inst, err := d.decode(code[at:], pc+uint64(at))
		if err != nil {
			n := errorLen(err)
			n = min(n, len(code)-at)
			undecodable += n
			at += n
			continue
		}
		insts = append(insts, inst)
		at += inst.Len
	}
	return insts, undecodable
}

const (
	// maxOperands is more than any instruction has, implicit ones included.
	maxOperands = 16
	slabSize    = 512
)

func errorLen(err error) int {
	var e *DecodeError
	if errors.As(err, &e) && e.Len > 0 {
		return e.Len
	}
	return 1
}

// Before returns the instruction that ends at pc, of the function whose code
// starts at entry: the one before a trapped pc. The error is a *DecodeError
// when no instruction ends there.
func Before(code []byte, entry, pc uint64) (Inst, error) {
	if pc <= entry || pc-entry > uint64(len(code)) {
		return Inst{PC: pc}, &DecodeError{PC: pc, Reason: "outside of the function's code", Len: 1}
	}
	var l layout
	for at := entry; at < pc; {
		l = layout{}
		rest := code[at-entry:]
		n := 0
		if reason := l.parse(rest, at); reason == "" {
			n = l.len
		} else {
			n = 1
		}
		if at+uint64(n) == pc {
			return Decode(rest, at)
		}
		at += uint64(n)
	}
	return Inst{PC: pc}, &DecodeError{PC: pc, Reason: "no instruction of the function ends here", Len: 1}
}
