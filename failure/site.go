package failure

import (
	"path"
	"strings"

	"diagnose/evidence"
	"diagnose/unwind"
)

// runtimeModules are objects that serve every program: a failure inside them
// is reported at the program's frame that called them.
var runtimeModules = []string{
	"libc.", "libc-", "libm.", "libm-", "libpthread.", "libpthread-", "librt.", "libdl.", "libstdc++.",
	"libgcc_s.", "libc++.", "libc++abi.", "libunwind.", "ld-linux", "ld-2.", "linux-vdso", "linux-gate", "[vdso]",
	"libasan.", "libubsan.", "libtsan.", "libstd-", "libdiagnose.", "libssp.", "libmvec.", "libatomic.",
}

// toolchainPaths are where compilers keep the sources that they put into a
// program by inlining and instantiation.
var toolchainPaths = []string{
	"/rustc/", "/usr/include/", "/usr/lib/gcc/", "/usr/lib/llvm", "/usr/lib/rustlib/", "/build/glibc", "/build/gcc",
}

// runtimeFunctions are machinery wherever they were linked into.
var runtimeFunctions = map[string]bool{
	"abort": true, "raise": true, "gsignal": true, "pthread_kill": true, "_start": true, "__restore_rt": true,
	"__assert": true, "__assert_fail": true, "__assert_fail_base": true, "__assert_perror_fail": true, "__libc_message": true,
	"__fortify_fail": true, "__chk_fail": true, "__stack_chk_fail": true, "__stack_chk_fail_local": true,
	"__pthread_kill_implementation": true, "__libc_start_main": true, "__libc_start_call_main": true,
	"rust_begin_unwind": true, "rust_panic": true, "__rust_start_panic": true, "__rust_abort": true,
	"__cxa_throw": true, "__cxa_rethrow": true, "__cxa_pure_virtual": true, "__clang_call_terminate": true,
	"__gxx_personality_v0": true, "_Unwind_RaiseException": true, "_Unwind_Resume": true,
}

var runtimePrefixes = []string{
	"std::", "core::", "alloc::", "__gnu_cxx::", "__cxxabiv1::", "__rustc::", "panic_abort::", "panic_unwind::",
	"<std::", "<core::", "<alloc::", "<std[", "<core[", "<alloc[", "__rust_", "__GI_", "void std::", "bool std::",
}

// machinery reports whether a place belongs to what runs under every program
// and not to the program itself. The rule: its object is a runtime library,
// or its source lies where toolchains keep theirs, or its function is one of
// those that raise, abort, assert, unwind and panic, or lies in the
// namespaces of the C++ and Rust standard libraries.
func machinery(site *evidence.Site) bool {
	base := path.Base(site.Module)
	for _, prefix := range runtimeModules {
		if site.Module != "" && strings.HasPrefix(base, prefix) {
			return true
		}
	}
	for _, prefix := range toolchainPaths {
		if strings.HasPrefix(site.File, prefix) {
			return true
		}
	}
	if strings.Contains(site.File, "/rustlib/src/rust/library/") {
		return true
	}
	name := canonicalName(site.Function)
	if runtimeFunctions[name] {
		return true
	}
	for _, prefix := range runtimePrefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// site is the innermost place in the program's own code, or else the innermost
// of all. A frame that stands in data or nowhere is the failure, not its site.
func (s *scene) site() *evidence.Site {
	for i := range s.frames {
		m := s.MappingAt(s.frames[i].PC())
		if m != nil && m.Executable() {
			return programSite(sitesOfFrames(s.frames[i:], s.bareSite))
		}
	}
	return programSite(s.sites())
}

func programSite(sites []evidence.Site) *evidence.Site {
	for i := range sites {
		if sites[i].Module != "" && !machinery(&sites[i]) {
			return &sites[i]
		}
	}
	if len(sites) == 0 {
		return nil
	}
	return &sites[0]
}

// siteFrames bounds the search for the program's own code.
const siteFrames = 256

// sites are the places on the stack, innermost first, inlined ones included.
func (s *scene) sites() []evidence.Site { return sitesOfFrames(s.frames, s.bareSite) }

func sitesOfFrames(frames []unwind.Frame, bare func(*unwind.Frame) evidence.Site) []evidence.Site {
	var out []evidence.Site
	for i := range min(len(frames), siteFrames) {
		fr := &frames[i]
		if fr.Kind == evidence.SignalFrame {
			continue
		}
		if len(fr.Calls) == 0 {
			out = append(out, bare(fr))
		}
		for j := range fr.Calls {
			out = append(out, fr.Calls[j].Site)
		}
	}
	return out
}
