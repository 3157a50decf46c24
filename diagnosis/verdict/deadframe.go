package verdict

import (
	"fmt"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/x86"
)

// deadBelow bounds how far below the stack pointer the variables of functions are looked
// for that have returned.
const deadBelow = 1 << 16

// deadFrame reports that a victim lies on the stack below the frame of the failing
// instruction's function: the function that it was a variable of has returned, and what
// was stored there since is none of the value's history.
func (c *chain) deadFrame(v *victim) bool {
	thread := c.Process.FailingThread()
	if thread == nil || v.damaged() || v.value == nil || c.Case.Failure.Fault == nil || !onFailingStack(c.Process, v.start) {
		return false
	}
	pc, sp := thread.Registers.PC(), thread.Registers.SP()
	calls := c.Process.Symbolize(pc, image.AtInstruction)
	if len(calls) == 0 || image.LibraryCode(&calls[len(calls)-1].Site) || v.end() > sp || sp-v.start > deadBelow || !c.calls(pc) {
		return false
	}
	// A stack that the program allocated may have others' frames beside it.
	heap, err := agent.Open(c.Process, 0)
	return err != nil || !heap.InObjects(sp)
}

// calls reports whether the function at pc calls others: then nothing of its own is below
// its stack pointer (the red zone, System V ABI for x86-64, 3.2.2, is for those that do
// not).
func (c *chain) calls(pc evidence.Addr) bool {
	s, ok := c.Process.SymbolAt(pc)
	if !ok || s.Size == 0 || s.Size > mostFunction {
		return false
	}
	code := make([]byte, s.Size)
	if n, err := c.Process.ReadMemory(s.Addr, code); err != nil || n != len(code) {
		return false
	}
	list, _ := x86.Function(code, uint64(s.Addr))
	for i := range list {
		if list[i].Flow == x86.FlowCall {
			return true
		}
	}
	return false
}

// deadCause is for a value that was read from the frame of a function that had returned.
func (ac *account) deadCause() *evidence.Cause {
	last := &ac.chain.links[0]
	out := &evidence.Cause{Kind: evidence.CauseBadValue, Basis: evidence.BasisLifetime, Variable: ac.chain.victim.name, Site: ac.chain.Case.Failure.Site, Proof: evidence.Replayed}
	reader := "the failing instruction"
	if out.Site != nil {
		reader = siteText(out.Site)
	}
	out.Summary = fmt.Sprintf("%s reads %s from the stack below its own frame: the function whose variable was there has returned, and %s used the place since", reader, ac.chain.victim.name, where(&last.seen))
	out.Story = ac.story()
	return out
}
