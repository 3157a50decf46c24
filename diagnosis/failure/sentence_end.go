package failure

import (
	"fmt"

	"diagnose/evidence"
)

// endPhrase describes processes that ended themselves, or were ended.
func endPhrase(f *evidence.Failure) (head, tail string) {
	switch f.Kind {
	case evidence.AssertionFailure:
		return assertionPhrase(f)
	case evidence.CxxTerminate:
		return terminatePhrase(f)
	case evidence.RustPanic, evidence.GoPanic:
		return "panic", panicText(f)
	case evidence.HeapCorruption:
		return "heap corruption found by the allocator", message(f)
	case evidence.FortifyFailure:
		return "buffer overflow stopped by a checked library function", message(f)
	case evidence.StackSmashing:
		return "stack smashing: the guard of a stack frame was overwritten", ""
	case evidence.Abort:
		return "abort", message(f)
	case evidence.KilledBySignal:
		return killedPhrase(f)
	}
	return "the process ended by " + signalText(f.Signal), message(f)
}

func assertionPhrase(f *evidence.Failure) (head, tail string) {
	if f.Condition != "" {
		return "assertion failed", f.Condition
	}
	return "assertion failed", message(f)
}

func terminatePhrase(f *evidence.Failure) (head, tail string) {
	if f.Exception == nil {
		return "std::terminate", message(f)
	}
	name := f.Exception.Type
	if name == "" {
		name = "exception of unknown type"
	}
	head = "uncaught " + name
	switch f.Termination {
	case evidence.ThrownInUnwinding:
		head = name + " thrown while another exception was in flight"
	case evidence.LeftNoexcept:
		head = name + " left a noexcept function"
	}
	if "std::"+f.Exception.What == name || f.Exception.What == name {
		return head, ""
	}
	return head, quoted(f.Exception.What)
}

func panicText(f *evidence.Failure) string {
	e := f.Exception
	if e == nil {
		return message(f)
	}
	switch {
	case e.What == "":
		return joinText(e.Type, message(f))
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
	if f.Message == "" && f.Signal != nil && f.Signal.SenderPID != 0 {
		return head, senderText(f.Signal)
	}
	return head, message(f)
}

func senderText(sig *evidence.Signal) string {
	return fmt.Sprintf("sent by process %d of user %d", sig.SenderPID, sig.SenderUID)
}

func joinClauses(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
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
