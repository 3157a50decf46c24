package failure

import (
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
)

const (
	// guardReach is how far below a stack a fault still counts as its
	// overflow: the kernel's guard gap of the main stack (256 pages,
	// Documentation/admin-guide/kernel-parameters.txt, stack_guard_gap).
	guardReach = 1 << 20
	// maxCycle is the longest cycle of functions that is searched for.
	maxCycle = 64
)

// stackOverflow recognises an access below the thread's own stack, made
// through the stack pointer or near it.
func (j *judge) stackOverflow(f *evidence.Failure) bool {
	addr, sp := f.Fault.Addr, j.cpu.regs.SP()
	stack := j.stack.stackAbove(addr)
	if m := j.process.MappingAt(addr); stack == nil || m != nil && m.Writable() {
		return false
	}
	if addr+guardReach < stack.Start {
		return j.leftStack(f, stack)
	}
	// The stack pointer is below the stack, or about to be: push and call fault before they move
	// it, and a frame's first access may be far below a stack pointer that is still good.
	near := sp < stack.Start+pageSize && sp+guardReach > stack.Start
	if !near || addr+guardReach < sp {
		return false
	}
	f.Kind = evidence.StackOverflow
	f.Recursion = j.stack.recursion(stack)
	return true
}

// leftStack recognises a frame that is larger than the rest of its stack (alloca, a variable
// array): the frame begins in the stack, the stack pointer is below the stack, and the memory
// accessed belongs to the frame.
func (j *judge) leftStack(f *evidence.Failure, stack *image.Mapping) bool {
	sp := j.cpu.regs.SP()
	if len(j.stack.frames) == 0 || sp >= stack.Start || j.process.MappingAt(sp) != nil {
		return false
	}
	top := j.stack.frames[0].CFA
	if j.stack.frames[0].Trust.Guess() || !stack.Contains(top) || f.Fault.Addr+redZone < sp || f.Fault.Addr >= stack.Start {
		return false
	}
	f.Kind, f.Proof = evidence.StackOverflow, evidence.FromCore
	f.FrameBytes = uint64(top - sp)
	return true
}

// redZone is how far below the stack pointer a function may store (System V
// ABI, AMD64 supplement, 3.2.2); a push needs no more.
const redZone = 128

// stackAbove returns the writable mapping above addr that holds the frames of
// this thread.
func (k *callStack) stackAbove(addr evidence.Addr) *image.Mapping {
	for i := range k.mappings {
		m := &k.mappings[i]
		if m.Start <= addr || !m.Writable() {
			continue
		}
		if m.Path == "[stack]" || m.Contains(k.registers().SP()) {
			return m
		}
		for j := range min(len(k.frames), 4) {
			if m.Contains(k.frames[j].CFA) {
				return m
			}
		}
		return nil
	}
	return nil
}

// recursion finds the cycle of functions at the top of the stack.
func (k *callStack) recursion(stack *image.Mapping) *evidence.Recursion {
	r := &evidence.Recursion{Depth: max(k.walk.Depth, len(k.frames)), AtLeast: k.walk.Truncated}
	turn, turns := k.walkedCycle()
	if turn == nil {
		start, period, n := cycle(k.functionIDs())
		turn, turns = k.frames[start:start+period], n
	}
	if turns < 3 {
		return nil
	}
	r.Turns = turns
	for i := len(turn) - 1; i >= 0; i-- {
		r.Cycle = append(r.Cycle, k.sitesOf(&turn[i])...)
	}
	if sp := k.registers().SP(); sp < stack.End {
		r.StackBytes = uint64(stack.End - sp)
	}
	return r
}

// walkedCycle returns the frames of the cycle that the unwinder found. If it did not keep them,
// only their pcs are known.
func (k *callStack) walkedCycle() (turn []unwind.Frame, turns int) {
	c := k.walk.Cycle
	if c == nil || c.First < k.cut {
		return nil, 0
	}
	if first := c.First - k.cut; first+c.Period <= k.kept() {
		return k.frames[first : first+c.Period], c.Turns
	}
	turn = make([]unwind.Frame, len(c.PCs))
	for i, pc := range c.PCs {
		turn[i] = unwind.Frame{Kind: evidence.Physical, Lookup: image.ReturnAddress}
		turn[i].Registers.Set(image.RIP, uint64(pc))
	}
	return turn, c.Turns
}

// kept is how many frames precede the gap in the frames of a deep stack.
func (k *callStack) kept() int {
	if k.walk.Omitted == 0 {
		return len(k.frames)
	}
	return max(0, min(k.walk.OmittedAt-k.cut, len(k.frames)))
}

// sitesOf returns a frame's inline chain in call order.
func (k *callStack) sitesOf(fr *unwind.Frame) []evidence.Site {
	if len(fr.Calls) == 0 {
		return []evidence.Site{bareSite(k, fr)}
	}
	var out []evidence.Site
	for i := len(fr.Calls) - 1; i >= 0; i-- {
		out = append(out, fr.Calls[i].Site)
	}
	return out
}

// bareSite is a frame's place by its module and symbol alone.
func bareSite(k target, fr *unwind.Frame) evidence.Site {
	site := evidence.Site{PC: fr.PC()}
	if m := k.ModuleAt(site.PC); m != nil {
		site.Module, site.BuildID, site.ModuleOffset = m.Path, m.BuildID, evidence.Addr(m.LinkAddr(site.PC))
	}
	if sym, ok := k.SymbolAt(fr.LookupPC()); ok {
		site.Function, site.FunctionOffset = sym.Name, uint64(site.PC-sym.Addr)
	}
	return site
}

// functionIDs gives each frame the entry of its function, or its pc if the function is not known.
func (k *callStack) functionIDs() []evidence.Addr {
	ids := make([]evidence.Addr, k.kept())
	known := map[evidence.Addr]evidence.Addr{}
	for i := range ids {
		fr := &k.frames[i]
		pc := fr.PC()
		id, ok := known[pc]
		if !ok {
			id = pc
			if sym, found := k.SymbolAt(fr.LookupPC()); found {
				id = sym.Addr
			}
			known[pc] = id
		}
		ids[i] = id
	}
	return ids
}

// cycle finds the shortest sequence of functions that repeats at the top of a stack, and how often
// it does. The first frames may be leaves of the last turn. A recursion without a fixed order
// counts as a cycle of its most frequent function: period is then the distance between the first
// two frames of that function.
func cycle(ids []evidence.Addr) (start, period, turns int) {
	for start = 0; start < min(8, len(ids)); start++ {
		for p := 1; p <= min(maxCycle, (len(ids)-start)/3); p++ {
			n := repeats(ids[start:], p)
			if n >= 3 && n*p*2 > len(ids) {
				return start, p, n
			}
		}
	}
	return irregular(ids)
}

func repeats(ids []evidence.Addr, p int) int {
	n := 0
	for n+p < len(ids) && ids[n] == ids[n+p] {
		n++
	}
	return n/p + 1
}

func irregular(ids []evidence.Addr) (start, period, turns int) {
	count := map[evidence.Addr]int{}
	var most evidence.Addr
	for _, id := range ids {
		count[id]++
		if count[id] > count[most] {
			most = id
		}
	}
	first := -1
	for i, id := range ids {
		if id != most {
			continue
		}
		if first >= 0 {
			return first, min(i-first, maxCycle), count[most]
		}
		first = i
	}
	return 0, 0, 0
}
