package failure

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"diagnose/evidence"
)

// Names are expressions of the program for what a failure is about.
type Names struct {
	// Accessed is what the instruction was about to access
	// ("session->user->name"), Pointer what held the bad address
	// ("session->user"). Either may be empty.
	Accessed, Pointer string
	// Value is what Pointer held; nil when it is not known.
	Value *evidence.Addr
	// Index is Pointer's value as a number, if Pointer is an index and no
	// pointer.
	Index string
	// Through is the library function that failed with what it was given
	// ("memcpy"), empty when the program's own code failed.
	Through string
	// Freed says that Pointer lies in memory that was freed.
	Freed bool
	// Threads is how many threads the process has; with more than one the
	// sentence names the failing one.
	Threads int
}

// Sentence says a failure in one sentence, without a final stop:
//
//	null pointer read of session->user->name in handle_login, thread 3 "worker": session->user is null
func Sentence(f evidence.Failure, names Names) string {
	head, tail := phrase(&f, names)
	text := head
	if f.Site != nil && f.Kind != evidence.NoFailure {
		text += " in " + siteName(f.Site)
	}
	if f.Thread != nil && (names.Threads > 1 || f.Thread.Number > 1) && f.Kind != evidence.Deadlock {
		text += ", " + threadName(f.Thread)
	}
	if tail != "" {
		text += ": " + tail
	}
	if names.Freed && names.Pointer != "" {
		text += "; " + names.Pointer + " lies in freed memory"
	}
	return text
}

// siteName is how a sentence names a place: the function, or the object and
// the offset in it.
func siteName(site *evidence.Site) string {
	switch {
	case site.Function != "":
		return shortFunction(site.Function)
	case site.Module != "":
		return fmt.Sprintf("%s+%#x", path.Base(site.Module), uint64(site.ModuleOffset))
	}
	return "code at " + site.PC.String()
}

// shortFunction leaves out parameters, and the end of what is still too long
// for a sentence.
func shortFunction(name string) string {
	const longest = 80
	name = withoutResult(strings.ReplaceAll(evidence.ShortName(name), stdString, "std::string"))
	if len(name) > longest {
		name = withoutTemplateArguments(name)
	}
	if len(name) <= longest {
		return name
	}
	return name[:longest] + "..."
}

// withoutResult leaves out the type of the result, with which functions made
// from templates are demangled.
func withoutResult(name string) string {
	depth, start := 0, 0
	for i := range len(name) {
		switch name[i] {
		case '<', '(':
			depth++
		case '>', ')':
			depth--
		case ' ':
			if depth == 0 {
				start = i + 1
			}
		}
		if depth == 0 && strings.HasPrefix(name[i:], "operator") {
			break
		}
	}
	return name[start:]
}

// withoutTemplateArguments writes "std::vector<...>::at" for the names that
// templates make. An operator's own angle brackets end the work.
func withoutTemplateArguments(name string) string {
	name, operator, isOperator := strings.Cut(name, "::operator")
	var out strings.Builder
	depth := 0
	for _, c := range name {
		switch {
		case c == '<':
			if depth++; depth == 1 {
				out.WriteString("<...>")
			}
		case c == '>':
			depth--
		case depth == 0:
			out.WriteRune(c)
		}
	}
	if isOperator {
		out.WriteString("::operator" + operator)
	}
	return out.String()
}

// threadName is "thread 3 "worker"" with the kernel's name or the start
// function.
func threadName(t *evidence.ThreadRef) string {
	name := t.Name
	if name == "" {
		name = t.Start
	}
	if name == "" {
		return fmt.Sprintf("thread %d", t.Number)
	}
	return fmt.Sprintf("thread %d %q", t.Number, name)
}

// phrase gives what happened and, behind the place, why.
func phrase(f *evidence.Failure, names Names) (head, tail string) {
	switch f.Kind {
	case evidence.NullPointer, evidence.NearNullPointer, evidence.NonCanonical, evidence.WildPointer,
		evidence.UnmappedAddress, evidence.WriteToReadOnly, evidence.ProtectedPage, evidence.ExecuteOfData:
		return memoryPhrase(f, names)
	case evidence.StackOverflow:
		return "stack overflow", overflowText(f)
	case evidence.BusError:
		return "bus error on " + accessNoun(f.Fault) + of(names.Accessed), f.Message
	case evidence.DivisionByZero:
		return "division by zero", isValue(names.Pointer, "0")
	case evidence.DivisionOverflow:
		return "division overflow", "the quotient of the smallest integer and -1 does not fit"
	case evidence.ArithmeticError:
		return "arithmetic exception", arithmeticText(f.Signal)
	case evidence.IllegalInsn:
		return "illegal instruction", f.Message
	case evidence.TrapInsn:
		return "the program trapped itself", trapText(f)
	case evidence.BadSystemCall:
		return "forbidden system call", f.Message
	case evidence.Deadlock:
		return "deadlock", f.Message
	case evidence.NoFailure:
		return "the process had not failed when it was stopped", ""
	}
	return endPhrase(f)
}

// endPhrase is for processes that ended themselves, or were ended.
func endPhrase(f *evidence.Failure) (head, tail string) {
	switch f.Kind {
	case evidence.AssertionFailure:
		return "assertion failed", assertionText(f.Message)
	case evidence.CxxTerminate:
		return terminatePhrase(f)
	case evidence.RustPanic, evidence.GoPanic:
		return "panic", exceptionText(f.Exception, f.Message)
	case evidence.HeapCorruption:
		return "heap corruption found by the allocator", f.Message
	case evidence.FortifyFailure:
		return "buffer overflow stopped by a checked library function", f.Message
	case evidence.StackSmashing:
		return "stack smashing: the guard of a stack frame was overwritten", ""
	case evidence.Abort:
		return "abort", f.Message
	case evidence.KilledBySignal:
		return killedPhrase(f)
	}
	return "the process ended by " + signalText(f.Signal), f.Message
}

func memoryPhrase(f *evidence.Failure, names Names) (head, tail string) {
	if f.Fault == nil {
		return string(f.Kind), f.Message
	}
	if f.Fault.Access == evidence.Execute {
		return executePhrase(f, names)
	}
	if names.Through != "" {
		return throughPhrase(f, names)
	}
	what, addr := accessNoun(f.Fault)+of(names.Accessed), f.Fault.Addr
	switch f.Kind {
	case evidence.NullPointer:
		return "null pointer " + what, nullTail(names, addr)
	case evidence.WriteToReadOnly:
		what = "write" + of(names.Accessed)
	}
	return what + " " + badMemory(f, names), badTail(f, names)
}

// throughPhrase is for a library function that failed with a pointer of the
// program: it is the function that accesses, not the program.
func throughPhrase(f *evidence.Failure, names Names) (head, tail string) {
	what := accessNoun(f.Fault)
	call := " in " + shortFunction(names.Through) + ", called"
	if !isRegister(f, names.Pointer) && names.Pointer != "" {
		call += " with " + names.Pointer
	} else {
		names.Pointer = ""
	}
	if f.Kind == evidence.NullPointer {
		return "null pointer " + what + call, ""
	}
	return what + " " + badMemory(f, names) + call, badTail(f, names)
}

// isRegister reports whether an expression is only a register's name, for
// want of a better one.
func isRegister(f *evidence.Failure, expr string) bool {
	if f.Instruction == nil {
		return false
	}
	for _, op := range f.Instruction.Operands {
		for _, r := range op.Registers {
			if r.Name == expr {
				return true
			}
		}
	}
	return false
}

// badMemory says what is wrong with the memory, behind "read of x".
func badMemory(f *evidence.Failure, names Names) string {
	switch f.Kind {
	case evidence.NearNullPointer:
		return "near null"
	case evidence.NonCanonical:
		return "through a non-canonical pointer"
	case evidence.WildPointer:
		if names.Index == "" {
			return "through a wild pointer"
		}
	case evidence.WriteToReadOnly:
		return "to read-only memory"
	case evidence.ProtectedPage:
		return "in protected memory"
	}
	return "at an unmapped address"
}

func badTail(f *evidence.Failure, names Names) string {
	addr := f.Fault.Addr
	switch f.Kind {
	case evidence.NearNullPointer:
		return badPointer(names, addr, "is no address")
	case evidence.NonCanonical:
		return joinText(badPointer(names, addr, "is no address"), spells(f, names))
	case evidence.WildPointer:
		return joinText(badPointer(names, addr, "is not mapped"), spells(f, names))
	case evidence.WriteToReadOnly:
		return placeText(f.Fault)
	case evidence.ProtectedPage:
		return joinText(f.Message, placeText(f.Fault))
	}
	return badPointer(names, addr, "is not mapped")
}

func executePhrase(f *evidence.Failure, names Names) (head, tail string) {
	way := "jump to"
	switch f.Message {
	case arrivedByCall:
		way = "call of"
	case arrivedByReturn:
		way, names.Pointer = "return to", returnAddress
	}
	addr := f.Fault.Addr
	switch f.Kind {
	case evidence.NullPointer:
		if f.Message == arrivedByReturn {
			return "return to address 0", ""
		}
		return strings.TrimSuffix(strings.TrimSuffix(way, " of"), " to") + " through a null pointer", isValue(names.Pointer, "null")
	case evidence.ExecuteOfData:
		return way + " data that is not code", placeText(f.Fault)
	case evidence.ProtectedPage:
		return way + " protected memory", placeText(f.Fault)
	case evidence.NonCanonical:
		return way + " a place that is no address", joinText(badPointer(names, addr, "is no address"), spells(f, names))
	}
	return way + " an unmapped address", joinText(badPointer(names, addr, "is not mapped"), spells(f, names))
}

func nullTail(names Names, addr evidence.Addr) string {
	if names.Pointer != "" {
		return names.Pointer + " is null"
	}
	if addr != 0 && names.Accessed == "" {
		return fmt.Sprintf("%d bytes behind null", uint64(addr))
	}
	return ""
}

// returnAddress stands for the stack word that a return takes its target
// from; nothing was added to it.
const returnAddress = "the return address"

func badPointer(names Names, addr evidence.Addr, verdict string) string {
	if names.Pointer == returnAddress {
		return fmt.Sprintf("%s is %v", returnAddress, addr)
	}
	if names.Index != "" {
		return fmt.Sprintf("the index %s is %s, which leads to %v", names.Pointer, names.Index, addr)
	}
	if names.Pointer != "" {
		return fmt.Sprintf("%s leads to %v, which %s", names.Pointer, addr, verdict)
	}
	return fmt.Sprintf("%v %s", addr, verdict)
}

// spells shows what the bytes of a bad pointer look like, which hints at who
// wrote it: text, or a value that something was filled with.
func spells(f *evidence.Failure, names Names) string {
	if names.Index != "" {
		return ""
	}
	subject, bytes := "its bytes are", f.Fault.Addr
	if names.Value != nil && names.Pointer != "" && *names.Value != bytes {
		subject, bytes = "and holds", *names.Value
	}
	if text := textIn(uint64(bytes)); text != "" {
		return fmt.Sprintf("%s the text %q", subject, text)
	}
	if fill := byte(bytes); fill != 0 && fill != 0xff && uint64(bytes) == uint64(fill)*0x0101010101010101 {
		return fmt.Sprintf("%s eight times %#02x", subject, fill)
	}
	return ""
}

func placeText(fault *evidence.Fault) string {
	if fault.Place.Text == "" {
		return fault.Addr.String()
	}
	return fmt.Sprintf("%v is %s", fault.Addr, fault.Place.Text)
}

func accessNoun(fault *evidence.Fault) string {
	if fault == nil || fault.Access == "" {
		return "access"
	}
	if fault.Access == evidence.Execute {
		return "execution"
	}
	return string(fault.Access)
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
	if strings.HasPrefix(f.Message, frameAlone) {
		return f.Message
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
	return f.Message
}

// assertionText cuts the condition out of assert's message.
func assertionText(message string) string {
	_, rest, ok := strings.Cut(message, "Assertion `")
	if !ok {
		if _, rest, ok = strings.Cut(message, "Assertion '"); !ok {
			return message
		}
	}
	if i := strings.LastIndex(rest, "' failed"); i >= 0 {
		return rest[:i]
	}
	return rest
}

func terminatePhrase(f *evidence.Failure) (head, tail string) {
	if f.Exception == nil {
		return "std::terminate", f.Message
	}
	name := f.Exception.Type
	if name == "" {
		name = "exception of unknown type"
	}
	head = "uncaught " + name
	switch f.Message {
	case "":
	case thrownInUnwinding:
		head = name + " thrown while another exception was in flight"
	default:
		head = name + " left a noexcept function"
	}
	if "std::"+f.Exception.What == name || f.Exception.What == name {
		return head, ""
	}
	return head, quoted(f.Exception.What)
}

func exceptionText(e *evidence.Exception, message string) string {
	if e == nil {
		return message
	}
	switch {
	case e.What == "":
		return joinText(e.Type, message)
	case e.Type == "":
		return e.What
	}
	return e.Type + ": " + e.What
}

func quoted(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("%q", text)
}

func killedPhrase(f *evidence.Failure) (head, tail string) {
	head = "killed by " + signalText(f.Signal)
	if f.Signal == nil {
		return head, f.Message
	}
	if f.Message != "" {
		return head, f.Message
	}
	if f.Signal.SenderPID != 0 {
		tail = fmt.Sprintf("process %d of user %d sent it", f.Signal.SenderPID, f.Signal.SenderUID)
	}
	return head, tail
}

func signalText(sig *evidence.Signal) string {
	if sig == nil {
		return "an unknown signal"
	}
	if sig.CodeName == "" {
		return sig.Name
	}
	return fmt.Sprintf("%s (%s)", sig.Name, sig.CodeName)
}
