package driver

import (
	"slices"

	"diagnose/canary/mallocjudge"
	"diagnose/diagnosis/failure"
	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/image/x86"
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
// jumped to: from the code before the call, and from what the function and those that it called have kept of it. ok is false if these
// differ.
func (a *analysis) passedToFree(scan staticscan.Input, caller int) (at evidence.Addr, ok bool) {
	var passed []evidence.Addr
	to, called := staticscan.Called(scan, caller)
	if called && a.frees(to) {
		if v, ok := staticscan.CallArgument(scan, caller, 0); ok {
			passed = append(passed, evidence.Addr(v))
		}
	}
	outermost := scan.Frames[caller-1].LookupPC()
	if a.frees(outermost) {
		if v, ok := staticscan.EnteredWith(scan, caller-1, 0); ok {
			passed = append(passed, evidence.Addr(v))
		}
	} else if len(passed) == 0 && !(called && a.inLibrary(to)) {
		passed = a.jumpedOnWith(scan, caller-1, outermost)
	}
	if passed = slices.Compact(passed); len(passed) != 1 {
		return 0, false
	}
	return passed[0], true
}

// inLibrary reports whether a place is in the allocator's library, and not in the program.
func (a *analysis) inLibrary(at evidence.Addr) bool {
	m := a.process.ModuleAt(at)
	return m != nil && m != a.process.Exe
}

// jumpedOnWith are the first arguments that the C library's functions which release memory may have had if they jumped on to the function of
// a frame, which has no name.
func (a *analysis) jumpedOnWith(scan staticscan.Input, frame int, pc evidence.Addr) (passed []evidence.Addr) {
	m := a.process.ModuleAt(pc)
	if m == nil || m.Object == nil {
		return nil
	}
	for _, name := range freeFunctions {
		if s, ok := m.Object.SymbolNamed(name); ok {
			if v, ok := staticscan.JumpedOnWith(scan, frame, 0, m.Addr(s.Value)); ok {
				passed = append(passed, evidence.Addr(v))
			}
		}
	}
	return passed
}

// frees reports whether a place is in a function that releases the memory of its first argument.
func (a *analysis) frees(pc evidence.Addr) bool {
	s, ok := a.process.SymbolAt(pc)
	return ok && slices.Contains(freeFunctions, s.Name)
}

// savedIn are the values that frames have put in the registers that calls keep: those that their caller does not have there.
func savedIn(frames []unwind.Frame, caller *unwind.Frame) (list []evidence.Addr) {
	for i := range frames {
		for _, kept := range x86.KeptRegisters {
			n := image.Register(kept)
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
