package x86

import "errors"

// Function decodes code from its entry to its end. Undecodable bytes are
// skipped and counted. The instructions refer to code, and take about 100 bytes
// per byte of code: callers bound its length.
func Function(code []byte, pc uint64) (insts []Inst, undecodable int) {
	// Compiled code has about 4 bytes per instruction; a claimed function may
	// be a whole file.
	insts = make([]Inst, 0, min(len(code)/3+1, 1<<14))
	d := decoder{}
	for at := 0; at < len(code); {
		if cap(d.slab)-len(d.slab) < maxOperands {
			d.slab = make([]Operand, 0, min(slabSize, len(code)+maxOperands))
		}
		insts = append(insts, Inst{})
		inst := &insts[len(insts)-1]
		if err := d.decode(inst, code[at:], pc+uint64(at)); err != nil {
			insts = insts[:len(insts)-1]
			n := min(errorLen(err), len(code)-at)
			undecodable += n
			at += n
			continue
		}
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
