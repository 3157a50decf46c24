package failure

import (
	"path"
	"strconv"
	"strings"

	"diagnose/evidence"
)

// abort judges SIGABRT by the libraries' messages and by the caller of abort. The messages come
// first: they survive stripped libraries and broken stacks.
func (j *judge) abort(f *evidence.Failure) {
	names := j.stack.functions()
	message, ok := j.abortMessage()
	if ok {
		f.Message = message
	}
	switch kind := kindOfMessage(message); {
	case kind != "":
		f.Kind = kind
	case has(names, "__stack_chk_fail"):
		f.Kind = evidence.StackSmashing
	case has(names, "__chk_fail", "__fortify_fail"):
		f.Kind = evidence.FortifyFailure
	case has(names, "malloc_printerr"):
		f.Kind = evidence.HeapCorruption
	case has(names, "__assert_fail", "__assert", "__assert_perror_fail", "__assert_fail_base"):
		f.Kind = evidence.AssertionFailure
	case has(names, glibcxxAssert, "std::__replacement_assert"):
		f.Kind = evidence.AssertionFailure
	case rustPanicking(names):
		j.rustPanic(f)
	case cxxTerminating(names) || j.stack.abortedByCxxRuntime():
		j.terminate(f, names)
	case f.Signal.Code == 0 && f.Signal.SenderPID != j.process.pid && !has(names, "abort", "raise", "pthread_kill"):
		j.killed(f)
	default:
		f.Kind = evidence.Abort
	}
	switch f.Kind {
	case evidence.AssertionFailure:
		f.Condition = condition(message)
	case evidence.FortifyFailure:
		f.Message = fortifyText(f.Message, names)
	}
}

// glibcxxAssert is the function that a failed assertion in the C++ library's headers calls
// (bits/c++config.h).
const glibcxxAssert = "std::__glibcxx_assert_fail"

// abortedByCxxRuntime reports whether the C++ runtime called abort: the
// default handler of std::terminate does, and its name is known only with the
// runtime's symbol table.
func (k *callStack) abortedByCxxRuntime() bool {
	sites := k.sites()
	for i := range sites {
		if plainName(sites[i].Function) == "abort" && i+1 < len(sites) {
			base := path.Base(sites[i+1].Module)
			return strings.HasPrefix(base, "libstdc++.") || strings.HasPrefix(base, "libc++abi.")
		}
	}
	return false
}

// functions are the names on the stack, innermost first.
func (k *callStack) functions() []string {
	sites := k.sites()
	names := make([]string, len(sites))
	for i := range sites {
		names[i] = plainName(sites[i].Function)
	}
	return names
}

func has(names []string, wanted ...string) bool {
	for _, name := range names {
		for _, w := range wanted {
			if name == w {
				return true
			}
		}
	}
	return false
}

func hasPrefix(names []string, prefixes ...string) bool {
	for _, name := range names {
		for _, p := range prefixes {
			if strings.HasPrefix(name, p) {
				return true
			}
		}
	}
	return false
}

// heapMessages are the messages with which glibc's malloc ends a process (malloc/malloc.c, the
// arguments of malloc_printerr and malloc_assert).
var heapMessages = []string{
	"double free or corruption", "free(): ", "malloc(): ", "realloc(): ", "munmap_chunk(): ", "mremap_chunk(): ",
	"corrupted size vs. prev_size", "corrupted double-linked list", "malloc_consolidate(): ", "memalign",
	"break adjusted to free malloc space", "invalid pointer", "sysmalloc: ", "tcache_thread_shutdown(): ",
	"malloc: ", "posix_memalign",
}

// oldHeapMessage is what malloc's messages begin with before glibc 2.26; the program, the message itself and a pointer follow.
const oldHeapMessage = "*** Error in `"

// RefusedByFree reports whether glibc's message is of a call of free or realloc that refused its pointer, or what it
// found there.
func RefusedByFree(message string) bool {
	if strings.HasPrefix(message, oldHeapMessage) {
		_, message, _ = strings.Cut(message, "': ")
	}
	for _, prefix := range []string{"free(): ", "double free or corruption", "munmap_chunk(): ", "realloc(): "} {
		if strings.HasPrefix(message, prefix) {
			return true
		}
	}
	return false
}

// RefusedPointer is the pointer that malloc's messages name before glibc 2.26.
func RefusedPointer(message string) (evidence.Addr, bool) {
	text, ok := strings.CutSuffix(message, " ***")
	i := strings.LastIndex(text, ": 0x")
	if !ok || i < 0 || !strings.HasPrefix(message, oldHeapMessage) {
		return 0, false
	}
	v, err := strconv.ParseUint(text[i+len(": 0x"):], 16, 64)
	return evidence.Addr(v), err == nil
}

// kindOfMessage returns the failure that glibc's message reports.
func kindOfMessage(message string) evidence.FailureKind {
	switch {
	case message == "":
		return ""
	case strings.Contains(message, "*** stack smashing detected ***"):
		return evidence.StackSmashing
	case strings.HasPrefix(message, oldHeapMessage):
		return evidence.HeapCorruption
	case strings.HasPrefix(message, "*** "):
		return evidence.FortifyFailure
	case strings.Contains(message, "Assertion `") && strings.Contains(message, "malloc.c:"),
		strings.HasPrefix(message, "Fatal glibc error: malloc"):
		return evidence.HeapCorruption
	case strings.Contains(message, "Assertion `"), strings.Contains(message, "Unexpected error: "),
		strings.HasPrefix(message, "Fatal glibc error: ") && strings.Contains(message, "assertion"):
		return evidence.AssertionFailure
	}
	for _, prefix := range heapMessages {
		if strings.HasPrefix(message, prefix) {
			return evidence.HeapCorruption
		}
	}
	return ""
}

// condition extracts the condition from the message of glibc's assert or of an assertion of the C++
// library's headers. It is empty for other texts.
func condition(message string) string {
	_, rest, ok := strings.Cut(message, "Assertion `")
	if !ok {
		if _, rest, ok = strings.Cut(message, "Assertion '"); !ok {
			return ""
		}
	}
	if i := strings.LastIndex(rest, "' failed"); i >= 0 {
		return rest[:i]
	}
	return rest
}

// fortifyText adds the name of the checked function that refused.
func fortifyText(message string, names []string) string {
	for _, name := range names {
		if name != "__chk_fail" && strings.HasPrefix(name, "__") && strings.HasSuffix(name, "_chk") {
			return strings.TrimSpace(message + " in " + name)
		}
	}
	return message
}

// maxMessage bounds the text of a message read from the process.
const maxMessage = 16 << 10

// abortMessage reads what glibc printed before it aborted: __abort_msg points
// at { unsigned size; char msg[] } in a mapping of its own (glibc,
// sysdeps/posix/libc_fatal.c, struct abort_msg_s).
func (j *judge) abortMessage() (string, bool) {
	sym, ok := j.process.SymbolNamed("__abort_msg")
	if !ok {
		return "", false
	}
	at, err := readPointer(j.process, sym.Addr)
	if err != nil {
		j.limits.limit("libc", "its last message cannot be read: "+err.Error())
		return "", false
	}
	if at == 0 {
		return "", false
	}
	text, err := cString(j.process, at+4, maxMessage)
	if err != nil {
		j.limits.limit("libc", "its last message cannot be read: "+err.Error())
		return "", false
	}
	return strings.TrimRight(text, "\n"), text != ""
}
