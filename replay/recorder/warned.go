package recorder

// warned is what the user was told of a run, each once.
type warned struct {
	link *link
	// traced: the program traces one of its own processes. untraced: it could not.
	traced, untraced bool
	// unrecorded: a child process runs without a recording.
	unrecorded bool
	// filter: a filter for system calls is not enforced. shared: a process shares memory with
	// others.
	filter, shared bool
}

// warnOnce warns the user, unless told says that it did.
func (w *warned) warnOnce(told *bool, format string, args ...any) {
	if !*told {
		*told = true
		w.link.warn(format, args...)
	}
}
