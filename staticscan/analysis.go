package staticscan

import (
	"diagnose/evidence"
	"diagnose/image/x86"
)

// access is a memory operand that an instruction reads or writes.
type access struct {
	inst    int
	operand *x86.Operand
	at      value
}

// analysis is a function with its data flow.
type analysis struct {
	function *function
	flow     *flow
	// addrs is the abstract address of each instruction's first memory
	// operand; accesses are all operands but the implied stack slots.
	addrs    []value
	accesses []access
	calls    []call
	// stackAddresses are the stack offsets whose address the function takes.
	stackAddresses map[value]bool
	problems       []string
}

// analyse decodes the function that covers pc and runs its data flow. The
// result is kept.
func (w *processView) analyse(pc evidence.Addr) (*analysis, error) {
	for _, a := range w.code {
		if a.function.contains(pc) {
			return a, nil
		}
	}
	fn, err := functionAt(w.process, pc)
	if err != nil {
		return nil, err
	}
	insts, problems := fn.decode(w.process)
	a := analyseCode(insts, uint64(fn.entry), w.surroundings())
	a.function, a.problems = fn, problems
	w.code[fn.entry] = a
	return a, nil
}

func (w *processView) surroundings() *surroundings {
	s := &surroundings{
		memory:     w.memory,
		data:       w.isDataOrTLS,
		fixed:      w.isFixed,
		same:       w.sameVariable,
		tlsAddress: w.tlsAddress,
	}
	if w.thread != nil {
		s.threadPointer = uint64(w.thread.Registers.FSBase)
	}
	return s
}

func (w *processView) isDataOrTLS(addr uint64) bool {
	return w.isData(addr) || w.tlsBlockAt(evidence.Addr(addr)) != nil
}

func analyseCode(insts []x86.Inst, entry uint64, around *surroundings) *analysis {
	return analyseGraph(newGraph(insts, entry), around)
}

func analyseGraph(g *graph, around *surroundings) *analysis {
	a := &analysis{stackAddresses: map[value]bool{}, addrs: make([]value, len(g.insts))}
	a.flow = run(g, around)
	a.flow.each(a.visit)
	return a
}

// noteTaken keeps the addresses of the frame that a call may hand over.
func (a *analysis) noteTaken(in *x86.Inst, st *state) {
	if in.Flow != x86.FlowCall && in.Flow != x86.FlowJump {
		return
	}
	for _, r := range x86.ArgumentRegisters {
		if v := st.regs[r]; v.kind == stack {
			a.stackAddresses[value{kind: stack, base: v.base, off: v.off}] = true
		}
	}
}

func (a *analysis) visit(i int, st *state) {
	in := &a.flow.insts[i]
	a.noteCall(i, st)
	a.noteTaken(in, st)
	first := true
	for n := range in.Operands {
		op := &in.Operands[n]
		if !op.IsMemory {
			continue
		}
		at := a.flow.address(st, &op.Memory)
		if first {
			a.addrs[i], first = at, false
		}
		if in.Op == "lea" && at.kind == stack {
			a.stackAddresses[value{kind: stack, base: at.base, off: at.off}] = true
		}
		if op.Access == "" || op.Implicit && (op.Memory.Base == x86.RSP || op.Memory.Base == x86.RBP) {
			continue
		}
		a.accesses = append(a.accesses, access{inst: i, operand: op, at: at})
	}
}
