package unwind

import (
	"slices"
	"sync"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

// TailCall is a function that called another as its last action, by a jump, and so left no
// frame. It has no registers and no memory.
type TailCall struct {
	// PC is the address after the jump.
	PC evidence.Addr
	// Gap says where other tail calls may be missing.
	Gap evidence.Gap
	// Calls is the inline chain at the jump, innermost first.
	Calls []image.SymbolizedCall
}

// maxTails bounds the calls and functions that are remembered, and so the functions that
// are searched for tail calls.
const maxTails = 1 << 12

// tailCache remembers the tail calls of functions and those that led to frames.
type tailCache struct {
	mutex     sync.Mutex
	chains    map[tailKey][]TailCall
	functions map[evidence.Addr]leaving
}

// tailKey is a call: the function that was entered in the end, and where it returns to.
type tailKey struct{ entry, back evidence.Addr }

// leaving holds the tail calls of a function.
type leaving struct {
	jumps []jump
	known bool
}

// tailCalls returns the functions between a frame and its caller, innermost first. They are
// searched if the function that the caller called is not the frame's. calls is the frame's
// inline chain.
func (u *Unwinder) tailCalls(f *Frame, calls []image.SymbolizedCall) []TailCall {
	if f.Return == 0 || len(calls) == 0 {
		return nil
	}
	called, ok := u.calledBefore(f.Return)
	if !ok {
		return nil
	}
	if site := &calls[len(calls)-1].Site; called == site.PC-evidence.Addr(site.FunctionOffset) {
		return nil
	}
	module := u.process.ModuleAt(f.LookupPC())
	if module == nil {
		return nil
	}
	entry, ok := module.FunctionEntry(f.LookupPC())
	if !ok || entry == called {
		return nil
	}
	return u.knownTails(tailKey{entry, f.Return}, called)
}

// knownTails is tailsBetween, cached. As in gdb, the caller has to describe the call.
func (u *Unwinder) knownTails(key tailKey, called evidence.Addr) []TailCall {
	u.tails.mutex.Lock()
	defer u.tails.mutex.Unlock()
	list, ok := u.tails.chains[key]
	if !ok {
		caller := u.process.ModuleAt(key.back - 1)
		if caller == nil {
			return nil
		}
		if described, err := caller.DescribesCall(key.back); err == nil && described {
			list = u.tailsBetween(called, key.entry)
		}
		if u.tails.chains == nil {
			u.tails.chains = map[tailKey][]TailCall{}
		}
		if len(u.tails.chains) < maxTails {
			u.tails.chains[key] = list
		}
	}
	return list
}

// calledBefore returns the function that the direct call before a return address enters;
// false for indirect calls, whose target is not known any more.
func (u *Unwinder) calledBefore(back evidence.Addr) (evidence.Addr, bool) {
	// call rel32, and call *disp32(%rip), which calls a function of a library
	for _, size := range []int{5, 6} {
		var code [6]byte
		b := code[:size]
		if _, err := u.process.ReadMemory(back-evidence.Addr(size), b); err != nil {
			return 0, false
		}
		if !slices.Contains([]string{"\xe8", "\xff\x15"}, string(b[:size-4])) {
			continue
		}
		inst, err := x86.Decode(b, uint64(back)-uint64(size))
		if err != nil || inst.Flow != x86.FlowCall || inst.Len != size {
			continue
		}
		if inst.HasTarget {
			return u.calledThrough(evidence.Addr(inst.Target))
		}
		if module := u.process.ModuleAt(back - 1); module != nil {
			return u.boundTo(module, &inst)
		}
	}
	return 0, false
}

// tailsBetween searches the tail calls that lead from one function to another. The caller holds the
// cache's mutex.
func (u *Unwinder) tailsBetween(called, entry evidence.Addr) []TailCall {
	c, ok := findChain(called, entry, u.tailsOf)
	if !ok {
		return nil
	}
	var list []TailCall // in the order of time
	for _, j := range slices.Concat(c.first, c.last) {
		list = append(list, TailCall{PC: j.after, Calls: u.process.Symbolize(j.after, image.ReturnAddress)})
	}
	switch n := len(c.first); {
	case c.whole:
	case n > 0:
		list[n-1].Gap = evidence.GapInner
	default:
		list[0].Gap = evidence.GapOuter
	}
	slices.Reverse(list)
	return list
}

// tailsOf is tailCallsOf, cached.
func (u *Unwinder) tailsOf(entry evidence.Addr) ([]jump, bool) {
	l, ok := u.tails.functions[entry]
	if !ok {
		if len(u.tails.functions) >= maxTails {
			return nil, false
		}
		l.jumps, l.known = u.tailCallsOf(entry)
		if u.tails.functions == nil {
			u.tails.functions = map[evidence.Addr]leaving{}
		}
		u.tails.functions[entry] = l
	}
	return l.jumps, l.known
}
