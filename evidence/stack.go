package evidence

import "fmt"

// Site is a place in the program's code.
type Site struct {
	// PC is the address in this process that the site was looked up for. For
	// a caller it is the return address, not the address of the call; for a tail call the address
	// after the jump.
	PC Addr `json:"pc"`
	// Module is the path of the object as the process had it mapped, empty
	// for code outside every object; BuildID is in lower-case hexadecimal.
	Module  string `json:"module,omitempty"`
	BuildID string `json:"build_id,omitempty"`
	// ModuleOffset is PC minus the object's load bias: the address that
	// addr2line and objdump take.
	ModuleOffset Addr `json:"module_offset,omitempty"`
	// Function is the demangled name (or, on request, the linkage name),
	// LinkageName the mangled one where that differs, and FunctionOffset the distance of PC from the function's entry. Inlined
	// functions have no entry and leave FunctionOffset 0.
	Function       string `json:"function,omitempty"`
	LinkageName    string `json:"linkage_name,omitempty"`
	FunctionOffset uint64 `json:"function_offset,omitempty"`
	// File is the source path that the compiler recorded. Line and Column
	// count from 1; 0 is unknown.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Archive: the program is statically linked, and this code of it has no line while its main function has: it is a library's.
	Archive bool `json:"archive,omitempty"`
	// Implicit: the compiler made this code, as that of a destructor that the source does not have; Line is that of the class.
	Implicit bool `json:"implicit,omitempty"`
}

// FrameKind says what made a frame.
type FrameKind string

const (
	// Physical is a frame with an activation record of its own.
	Physical FrameKind = "physical"
	// Inlined is a call that the compiler dissolved into the next physical
	// frame outward.
	Inlined FrameKind = "inlined"
	// SignalFrame is the trampoline the kernel returns through after a signal
	// handler; the frame outward of it was interrupted, not calling.
	SignalFrame FrameKind = "signal"
	// TailCall is a function that called the next inner one as its last action, by a
	// jump. It left no activation record: its name and place are computed from the call
	// sites, and it has no CFA, arguments or locals.
	TailCall FrameKind = "tail-call"
)

// Gap says next to which side of a TailCall frame others may be missing, because more than one
// sequence of tail calls leads there.
type Gap string

const (
	// GapInner: between the frame and the next inner one.
	GapInner Gap = "inner"
	// GapOuter: between the frame and the next outer one.
	GapOuter Gap = "outer"
)

// Trust says by which rule the unwinder stepped from the next inner physical
// frame to this one. Everything but TrustContext, TrustCFI and TrustCallSites is a guess.
type Trust string

const (
	// TrustContext: the registers were recorded by the kernel.
	TrustContext Trust = "context"
	// TrustCFI: call frame information (DWARF 5 section 6.4), or the frame sizes
	// of the Go function table (runtime/traceback.go).
	TrustCFI Trust = "cfi"
	// TrustCallSites: the tail calls that lead from the function which the caller called to
	// the one that runs, of which this one is in every possible sequence (DWARF 5 section
	// 3.4.1).
	TrustCallSites Trust = "call-sites"
	// TrustPrologue: the instructions of the function were decoded, or the
	// return address was at the stack pointer after a jump to nowhere.
	TrustPrologue Trust = "prologue"
	// TrustFramePointer: the chain of saved frame pointers.
	TrustFramePointer Trust = "frame-pointer"
	// TrustScan: a word on the stack that follows a call instruction.
	TrustScan Trust = "scan"
)

// Guess reports whether the step was made by a heuristic.
func (t Trust) Guess() bool {
	return t != TrustContext && t != TrustCFI && t != TrustCallSites
}

// Frame is one line of a stack.
type Frame struct {
	// Index counts every frame, inlined ones included, from 0, the innermost.
	Index int       `json:"index"`
	Kind  FrameKind `json:"kind"`
	Trust Trust     `json:"trust"`
	Site  Site      `json:"site"`
	// CFA is the canonical frame address of the physical frame.
	CFA Addr `json:"cfa,omitempty"`
	// Gap and InlinedInto are of TailCall frames only. InlinedInto are the functions that Site's was
	// inlined into, innermost first.
	Gap         Gap    `json:"gap,omitempty"`
	InlinedInto []Site `json:"inlined_into,omitempty"`
	// Args and Locals are filled for the top frames only.
	Args   []Variable `json:"args,omitempty"`
	Locals []Variable `json:"locals,omitempty"`
}

// Stack is a thread's frames, innermost first.
type Stack struct {
	Frames []Frame `json:"frames"`
	// Stopped says why the stack ends before the thread's outermost frame;
	// empty when the end was reached.
	Stopped string `json:"stopped,omitempty"`
	// Omitted counts frames left out of Frames at OmittedAt (the index in
	// Frames of the first frame after the gap), when a recursion is too deep
	// to keep whole.
	Omitted   int `json:"omitted,omitempty"`
	OmittedAt int `json:"omitted_at,omitempty"`
}

// ThreadRef names a thread.
type ThreadRef struct {
	// Number counts the process's threads from 1 in the order in which they were
	// created. Of a recorded process threads that ended count too. TID is the
	// kernel's id.
	Number int `json:"number"`
	TID    int `json:"tid"`
	// Name is the kernel's name of the thread; a core does not hold it for
	// any but the process itself. Start is the function that the thread was
	// started with, "main" for the first.
	Name  string `json:"name,omitempty"`
	Start string `json:"start,omitempty"`
	// Recorded is the thread's number in its recording, which causes and moments are
	// told with; 0: it was not recorded, or the number is not known.
	Recorded int `json:"recorded,omitempty"`
}

// Label is what people call the thread: `thread 3 "worker"`, by its name or
// else by the function that it was started with.
func (t ThreadRef) Label() string {
	label := t.Name
	if label == "" {
		label = t.Start
	}
	if label == "" {
		return fmt.Sprintf("thread %d", t.Number)
	}
	return fmt.Sprintf("thread %d %q", t.Number, label)
}

// ThreadGroup is one stack and the threads that share it.
type ThreadGroup struct {
	Threads []ThreadRef `json:"threads"`
	// Failing marks the group of the thread that failed.
	Failing bool  `json:"failing,omitempty"`
	Stack   Stack `json:"stack"`
	// Waiting says what the threads wait for, when that is known.
	Waiting string `json:"waiting,omitempty"`
}
