package evidence

import "errors"

// FailureKind names what went wrong, as far as the stopped process can tell.
type FailureKind string

// The kinds of failure.
const (
	NullPointer      FailureKind = "null-pointer"
	NearNullPointer  FailureKind = "near-null-pointer"
	NonCanonical     FailureKind = "non-canonical-pointer"
	WildPointer      FailureKind = "wild-pointer"
	UnmappedAddress  FailureKind = "unmapped-address"
	WriteToReadOnly  FailureKind = "write-to-read-only"
	ProtectedPage    FailureKind = "protected-page"
	ExecuteOfData    FailureKind = "execute-of-data"
	StackOverflow    FailureKind = "stack-overflow"
	BusError         FailureKind = "bus-error"
	DivisionByZero   FailureKind = "division-by-zero"
	DivisionOverflow FailureKind = "division-overflow"
	ArithmeticError  FailureKind = "arithmetic-exception"
	IllegalInsn      FailureKind = "illegal-instruction"
	TrapInsn         FailureKind = "trap"
	AssertionFailure FailureKind = "assertion-failure"
	Abort            FailureKind = "abort"
	CxxTerminate     FailureKind = "cxx-terminate"
	RustPanic        FailureKind = "rust-panic"
	GoPanic          FailureKind = "go-panic"
	HeapCorruption   FailureKind = "heap-corruption"
	HeapOverflow     FailureKind = "heap-overflow"
	HeapUnderflow    FailureKind = "heap-underflow"
	UseAfterFree     FailureKind = "use-after-free"
	DoubleFree       FailureKind = "double-free"
	InvalidFree      FailureKind = "invalid-free"
	MismatchedFree   FailureKind = "mismatched-free"
	FortifyFailure   FailureKind = "fortify-failure"
	StackSmashing    FailureKind = "stack-smashing"
	Deadlock         FailureKind = "deadlock"
	BadSystemCall    FailureKind = "bad-system-call"
	KilledBySignal   FailureKind = "killed-by-signal"
	ExitStatus       FailureKind = "exit-status"
	NoFailure        FailureKind = "no-failure"
	// DeclaredFailure is of a run that ended well, and of which a rule or the user says
	// that it failed.
	DeclaredFailure FailureKind = "declared-failure"
	UnknownFailure  FailureKind = "unknown"
)

// Signal is the signal that ended the process, as the kernel recorded it.
type Signal struct {
	// Number and Name are the signal's own (signal(7)).
	Number int    `json:"number"`
	Name   string `json:"name"`
	// Code is siginfo's si_code and CodeName its symbol ("SEGV_MAPERR").
	Code     int    `json:"code"`
	CodeName string `json:"code_name,omitempty"`
	// SenderPID and SenderUID are set for signals sent by a process.
	SenderPID int `json:"sender_pid,omitempty"`
	SenderUID int `json:"sender_uid,omitempty"`
	// Addr is si_addr of a fault; meaningless unless HasAddr.
	Addr    Addr `json:"addr,omitempty"`
	HasAddr bool `json:"has_addr,omitempty"`
}

// Fault is the memory access that the processor refused.
type Fault struct {
	Addr   Addr       `json:"addr"`
	Access AccessKind `json:"access"`
	// Size is the access's width in bytes; 0 when it is not known.
	Size  int   `json:"size,omitempty"`
	Place Place `json:"place"`
	// Proof is FromCore when the kernel recorded the address, Inferred when it
	// was computed from the instruction's operands.
	Proof Proof `json:"proof"`
}

// Operand is one operand of the failing instruction and what it held.
type Operand struct {
	// Text is the operand as disassembled: "[rax+0x8]", "ecx", "$0x10".
	Text string `json:"text"`
	// Access is what the instruction does with it; empty for an immediate.
	Access AccessKind `json:"access,omitempty"`
	// Address is the effective address of a memory operand.
	Address *Addr `json:"address,omitempty"`
	// Value is what the operand held; Unavailable memory says why. Registers
	// lists the registers that make up the operand.
	Value     Value      `json:"value"`
	Registers []Register `json:"registers,omitempty"`
	// Symbol names the memory operand in the program's terms
	// ("session->user"), where DWARF allows it.
	Symbol string `json:"symbol,omitempty"`
}

// Register is a register and its value.
type Register struct {
	// Name is the 64-bit register's, in lower case.
	Name  string `json:"name"`
	Value Addr   `json:"value"`
}

// Instruction is a disassembled instruction with the values it worked on.
type Instruction struct {
	PC    Addr   `json:"pc"`
	Bytes string `json:"bytes"` // hexadecimal
	// Text is Intel syntax.
	Text     string    `json:"text"`
	Operands []Operand `json:"operands,omitempty"`
}

// SourceLine is one line of the program's source.
type SourceLine struct {
	// Number counts from 1; Text is the line without its end; Failed marks the
	// line that failed.
	Number int    `json:"number"`
	Text   string `json:"text"`
	Failed bool   `json:"failed,omitempty"`
}

// Source is the text around the failing line, and where it was read.
type Source struct {
	// File is where Lines were read. Stale says that it is newer than the
	// object it was compiled into.
	File  string       `json:"file"`
	Lines []SourceLine `json:"lines"`
	Stale bool         `json:"stale,omitempty"`
}

// OriginKind says what a step back along a value's way found.
type OriginKind string

// The kinds of origin step.
const (
	OriginRegister OriginKind = "register"    // the value was in a register
	OriginCell     OriginKind = "memory-cell" // it was loaded from a memory cell
	OriginConstant OriginKind = "constant"    // the instruction set it
	OriginArgument OriginKind = "argument"    // it came in from the caller
	OriginResult   OriginKind = "call-result" // a call returned it
	OriginUnknown  OriginKind = "unknown"     // the way is lost; Text says why
)

// OriginStep is one step from the failing operand back to where its value
// came from; the first step is the nearest to the failure.
type OriginStep struct {
	Kind OriginKind `json:"kind"`
	// Text is the step as a sentence without a final stop.
	Text string `json:"text"`
	// Register, Symbol (in the program's terms), Type, Cell and Value as they
	// apply.
	Register string `json:"register,omitempty"`
	Symbol   string `json:"symbol,omitempty"`
	Type     string `json:"type,omitempty"`
	Cell     *Addr  `json:"cell,omitempty"`
	Value    *Addr  `json:"value,omitempty"`
	// Site is the instruction that moved the value; Instruction is its text.
	Site        *Site  `json:"site,omitempty"`
	Instruction string `json:"instruction,omitempty"`
	Proof       Proof  `json:"proof"`
}

// Exception is the C++ exception, Rust panic or Go panic that was not caught.
type Exception struct {
	// Type is the exception's or the panic value's, demangled.
	Type string `json:"type,omitempty"`
	// What is the text of what(), or the panic's message.
	What string `json:"what,omitempty"`
	// WhatUnavailable says why What is empty, if it is.
	WhatUnavailable string `json:"what_unavailable,omitempty"`
	Object          *Addr  `json:"object,omitempty"`
	Proof           Proof  `json:"proof"`
}

// Recursion is the cycle of functions that used up the stack.
type Recursion struct {
	// Cycle is one turn, in call order.
	Cycle []Site `json:"cycle"`
	// Turns counts how often the cycle was found on the stack and Depth the
	// frames walked; AtLeast says that the walk stopped at a limit.
	Turns   int  `json:"turns"`
	Depth   int  `json:"depth"`
	AtLeast bool `json:"at_least,omitempty"`
	// StackBytes is the size of the stack in use at the failure.
	StackBytes uint64 `json:"stack_bytes,omitempty"`
}

// Arrival says how a thread reached an address where it cannot execute.
type Arrival string

// The ways there.
const (
	ArrivedByCall   Arrival = "call"
	ArrivedByReturn Arrival = "return"
	ArrivedByJump   Arrival = "jump"
)

// Termination says why std::terminate was called.
type Termination string

// The reasons. An exception that was not caught has none of them.
const (
	PureVirtual       Termination = "pure-virtual-call"
	DeletedVirtual    Termination = "deleted-virtual-call"
	ThreadDestroyed   Termination = "joinable-thread-destroyed"
	ThreadAssigned    Termination = "joinable-thread-assigned"
	NoException       Termination = "no-exception"
	ThrownInUnwinding Termination = "thrown-in-unwinding" // while another exception was in flight
	LeftNoexcept      Termination = "left-noexcept"       // a function that lets no exception out
)

// Failure is what failed.
type Failure struct {
	Kind FailureKind `json:"kind"`
	// Sentence says it in words that a person understands.
	Sentence string `json:"sentence"`
	// Accessed is what the instruction accessed and Pointer the pointer that
	// led there, as expressions of the program ("session->user->name",
	// "session->user"); empty when they could not be named.
	Accessed string `json:"accessed,omitempty"`
	Pointer  string `json:"pointer,omitempty"`
	// PointerResult is the function whose result Pointer is; empty: it is no call's.
	PointerResult string     `json:"pointer_result_of,omitempty"`
	Thread        *ThreadRef `json:"thread,omitempty"`
	Signal        *Signal    `json:"signal,omitempty"`
	Fault         *Fault     `json:"fault,omitempty"`
	// Site is the innermost place in the program's own code, which for an
	// abort is far outward of the instruction that raised the signal.
	Site *Site `json:"site,omitempty"`
	// SiteProof is the level of Site's line, if that does not follow from the stack: the last
	// line of main that ran before main returned. Empty: the stack tells it.
	SiteProof   Proof        `json:"site_proof,omitempty"`
	Instruction *Instruction `json:"instruction,omitempty"`
	Source      *Source      `json:"source,omitempty"`
	Origin      []OriginStep `json:"origin,omitempty"`
	// Check is the comparison that led to the call by which the program ended itself; nil: it did not, or which one
	// it was is not certain.
	Check *Check `json:"check,omitempty"`
	// Message is what the program or its libraries said when they gave up. MessageInSentence:
	// Sentence has all of it.
	Message           string `json:"message,omitempty"`
	MessageInSentence bool   `json:"message_in_sentence,omitempty"`
	// Condition is that of an AssertionFailure, as the source has it.
	Condition string `json:"condition,omitempty"`
	// Arrival is of a Fault whose access is Execute.
	Arrival Arrival `json:"arrival,omitempty"`
	// FrameBytes is the size of the frame of a StackOverflow that is larger than the rest of
	// its stack.
	FrameBytes uint64 `json:"frame_bytes,omitempty"`
	// Termination is of a process that std::terminate ended.
	Termination Termination `json:"termination,omitempty"`
	// Status is that of an ExitStatus, which only a recording tells.
	Status int `json:"status,omitempty"`
	// Declared is the rule of a DeclaredFailure; nil for others.
	Declared  *Declaration `json:"declared,omitempty"`
	Exception *Exception   `json:"exception,omitempty"`
	Recursion *Recursion   `json:"recursion,omitempty"`
	// Division is of a DivisionByZero or a DivisionOverflow; nil if its operands cannot be read.
	Division *Division `json:"division,omitempty"`
	// LikelyNull are the pointers of which one is null, each as likely as the others, where no register tells which.
	LikelyNull []LikelyNull `json:"likely_null,omitempty"`
	// Class is an object of another class than the code expects; nil: none is known.
	Class *ObjectClass `json:"object_class,omitempty"`
	// Format is that of the failing call of the printf family, if it is no constant.
	Format *Format `json:"format,omitempty"`
	// Proof is the level of Kind.
	Proof Proof `json:"proof"`
}

// check reports what makes the facts of the failure unusable.
func (f *Failure) check() error {
	for i := range f.LikelyNull {
		if err := f.LikelyNull[i].check(); err != nil {
			return err
		}
	}
	return errors.Join(f.Division.check(), f.Class.check(), f.Format.check())
}
