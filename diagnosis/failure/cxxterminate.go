package failure

import (
	"diagnose/evidence"
)

// cxxTerminating reports whether std::terminate is on the stack.
func cxxTerminating(names []string) bool {
	return has(names, "std::terminate", "__cxxabiv1::__terminate", "__gnu_cxx::__verbose_terminate_handler",
		"__cxa_pure_virtual", "__cxa_deleted_virtual", "__clang_call_terminate", "__cxa_call_terminate", "__cxa_throw",
		"__cxa_rethrow", "std::unexpected")
}

// terminate says why std::terminate was called: an exception that was not caught or that left a
// noexcept function, a virtual function without a body, the destruction of a joinable thread.
func (j *judge) terminate(f *evidence.Failure, names []string) {
	f.Kind = evidence.CxxTerminate
	switch {
	case has(names, "__cxa_pure_virtual"):
		f.Termination = evidence.PureVirtual
	case has(names, "__cxa_deleted_virtual"):
		f.Termination = evidence.DeletedVirtual
	default:
		var others uint32
		f.Exception, others = j.exceptions().exception()
		f.Termination = termination(f.Exception != nil, others > 0, names)
	}
	if text := terminations[f.Termination]; text != "" {
		f.Message = evidence.Say(text)
	}
}

func termination(thrown, others bool, names []string) evidence.Termination {
	switch {
	case !thrown && has(names, "std::thread::~thread"):
		return evidence.ThreadDestroyed
	case !thrown && has(names, "std::thread::operator="):
		return evidence.ThreadAssigned
	case !thrown:
		return evidence.NoException
	case leftNoexcept(names) && others:
		return evidence.ThrownInUnwinding
	case leftNoexcept(names):
		return evidence.LeftNoexcept
	}
	return ""
}

// terminations are the reasons in words. An exception that left a destructor which the unwinding of
// another one called cannot be caught ([except.throw]).
var terminations = map[evidence.Termination]string{
	evidence.PureVirtual:       "pure virtual method called",
	evidence.DeletedVirtual:    "deleted virtual method called",
	evidence.ThreadDestroyed:   "a joinable std::thread was destroyed",
	evidence.ThreadAssigned:    "a joinable std::thread was assigned to",
	evidence.NoException:       "terminate called without an active exception",
	evidence.ThrownInUnwinding: "another exception was in flight, whose unwinding ran the code that threw this one",
	evidence.LeftNoexcept:      "the exception left a function that is noexcept",
}

// leftNoexcept recognises how the unwinder ends at a function that lets no exception out: the
// personality routine terminates during the unwinding (gcc), or a landing pad does (clang, newer
// gcc).
func leftNoexcept(names []string) bool {
	return has(names, "__gxx_personality_v0", "__clang_call_terminate", "__cxa_call_terminate")
}
