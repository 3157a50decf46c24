package image

import (
	"path/filepath"
	"strings"

	"github.com/ianlancetaylor/demangle"

	"diagnose/evidence"
)

// runtimeModules are objects that serve every program: the C library, the
// loader, the runtimes of C++, OpenMP, Rust and the sanitizers, the agent.
var runtimeModules = []string{
	"libc.", "libc-", "libm.", "libm-", "libpthread", "librt.", "librt-", "libdl.", "libdl-", "libmvec.",
	"ld-linux", "ld-2.", "ld.so", "ld-musl", "linux-vdso", "linux-gate", "[vdso]",
	"libstdc++.", "libc++", "libgomp.", "libomp.", "libiomp5.", "libgcc_s", "libunwind.", "libssp.", "libatomic.", "libstd-",
	"libasan.", "libubsan.", "libtsan.", "libdiagnose.", "libdiagnose-record.",
}

// machineryFunctions raise, abort, assert, unwind, panic and start threads, in
// whatever object they are linked.
var machineryFunctions = map[string]bool{
	"abort": true, "raise": true, "gsignal": true, "pthread_kill": true, "__pthread_kill": true,
	"__pthread_kill_implementation": true, "__pthread_kill_internal": true, "__restore_rt": true,
	"__assert": true, "__assert_fail": true, "__assert_fail_base": true, "__assert_perror_fail": true,
	"__libc_message": true, "__libc_fatal": true, "malloc_printerr": true,
	"__fortify_fail": true, "__chk_fail": true, "__stack_chk_fail": true, "__stack_chk_fail_local": true,
	"_start": true, "__libc_start_main": true, "__libc_start_call_main": true,
	"rust_begin_unwind": true, "rust_panic": true, "__rust_start_panic": true, "__rust_abort": true,
	"__cxa_throw": true, "__cxa_rethrow": true, "__cxa_bad_cast": true, "__cxa_pure_virtual": true,
	"__clang_call_terminate": true, "__gxx_personality_v0": true, "_Unwind_RaiseException": true, "_Unwind_Resume": true,
}

// machineryPrefixes are demangled names of the C++ and Rust machinery between a
// failure and the signal that reports it, and of functions that compilers call
// in place of an instruction.
var machineryPrefixes = []string{
	"std::terminate", "__gnu_cxx::__verbose_terminate", "__cxxabiv1::", "std::__throw_",
	"core::panicking::", "std::panicking::", "std::panic::", "std::sys::", "std::sys_common::", "std::process::abort",
	"core::result::unwrap_failed", "core::option::expect_failed", "core::option::unwrap_failed",
	"core::cell::panic_", "core::slice::index::", "core::str::slice_error_fail",
	"alloc::alloc::handle_alloc_error", "panic_abort::", "panic_unwind::", "__rustc::", "__rust_",
	"core::ops::function::FnOnce::call_once", "std::rt::",
	"__tsan_", // the atomic operations of an instrumented program
}

// libraryPrefixes are the namespaces of the C++ and Rust standard libraries,
// whose templates and generics become part of the program.
var libraryPrefixes = []string{
	"std::", "core::", "alloc::", "__gnu_cxx::", "<std::", "<core::", "<alloc::", "<std[", "<core[", "<alloc[",
	"void std::", "bool std::",
}

// toolchainPaths are where compilers keep the sources that they put into a
// program by inlining and instantiation.
var toolchainPaths = []string{
	"/rustc/", "/rust/deps/", "/usr/include/", "/usr/lib/gcc/", "/usr/lib/llvm", "/usr/lib/rustlib/", "/build/glibc", "/build/gcc",
}

// RuntimeModule reports whether an object serves every program: a failure
// inside it is attributed to the program's frame that called it.
func RuntimeModule(module string) bool {
	return module != "" && hasPrefix(filepath.Base(module), runtimeModules)
}

// openMPModules are the runtimes of OpenMP.
var openMPModules = []string{"libgomp.", "libomp.", "libiomp5."}

// OpenMPModule reports whether an object is a runtime of OpenMP: what it allocates it keeps to itself, and
// its threads share that by rules of its own.
func OpenMPModule(module string) bool {
	return hasPrefix(filepath.Base(module), openMPModules)
}

// Machinery reports whether a place is code that runs when a program aborts or
// starts: its object is a runtime's, it was linked from an archive, or its function raises, aborts, asserts,
// throws, unwinds or panics.
func Machinery(site *evidence.Site) bool {
	if RuntimeModule(site.Module) || site.Archive {
		return true
	}
	name := withoutClone(CanonicalName(site.Function))
	return machineryFunctions[name] || machineryFunctions[site.LinkageName] || hasPrefix(name, machineryPrefixes)
}

// LibraryCode reports whether a place is not the program's own: Machinery, code
// that the compiler made without a source, or
// code of the standard libraries of C++ and Rust that the compiler put into the
// program, known by its namespace or by the path of its source.
func LibraryCode(site *evidence.Site) bool {
	return site.Implicit || Machinery(site) || hasPrefix(filepath.Clean(site.File), toolchainPaths) || // clang writes "/usr/bin/../lib"
		strings.Contains(site.File, "/rustlib/src/rust/library/") ||
		hasPrefix(CanonicalName(site.Function), libraryPrefixes)
}

func hasPrefix(text string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(text, p) {
			return true
		}
	}
	return false
}

// clones are what gcc appends to the names of copies of functions that it specialises.
var clones = []string{".constprop.", ".isra.", ".part.", ".cold"}

// withoutClone is the name of the function that a copy was made of.
func withoutClone(name string) string {
	for _, mark := range clones {
		if i := strings.Index(name, mark); i > 0 {
			name = name[:i]
		}
	}
	return name
}

// CanonicalName is a function's name in the form that rules about names use:
// demangled even when the user wants linkage names, then without parameters;
// without version, and without the alias that glibc gives its own functions.
func CanonicalName(name string) string {
	if strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R") {
		if plain, err := demangle.ToString(name, demangle.NoParams, demangle.NoTemplateParams); err == nil {
			name = plain
		}
	}
	if i := strings.IndexByte(name, '@'); i > 0 {
		name = name[:i]
	}
	return strings.TrimPrefix(name, "__GI_")
}
