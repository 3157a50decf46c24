package failure

import (
	"fmt"
	"slices"
	"strings"

	"diagnose/evidence"
)

// Names are expressions of the program for the parts of a failure.
type Names struct {
	// Accessed is the memory that the instruction was about to access ("session->user->name"),
	// Pointer the variable that held the bad address ("session->user"). Either may be empty.
	Accessed, Pointer string
	// Value is the value of Pointer; nil if it is not known.
	Value *evidence.Addr
	// Index is Pointer's value as a number, if Pointer is an index and no
	// pointer.
	Index string
	// Through is the library function that failed because of its arguments ("memcpy"), empty if the
	// program's own code failed.
	Through string
	// Freed says that Pointer is in memory that was freed.
	Freed bool
	// Container says what element of a container of the C++ library was used that is not there; empty: it is not known.
	Container string
	// Heap describes the failure by the agent's heap; nil if that says nothing.
	Heap *HeapWords
	// Threads is how many threads the process has; with more than one the
	// sentence names the failing one.
	Threads int
}

// Describe sets the failure's sentence, which has no final stop:
//
//	null pointer read of session->user->name in handle_login, thread 3 "worker": session->user is null
func Describe(f *evidence.Failure, names Names) {
	f.MessageInSentence = false
	head, tail := phrase(f, names)
	tail = unexpected(f, names, tail)
	text := head
	if f.Site != nil && f.Kind != evidence.NoFailure {
		text += " in " + siteName(f.Site)
	}
	if f.Thread != nil && (names.Threads > 1 || f.Thread.Number > 1) && f.Kind != evidence.Deadlock {
		text += ", " + f.Thread.Label()
	}
	if tail != "" {
		text += ": " + tail
	}
	if names.Freed && names.Pointer != "" {
		text += "; " + names.Pointer + " is in freed memory"
	}
	if names.Container != "" {
		text += "; " + names.Container
	}
	f.Sentence = evidence.Say(text)
}

// message is the failure's message for its sentence, which has it then.
func message(f *evidence.Failure) string {
	f.MessageInSentence = f.Message != ""
	return f.Message
}

// phrase returns what happened and, after the place, why.
func phrase(f *evidence.Failure, names Names) (head, tail string) {
	if names.Heap != nil {
		return heapPhrase(f, names)
	}
	switch f.Kind {
	case evidence.NullPointer, evidence.NearNullPointer, evidence.NonCanonical, evidence.WildPointer,
		evidence.UnmappedAddress, evidence.WriteToReadOnly, evidence.ProtectedPage, evidence.ExecuteOfData:
		return memoryPhrase(f, names)
	case evidence.StackOverflow:
		return "stack overflow", overflowText(f)
	case evidence.BusError:
		return "bus error on " + accessNoun(f.Fault) + of(names.Accessed), message(f)
	case evidence.DivisionByZero:
		return "division by zero", isValue(divisorText(f, names), "0")
	case evidence.DivisionOverflow:
		return "division overflow", overflowingText(f.Division)
	case evidence.ArithmeticError:
		return "arithmetic exception", arithmeticText(f.Signal)
	case evidence.IllegalInsn:
		return "illegal instruction", message(f)
	case evidence.TrapInsn:
		return "the program trapped itself", trapText(f)
	case evidence.BadSystemCall:
		return "forbidden system call", message(f)
	case evidence.Deadlock:
		return "deadlock", message(f)
	case evidence.ExitStatus:
		return exitPhrase(f)
	case evidence.DeclaredFailure:
		return "the run failed", message(f)
	case evidence.NoFailure:
		return "the process had not failed when it was stopped", ""
	}
	return endPhrase(f)
}

func of(expr string) string {
	if expr == "" {
		return ""
	}
	return " of " + expr
}

func isValue(expr, value string) string {
	if expr == "" {
		return ""
	}
	return expr + " is " + value
}

func joinText(parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, ", ")
}

func overflowText(f *evidence.Failure) string {
	if f.FrameBytes > 0 {
		return fmt.Sprintf("its frame alone takes %d KiB", f.FrameBytes>>10)
	}
	return recursionText(f.Recursion)
}

func recursionText(r *evidence.Recursion) string {
	if r == nil || len(r.Cycle) == 0 {
		return ""
	}
	var names []string
	for i := range r.Cycle {
		if name := siteName(&r.Cycle[i]); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	const shown = 4
	if len(names) > shown {
		names = append(names[:shown], fmt.Sprintf("%d more", len(names)-shown))
	}
	least := ""
	if r.AtLeast {
		least = "at least "
	}
	if len(names) == 1 {
		return fmt.Sprintf("%s calls itself, %s%d times", names[0], least, r.Turns)
	}
	return fmt.Sprintf("%s -> %s call each other, %s%d times", strings.Join(names, " -> "), names[0], least, r.Turns)
}

func arithmeticText(sig *evidence.Signal) string {
	texts := map[int]string{2: "integer overflow", 3: "floating-point division by zero", 4: "floating-point overflow",
		5: "floating-point underflow", 6: "inexact floating-point result", 7: "invalid floating-point operation",
		8: "subscript out of range"}
	if sig == nil {
		return ""
	}
	return texts[sig.Code]
}

func trapText(f *evidence.Failure) string {
	if f.Instruction != nil {
		return f.Instruction.Text
	}
	return message(f)
}
