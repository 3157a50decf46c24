package failure

import (
	"strings"
	"testing"

	"diagnose/evidence"
)

func sentence(f evidence.Failure, names Names) string {
	Describe(&f, names)
	return f.Sentence
}

func TestSentence(t *testing.T) {
	site := &evidence.Site{Function: "handle_login", Module: "/bin/program"}
	thread := &evidence.ThreadRef{Number: 3, Name: "worker"}
	fault := func(kind evidence.AccessKind, addr evidence.Addr, text string) *evidence.Fault {
		return &evidence.Fault{Access: kind, Addr: addr, Place: evidence.Place{Text: text}}
	}
	addr := func(a evidence.Addr) *evidence.Addr { return &a }
	loading := func(register string) *evidence.Instruction {
		return &evidence.Instruction{Operands: []evidence.Operand{{Registers: []evidence.Register{{Name: register}}}}}
	}
	named := Names{Accessed: "session->user->name", Pointer: "session->user", Threads: 4}
	tests := []struct {
		f     evidence.Failure
		names Names
		want  string
	}{
		{evidence.Failure{Kind: evidence.NullPointer, Fault: fault(evidence.Read, 8, ""), Thread: thread}, named,
			`null pointer read of session->user->name in handle_login, thread 3 "worker": session->user is null`},
		{evidence.Failure{Kind: evidence.NullPointer, Fault: fault(evidence.Read, 8, "")}, Names{},
			`null pointer read in handle_login: at offset 8 from a null pointer`},
		{evidence.Failure{Kind: evidence.NullPointer, Fault: fault(evidence.Write, 0, "")}, Names{},
			`null pointer write in handle_login`},
		{evidence.Failure{Kind: evidence.NullPointer, Fault: fault(evidence.Execute, 0, ""), Arrival: evidence.ArrivedByCall}, Names{Pointer: "handler"},
			`call through a null pointer in handle_login: handler is null`},
		{evidence.Failure{Kind: evidence.NonCanonical, Fault: fault(evidence.Read, 0x4141414141414141, "")}, Names{Accessed: "*p", Pointer: "p"},
			`read of *p through a non-canonical pointer in handle_login: p leads to 0x4141414141414141, which is no address, its bytes are the text "AAAAAAAA"`},
		{evidence.Failure{Kind: evidence.NonCanonical, Fault: fault(evidence.Read, 0x4141414141414151, "")}, Names{Accessed: "p->n", Pointer: "p", Value: addr(0x4141414141414141)},
			`read of p->n through a non-canonical pointer in handle_login: p leads to 0x4141414141414151, which is no address, and holds the text "AAAAAAAA"`},
		{evidence.Failure{Kind: evidence.NonCanonical, Fault: fault(evidence.Read, 0x8181818181818181, "")}, Names{Accessed: "*p", Pointer: "p"},
			"read of *p through a non-canonical pointer in handle_login: p leads to 0x8181818181818181, which is no address, its bytes are eight times 0x81"},
		{evidence.Failure{Kind: evidence.WildPointer, Fault: fault(evidence.Write, 0x5000, "")}, Names{Accessed: "rows[i]", Pointer: "i", Index: "-7", Value: addr(0)},
			"write of rows[i] at an unmapped address in handle_login: the index i is -7, which leads to 0x5000"},
		{evidence.Failure{Kind: evidence.NullPointer, Fault: fault(evidence.Read, 0, "")}, Names{Accessed: "*name", Pointer: "name", Through: "strlen"},
			"null pointer read in strlen, called with name in handle_login"},
		{evidence.Failure{Kind: evidence.NearNullPointer, Fault: fault(evidence.Read, 0x1092, ""), Instruction: loading("rdi")}, Names{Accessed: "[rdi]", Pointer: "rdi", Through: "printf"},
			"read near null in printf, called in handle_login: 0x1092 is no address"},
		{evidence.Failure{Kind: evidence.StackOverflow, FrameBytes: 9<<10 + 5}, Names{}, "stack overflow in handle_login: its frame alone takes 9 KiB"},
		{evidence.Failure{Kind: evidence.StackOverflow, Recursion: &evidence.Recursion{Turns: 9, Cycle: []evidence.Site{{Function: "run"}, {Function: "step"}, {Function: "run"}}}}, Names{},
			"stack overflow in handle_login: run -> step -> run call each other, 9 times"},
		{evidence.Failure{Kind: evidence.CxxTerminate, Exception: &evidence.Exception{Type: "std::bad_alloc", What: "std::bad_alloc"}}, Names{},
			"uncaught std::bad_alloc in handle_login"},
		{evidence.Failure{Kind: evidence.AssertionFailure, Message: "v.h:3: f: Assertion 'n < size()' failed.", Condition: "n < size()"}, Names{},
			"assertion failed in handle_login: n < size()"},
		{evidence.Failure{Kind: evidence.WriteToReadOnly, Fault: fault(evidence.Write, 0x4000, "in the section .rodata")}, Names{},
			`write to read-only memory in handle_login: 0x4000 is in the section .rodata`},
		{evidence.Failure{Kind: evidence.ExecuteOfData, Fault: fault(evidence.Execute, 0x4000, "the global blob"), Arrival: evidence.ArrivedByCall}, Names{},
			`call of data that is not code in handle_login: 0x4000 is the global blob`},
		{evidence.Failure{Kind: evidence.AssertionFailure, Message: "prog: a.c:3: f: Assertion `n > 0' failed.", Condition: "n > 0"}, Names{},
			"assertion failed in handle_login: n > 0"},
		{evidence.Failure{Kind: evidence.CxxTerminate, Exception: &evidence.Exception{Type: "E"}, Termination: evidence.LeftNoexcept}, Names{},
			"E left a noexcept function in handle_login"},
		{evidence.Failure{Kind: evidence.CxxTerminate, Exception: &evidence.Exception{Type: "E"}, Message: "the handler of SIGABRT ended the process with status 3"}, Names{},
			"uncaught E in handle_login"},
		{evidence.Failure{Kind: evidence.CxxTerminate, Exception: &evidence.Exception{Type: "std::runtime_error", What: "no disk"}}, Names{},
			`uncaught std::runtime_error in handle_login: "no disk"`},
		{evidence.Failure{Kind: evidence.HeapCorruption, Message: "double free or corruption (fasttop)"}, Names{},
			"heap corruption found by the allocator in handle_login: double free or corruption (fasttop)"},
		{evidence.Failure{Kind: evidence.KilledBySignal, Signal: &evidence.Signal{Name: "SIGQUIT", CodeName: "SI_USER", SenderPID: 7, SenderUID: 8}}, Names{},
			"killed by SIGQUIT (SI_USER) in handle_login: sent by process 7 of user 8"},
		{evidence.Failure{Kind: evidence.StackOverflow, Recursion: &evidence.Recursion{Turns: 9, AtLeast: true, Cycle: []evidence.Site{{Function: "even"}, {Function: "odd"}}}}, Names{},
			"stack overflow in handle_login: even -> odd -> even call each other, at least 9 times"},
		{evidence.Failure{Kind: evidence.NoFailure}, Names{}, "the process had not failed when it was stopped"},
		{evidence.Failure{Kind: evidence.UnknownFailure}, Names{}, "the process ended by an unknown signal in handle_login"},
		{evidence.Failure{Kind: evidence.UseAfterFree, Fault: fault(evidence.Read, 0xdf5d000000006408, ""), Thread: thread},
			Names{Accessed: "n->value", Pointer: "n", Threads: 4, Heap: &HeapWords{What: "use after free", Why: "n was read from a freed object"}},
			`use after free by a read of n->value in handle_login, thread 3 "worker": n was read from a freed object`},
		{evidence.Failure{Kind: evidence.UseAfterFree, Fault: fault(evidence.Read, 0xdf5d000000006400, "")},
			Names{Accessed: "*n", Pointer: "n->name", Through: "strlen", Heap: &HeapWords{What: "use after free", Why: "because"}},
			`use after free by a read in strlen, called with n->name in handle_login: because`},
		{evidence.Failure{Kind: evidence.UseAfterFree, Fault: fault(evidence.Execute, 0xdf5d000000006400, "")},
			Names{Pointer: "s->done", Heap: &HeapWords{What: "use after free", Why: "because"}},
			`use after free by a call or jump through s->done in handle_login: because`},
		{evidence.Failure{Kind: evidence.HeapOverflow, Fault: fault("", 0x5000, "")}, Names{Accessed: "a[i]", Heap: &HeapWords{What: "heap overflow"}},
			`heap overflow by an access of a[i] in handle_login`},
		{evidence.Failure{Kind: evidence.DoubleFree, Thread: thread}, Names{Threads: 4, Heap: &HeapWords{What: "double free of x", Why: "first freed by y"}},
			`double free of x in handle_login, thread 3 "worker": first freed by y`},
	}
	for _, test := range tests {
		test.f.Site = site
		if got := sentence(test.f, test.names); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}

// A report says the message by itself if the sentence does not have it.
func TestMessageInSentence(t *testing.T) {
	const text = "what the program said"
	for _, test := range []struct {
		f    evidence.Failure
		want bool
	}{
		{evidence.Failure{Kind: evidence.Abort, Message: text}, true},
		{evidence.Failure{Kind: evidence.Abort}, false},
		{evidence.Failure{Kind: evidence.Abort, MessageInSentence: true}, false}, // of an earlier sentence
		{evidence.Failure{Kind: evidence.AssertionFailure, Message: text}, true},
		{evidence.Failure{Kind: evidence.AssertionFailure, Message: text, Condition: "n > 0"}, false},
		{evidence.Failure{Kind: evidence.RustPanic, Message: text, Exception: &evidence.Exception{Type: "T"}}, true},
		{evidence.Failure{Kind: evidence.RustPanic, Message: text, Exception: &evidence.Exception{What: "w"}}, false},
		{evidence.Failure{Kind: evidence.KilledBySignal, Message: text, Signal: &evidence.Signal{SenderPID: 7}}, true},
		{evidence.Failure{Kind: evidence.StackSmashing, Message: text}, false},
		{evidence.Failure{Kind: evidence.NullPointer, Message: text, Fault: &evidence.Fault{Access: evidence.Read}}, false},
	} {
		Describe(&test.f, Names{})
		if test.f.MessageInSentence != test.want || strings.Contains(test.f.Sentence, text) != test.want {
			t.Errorf("%q has the message: %v, want %v", test.f.Sentence, test.f.MessageInSentence, test.want)
		}
	}
}

func TestShortFunction(t *testing.T) {
	for in, want := range map[string]string{
		"void Atomic::Store<8ul>::operator()<long>(long*, long) const": "Atomic::Store<8ul>::operator()<long>",
		"unsigned int add<int>(int)":                                   "add<int>",
		"(anonymous namespace)::run(int)":                              "(anonymous namespace)::run",
		"Number::operator unsigned long() const":                       "Number::operator unsigned long",
		stdString + "::size() const":                                   "std::string::size",
		"bool std::operator< <char, std::char_traits<char> >(int)":     "std::operator< <char, std::char_traits<char> >",
		"<core::option::Option<T> as core::fmt::Debug>::fmt":           "<core::option::Option<T> as core::fmt::Debug>::fmt",
		"std::map<" + stdString + ", std::vector<" + stdString + ", std::allocator<" + stdString + " > > >::at(int)": "std::map<...>::at",
	} {
		if got := shortFunction(in); got != want {
			t.Errorf("shortFunction(%q) = %q, want %q", in, got, want)
		}
	}
}

// Every kind has a sentence, however little is known.
func TestSentenceOfEveryKind(t *testing.T) {
	for _, kind := range []evidence.FailureKind{
		evidence.NullPointer, evidence.NearNullPointer, evidence.NonCanonical, evidence.WildPointer, evidence.UnmappedAddress,
		evidence.WriteToReadOnly, evidence.ProtectedPage, evidence.ExecuteOfData, evidence.StackOverflow, evidence.BusError,
		evidence.DivisionByZero, evidence.DivisionOverflow, evidence.ArithmeticError, evidence.IllegalInsn, evidence.TrapInsn,
		evidence.AssertionFailure, evidence.Abort, evidence.CxxTerminate, evidence.RustPanic, evidence.GoPanic, evidence.HeapCorruption,
		evidence.FortifyFailure, evidence.StackSmashing, evidence.Deadlock, evidence.BadSystemCall, evidence.KilledBySignal,
		evidence.NoFailure, evidence.UnknownFailure,
	} {
		if got := sentence(evidence.Failure{Kind: kind}, Names{}); len(got) < 5 {
			t.Errorf("%s: %q", kind, got)
		}
	}
}
