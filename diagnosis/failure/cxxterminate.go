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
		f.Message = "pure virtual method called"
		return
	case has(names, "__cxa_deleted_virtual"):
		f.Message = "deleted virtual method called"
		return
	}
	var others uint32
	f.Exception, others = j.exceptions().exception()
	switch {
	case f.Exception == nil && has(names, "std::thread::~thread"):
		f.Message = "a joinable std::thread was destroyed"
	case f.Exception == nil && has(names, "std::thread::operator="):
		f.Message = "a joinable std::thread was assigned to"
	case f.Exception == nil:
		f.Message = "terminate called without an active exception"
	case leftNoexcept(names) && others > 0:
		f.Message = thrownInUnwinding
	case leftNoexcept(names):
		f.Message = "the exception left a function that is noexcept"
	}
}

// thrownInUnwinding is for an exception that cannot be caught because it left a destructor that the
// unwinding of another one called ([except.throw]).
const thrownInUnwinding = "another exception was in flight, whose unwinding ran the code that threw this one"

// leftNoexcept recognises how the unwinder ends at a function that lets no exception out: the
// personality routine terminates during the unwinding (gcc), or a landing pad does (clang, newer
// gcc).
func leftNoexcept(names []string) bool {
	return has(names, "__gxx_personality_v0", "__clang_call_terminate", "__cxa_call_terminate")
}
