package image

import "strings"

// startWrappers are the functions between the kernel and a thread's own code.
var startWrappers = []string{
	"_start", "__libc_start_main", "__libc_start_main_impl", "__libc_start_call_main", "start_thread",
	"libc_start_main_stage2", "_start_c", // musl's
	"clone", "clone3", "__clone", "__clone3",
	"execute_native_thread_routine", "std::", "core::", "alloc::", "void std::", "_rust_", "__rust_", "<alloc::", "<std::", "<core::",
	"runtime.goexit", "runtime.main", "runtime.mstart", "runtime.asmcgocall", "lang_start", "__invoke", "thread_start",
}

// StartsThread reports whether a function starts the program or a thread: its frame
// is between the kernel and the thread's own code.
func StartsThread(name string) bool {
	for _, w := range startWrappers {
		if strings.HasSuffix(w, "::") || strings.HasSuffix(w, "_") {
			if strings.HasPrefix(name, w) {
				return true
			}
			continue
		}
		if name == w || strings.HasPrefix(name, w+"@") || strings.HasPrefix(name, w+".") {
			return true
		}
	}
	return false
}
