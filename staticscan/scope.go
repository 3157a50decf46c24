package staticscan

import (
	"path/filepath"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/internal/x86"
	"diagnose/unwind"
)

// runtimeModules are the objects whose frames are not the program's own: the
// C library, the loader, the C++ and compiler runtimes, the agent.
var runtimeModules = []string{
	"libc.", "libc-", "libpthread", "libm.", "libm-", "libdl.", "libdl-", "librt.", "librt-", "ld-linux", "ld-2.", "ld.so",
	"ld-musl", "libstdc++", "libc++", "libgcc_s", "libdiagnose", "linux-vdso", "[vdso]",
	"libasan", "libubsan", "libtsan",
}

// runtimeFunctions are the same code when it is linked into the program.
var runtimeFunctions = map[string]bool{
	"abort": true, "raise": true, "gsignal": true, "__GI_raise": true, "__GI_abort": true, "pthread_kill": true,
	"__pthread_kill_implementation": true, "__pthread_kill_internal": true, "__pthread_kill": true,
	"__assert": true, "__assert_fail": true, "__assert_fail_base": true, "__assert_perror_fail": true,
	"__libc_message": true, "__libc_fatal": true, "__fortify_fail": true, "__chk_fail": true, "__stack_chk_fail": true,
	"malloc_printerr": true, "__libc_start_main": true, "__libc_start_call_main": true, "_start": true,
	"__cxa_throw": true, "__cxa_rethrow": true, "__cxa_bad_cast": true, "__cxa_pure_virtual": true,
	"rust_panic": true, "rust_begin_unwind": true, "__rust_start_panic": true,
	"_Unwind_RaiseException": true, "_Unwind_Resume": true,
}

// runtimePrefixes are demangled names of the C++ and Rust machinery between
// a failure and the signal that reports it.
var runtimePrefixes = []string{
	"std::terminate", "__gnu_cxx::__verbose_terminate", "__cxxabiv1::", "std::__throw_",
	"core::panicking::", "std::panicking::", "std::panic::", "std::sys::", "std::sys_common::", "std::process::abort",
	"core::result::unwrap_failed", "core::option::expect_failed", "core::option::unwrap_failed",
	"core::cell::panic_", "core::slice::index::", "core::str::slice_error_fail",
	"alloc::alloc::handle_alloc_error", "panic_abort::", "panic_unwind::", "__rustc::",
	"core::ops::function::FnOnce::call_once", "std::rt::",
}

// passedOver reports whether code is no part of the program's own.
func passedOver(module, function, linkage string) bool {
	base := filepath.Base(module)
	for _, prefix := range runtimeModules {
		if strings.HasPrefix(base, prefix) {
			return true
		}
	}
	if runtimeFunctions[function] || runtimeFunctions[linkage] {
		return true
	}
	for _, prefix := range runtimePrefixes {
		if strings.HasPrefix(function, prefix) {
			return true
		}
	}
	return false
}

// ownFrames returns the indices of the frames that belong to the program,
// innermost first.
func (in *Input) ownFrames(limit int) []int {
	var own []int
	for i := range in.Frames {
		if len(own) == limit {
			break
		}
		if in.isOwn(&in.Frames[i]) {
			own = append(own, i)
		}
	}
	return own
}

func (in *Input) isOwn(f *unwind.Frame) bool {
	if f.Kind == evidence.SignalFrame {
		return false
	}
	m := in.Process.ModuleAt(lookupPC(f))
	if m == nil {
		return false
	}
	calls := in.calls(f)
	if len(calls) == 0 {
		return !passedOver(m.Path, "", "")
	}
	last := calls[len(calls)-1].Site
	return !passedOver(m.Path, last.Function, last.LinkageName)
}

// callee follows a call's target through a PLT stub, whose jump goes through
// a GOT slot, to the function.
func (w *world) callee(target evidence.Addr) evidence.Addr {
	code, err := readCode(w.memory, w.process.ModuleAt(target), target, 16)
	if err != nil {
		return target
	}
	for n := 0; n < 2 && len(code) > 0; n++ {
		in, err := x86.Decode(code, uint64(target))
		if err != nil {
			return target
		}
		op, ok := explicit(&in, 0)
		if in.Flow == x86.FlowJump && ok && op.IsMemory && op.Memory.Base == x86.RIP {
			if to, err := image.Uint64(w.memory, evidence.Addr(op.Memory.Target)); err == nil {
				return evidence.Addr(to)
			}
			return target
		}
		if in.Op != "endbr64" {
			return target
		}
		code = code[in.Len:]
		target += evidence.Addr(in.Len)
	}
	return target
}

// callees are the entries of the program's own functions that a function
// calls directly, in code order.
func (w *world) callees(a *analysis) []evidence.Addr {
	var list []evidence.Addr
	seen := map[evidence.Addr]bool{}
	for i := range a.flow.insts {
		in := &a.flow.insts[i]
		tail := in.Flow == x86.FlowJump && in.HasTarget && !a.function.contains(evidence.Addr(in.Target))
		if in.Flow != x86.FlowCall && !tail || !in.HasTarget {
			continue
		}
		to := w.callee(evidence.Addr(in.Target))
		if seen[to] || a.function.contains(to) {
			continue
		}
		seen[to] = true
		m := w.process.ModuleAt(to)
		if m == nil {
			continue
		}
		s, _ := w.process.SymbolAt(to)
		if !passedOver(m.Path, s.Name, "") {
			list = append(list, to)
		}
	}
	return list
}
