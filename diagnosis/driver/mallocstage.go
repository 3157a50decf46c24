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
	if f.Kind == evidence.HeapCorruption && failure.RefusedByFree(f.Message) {
		a.freedPointer(&in)
	}
	a.result.Findings = append(said(mallocjudge.Findings(in)), a.result.Findings...)
}

// freeFunctions are the names of the functions that release the memory of their first argument.
var freeFunctions = []string{"free", "cfree", "__libc_free", "__GI___libc_free", "realloc", "__libc_realloc", "__GI___libc_realloc",
	"operator delete(void*)", "operator delete(void*, unsigned long)", "operator delete[](void*)", "operator delete[](void*, unsigned long)"}

// freedPointer adds the pointer that was passed to the call of free or realloc that ended the process, if the code before the
// call tells it, and what the frames of that call have in registers and memory.
func (a *analysis) freedPointer(in *mallocjudge.Input) {
	scan := staticscan.Input{Process: a.process, Thread: a.thread, Signal: a.result.Failure.Signal, Frames: failure.Frames(a.judged())}
	if len(scan.Frames) == 0 {
		return
	}
	library := a.process.ModuleAt(scan.Frames[0].PC())
	caller := slices.IndexFunc(scan.Frames, func(f unwind.Frame) bool { return a.process.ModuleAt(f.PC()) != library })
	if caller <= 0 {
		return
	}
	if to, ok := staticscan.Called(scan, caller); ok {
		if s, ok := a.process.SymbolAt(to); ok && slices.Contains(freeFunctions, s.Name) {
			if v, ok := staticscan.CallArgument(scan, caller, 0); ok {
				at := evidence.Addr(v)
				in.Freed = &at
			}
		}
	}
	if at, ok := failure.RefusedPointer(a.result.Failure.Message); ok {
		in.Freed = &at
	}
	in.Saved, in.Words = savedIn(scan.Frames[:caller], &scan.Frames[caller]), a.wordsOf(scan.Frames[:caller])
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
