package driver

import (
	"slices"

	"diagnose/canary/mallocjudge"
	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/staticscan"
)

// mallocFindings adds the findings about the C library's heap, of a process that ran without the agent.
func (a *analysis) mallocFindings() {
	f := &a.result.Failure
	if a.thread == nil || a.bystander() || f.Signal == nil || f.Kind == evidence.GoPanic {
		return
	}
	w := waitReader{&a.stoppedProcess, &a.recordings}
	in := mallocjudge.Input{Process: a.process, Failure: f, Thread: a.thread, Stacks: a.result.Stacks, StackName: w.stackVariable}
	switch {
	case f.Kind == evidence.HeapCorruption:
		if failure.RefusedByFree(f.Message) {
			a.freedPointer(&in, a.libraryFrames(nil))
		}
	default:
		if in.Other = a.otherHeap(); in.Other != nil {
			a.otherPointers(&in)
		} else {
			a.pointers(&in)
		}
	}
	a.result.Findings = append(said(mallocjudge.Findings(in)), a.result.Findings...)
}

// freeFunctions are the names of the functions that release the memory of their first argument.
var freeFunctions = []string{"free", "cfree", "__libc_free", "__GI___libc_free", "realloc", "__libc_realloc", "__GI___libc_realloc",
	"operator delete(void*)", "operator delete(void*, unsigned long)", "operator delete[](void*)", "operator delete[](void*, unsigned long)",
	// tcmalloc's names for the same code.
	"__libc_cfree", "tc_free", "tc_cfree", "tc_free_sized", "tc_delete", "tc_deletearray", "tc_delete_sized", "tc_deletearray_sized", "tc_realloc"}

// otherPointers adds the pointers that are looked for in the heap of another allocator: the one that was passed to free,
// if the process failed inside the allocator; where the bad pointer was read, and the failing instruction's.
func (a *analysis) otherPointers(in *mallocjudge.Input) {
	if frames := a.libraryFrames(in.Other.Module()); frames > 0 {
		a.freedPointer(in, frames)
		return
	}
	a.pointers(in)
}

// pointers adds where the bad pointer was read, and the failing instruction's pointers.
func (a *analysis) pointers(in *mallocjudge.Input) {
	f := in.Failure
	if a.blame != nil && a.blame.Cell != nil && a.blame.Role != "" {
		in.Pointers = append(in.Pointers, mallocjudge.Pointer{Name: "the bad value's memory at", Addr: *a.blame.Cell, Cell: a.blame.CellHolds})
	}
	if a.blame != nil && a.blame.Base != nil {
		in.Pointers = append(in.Pointers, mallocjudge.Pointer{Name: "the base of the address,", Addr: *a.blame.Base})
	}
	if f.Fault == nil {
		return
	}
	in.Pointers = append(in.Pointers, mallocjudge.Pointer{Name: "the address", Addr: f.Fault.Addr})
	if f.Instruction == nil {
		return
	}
	for _, o := range f.Instruction.Operands {
		if o.Access == "" || o.Address == nil {
			continue
		}
		for _, r := range o.Registers {
			in.Pointers = append(in.Pointers, mallocjudge.Pointer{Name: r.Name, Addr: r.Value})
		}
	}
}

// libraryFrames counts the innermost frames that are of the module with the failing instruction, or of a
// given one if such a frame is among them: 0 if it is not, and if all frames are.
func (a *analysis) libraryFrames(module *image.Module) int {
	frames := failure.Frames(a.judged())
	if len(frames) == 0 {
		return 0
	}
	first := a.process.ModuleAt(frames[0].PC())
	seen := module == nil
	caller := slices.IndexFunc(frames, func(f unwind.Frame) bool {
		m := a.process.ModuleAt(f.PC())
		seen = seen || m == module
		return m != first && m != module
	})
	if !seen || module != nil && module == a.process.Exe || caller < 0 {
		return 0
	}
	return caller
}

// freedPointer adds the pointer that was passed to the call of free or realloc that ended the process, if the code before the
// call tells it, and what the frames of that call have in registers and memory. caller counts these frames.
func (a *analysis) freedPointer(in *mallocjudge.Input, caller int) {
	scan := staticscan.Input{Process: a.process, Thread: a.thread, Signal: a.result.Failure.Signal, Frames: failure.Frames(a.judged())}
	if caller <= 0 {
		return
	}
	if v, ok := a.passedToFree(scan, caller); ok {
		in.Freed = &v
	}
	if at, ok := failure.RefusedPointer(a.result.Failure.Message); ok {
		in.Freed = &at
	}
	in.Saved, in.Words = savedIn(scan.Frames[:caller], &scan.Frames[caller]), a.wordsOf(scan.Frames[:caller])
}

// passedToFree is the first argument of the function that releases memory and that the frame with an index called, or
// jumped to: from the code before the call, or from what the function and those that it called have kept of it.
func (a *analysis) passedToFree(scan staticscan.Input, caller int) (evidence.Addr, bool) {
	if to, ok := staticscan.Called(scan, caller); ok && a.frees(to) {
		if v, ok := staticscan.CallArgument(scan, caller, 0); ok {
			return evidence.Addr(v), true
		}
	}
	outermost := scan.Frames[caller-1].LookupPC()
	if a.frees(outermost) {
		v, ok := staticscan.EnteredWith(scan, caller-1, 0)
		return evidence.Addr(v), ok
	}
	// The C library's free may jump on to a function without a name.
	m := a.process.ModuleAt(outermost)
	if m == nil || m.Object == nil {
		return 0, false
	}
	var passed []evidence.Addr
	for _, name := range freeFunctions {
		if s, ok := m.Object.SymbolNamed(name); ok {
			if v, ok := staticscan.JumpedOnWith(scan, caller-1, 0, m.Addr(s.Value)); ok {
				passed = append(passed, evidence.Addr(v))
			}
		}
	}
	if passed = slices.Compact(passed); len(passed) != 1 {
		return 0, false
	}
	return passed[0], true
}

// frees reports whether a place is in a function that releases the memory of its first argument.
func (a *analysis) frees(pc evidence.Addr) bool {
	s, ok := a.process.SymbolAt(pc)
	return ok && slices.Contains(freeFunctions, s.Name)
}

// keptRegisters are those that a call keeps (psABI, figure 3.4).
var keptRegisters = []image.Register{image.RBX, image.RBP, image.R12, image.R13, image.R14, image.R15}

// savedIn are the values that frames have put in the registers that calls keep: those that their caller does not have there.
func savedIn(frames []unwind.Frame, caller *unwind.Frame) (list []evidence.Addr) {
	for i := range frames {
		for _, n := range keptRegisters {
			v, ok := frames[i].Registers.Get(n)
			before, known := caller.Registers.Get(n)
			if ok && frames[i].Trust == evidence.TrustCFI && !(known && v == before) {
				list = append(list, evidence.Addr(v))
			}
		}
	}
	return list
}

// wordsOf are the words in the memory of frames.
func (a *analysis) wordsOf(frames []unwind.Frame) (list []evidence.Addr) {
	const most = 4096
	start, end := frames[0].Registers.SP(), frames[len(frames)-1].CFA
	for at := start; at < end && len(list) < most; at += 8 {
		if v, err := image.Uint64(a.process, at); err == nil {
			list = append(list, evidence.Addr(v))
		}
	}
	return list
}
