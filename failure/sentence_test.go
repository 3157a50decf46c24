package failure

import (
	"testing"

	"diagnose/evidence"
)

func TestSentence(t *testing.T) {
	site := &evidence.Site{Function: "handle_login", Module: "/bin/program"}
	thread := &evidence.ThreadRef{Number: 3, Name: "worker"}
	fault := func(kind evidence.AccessKind, addr evidence.Addr, text string) *evidence.Fault {
		return &evidence.Fault{Access: kind, Addr: addr, Place: evidence.Place{Text: text}}
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
			`null pointer read in handle_login: 8 bytes behind null`},
		{evidence.Failure{Kind: evidence.NullPointer, Fault: fault(evidence.Write, 0, "")}, Names{},
			`null pointer write in handle_login`},
		{evidence.Failure{Kind: evidence.NullPointer, Fault: fault(evidence.Execute, 0, ""), Message: arrivedByCall}, Names{Pointer: "handler"},
			`call through a null pointer in handle_login: handler is null`},
		{evidence.Failure{Kind: evidence.NonCanonical, Fault: fault(evidence.Read, 0x4141414141414141, "")}, Names{Accessed: "*p", Pointer: "p"},
			`read of *p through a non-canonical pointer in handle_login: p leads to 0x4141414141414141, which is no address, its bytes are the text "AAAAAAAA"`},
		{evidence.Failure{Kind: evidence.WriteToReadOnly, Fault: fault(evidence.Write, 0x4000, "in the section .rodata")}, Names{},
			`write to read-only memory in handle_login: 0x4000 is in the section .rodata`},
		{evidence.Failure{Kind: evidence.ExecuteOfData, Fault: fault(evidence.Execute, 0x4000, "the global blob"), Message: arrivedByCall}, Names{},
			`call of data that is not code in handle_login: 0x4000 is the global blob`},
		{evidence.Failure{Kind: evidence.AssertionFailure, Message: "prog: a.c:3: f: Assertion `n > 0' failed."}, Names{},
			"assertion failed in handle_login: n > 0"},
		{evidence.Failure{Kind: evidence.CxxTerminate, Exception: &evidence.Exception{Type: "std::runtime_error", What: "no disk"}}, Names{},
			`uncaught std::runtime_error in handle_login: "no disk"`},
		{evidence.Failure{Kind: evidence.HeapCorruption, Message: "double free or corruption (fasttop)"}, Names{},
			"heap corruption found by the allocator in handle_login: double free or corruption (fasttop)"},
		{evidence.Failure{Kind: evidence.KilledBySignal, Signal: &evidence.Signal{Name: "SIGQUIT", CodeName: "SI_USER", SenderPID: 7, SenderUID: 8}}, Names{},
			"killed by SIGQUIT (SI_USER) in handle_login: process 7 of user 8 sent it"},
		{evidence.Failure{Kind: evidence.StackOverflow, Recursion: &evidence.Recursion{Turns: 9, AtLeast: true, Cycle: []evidence.Site{{Function: "even"}, {Function: "odd"}}}}, Names{},
			"stack overflow in handle_login: even -> odd -> even call each other, at least 9 times"},
		{evidence.Failure{Kind: evidence.NoFailure}, Names{}, "the process had not failed when it was stopped"},
		{evidence.Failure{Kind: evidence.UnknownFailure}, Names{}, "the process ended by an unknown signal in handle_login"},
	}
	for _, test := range tests {
		test.f.Site = site
		if got := Sentence(test.f, test.names); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
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
		if got := Sentence(evidence.Failure{Kind: kind}, Names{}); len(got) < 5 {
			t.Errorf("%s: %q", kind, got)
		}
	}
}
