package record

import "diagnose/evidence"

// CoreThread is a thread of the process that a core is written of.
type CoreThread struct {
	TID int
	// Signal is the signal that the thread is about to be given, 0 for none;
	// Info is its siginfo_t.
	Signal int
	Info   *[128]byte
}

// CoreSource is what writes a core needs of the tracer.
type CoreSource interface {
	// Regset is PTRACE_GETREGSET of a stopped thread for a note type of
	// linux/elf.h: NT_PRSTATUS, NT_PRFPREG, NT_X86_XSTATE.
	Regset(tid int, note uint32) ([]byte, error)
}

// CoreOptions say what a core is written of.
type CoreOptions struct {
	PID int
	// Threads are all threads, all of them in a ptrace stop; the one that failed
	// is first.
	Threads []CoreThread
	Source  CoreSource
	// Skip are address ranges whose contents are left out, such as the
	// engine's log.
	Skip []Range
}

// Range is from Start to before End.
type Range struct{ Start, End evidence.Addr }

// CoreResult says what became of a core.
type CoreResult struct {
	// Size is the file's, Bytes what it holds of memory; the rest is holes.
	Size, Bytes int64
	// Missing are the parts of the memory that could not be read and are not in
	// the core.
	Missing []MissingMemory
}

// MissingMemory is memory that a core should have and has not.
type MissingMemory struct {
	Range
	Err error
}
