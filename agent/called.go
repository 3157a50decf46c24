package agent

import "strings"

// operators are C++'s for the heap, with how their mangled names begin (Itanium C++ ABI, 5.1.3).
var operators = [...]struct{ called, mangled string }{
	{APINewArray.String(), "_Zna"}, {APINew.String(), "_Znw"}, {APINewArray.Release(), "_Zda"}, {APINew.Release(), "_Zdl"},
}

// HeapFunction is what programs call the function of the heap that a symbol of our libraries stands for, whether it is demangled or not: its
// name in C, or the operator of C++ without its parameters. It is empty if the function is none that programs call, or none of the heap.
func HeapFunction(symbol string) string {
	name := strings.TrimPrefix(strings.TrimPrefix(symbol, "dg_own"), "__libc_")
	switch name {
	case "malloc", "calloc", "realloc", "reallocarray", "free", "cfree", "memalign", "aligned_alloc", "posix_memalign",
		"valloc", "pvalloc", "malloc_usable_size", "malloc_trim":
		return name
	}
	for _, o := range operators {
		if strings.HasPrefix(name, o.mangled) || strings.HasPrefix(name, o.called) {
			return o.called
		}
	}
	return ""
}
