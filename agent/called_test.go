package agent

import (
	"debug/elf"
	"testing"

	"github.com/ianlancetaylor/demangle"
)

// TestHeapFunction looks at every name that the recording library exports for the heap, as it is and demangled.
func TestHeapFunction(t *testing.T) {
	t.Parallel()
	for symbol, want := range map[string]string{
		"malloc": "malloc", "__libc_free": "free", "dg_own_Znam": "operator new[]", "dg_own_ZdlPvSt11align_val_t": "operator delete",
		"_ZdlPvm.cold": "operator delete", "operator delete(void*, unsigned long)": "operator delete",
		"operator new[](unsigned long, std::nothrow_t const&)": "operator new[]",
		"dg_mutex_lock": "", "memcpy": "", "": "", "_ZNSt13random_device9_M_getvalEv": "",
	} {
		if got := HeapFunction(symbol); got != want {
			t.Errorf("%q: %q, not %q", symbol, got, want)
		}
	}
	library, err := RecordLibrary(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file, err := elf.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	operators := 0
	for _, s := range symbols {
		readable := demangle.Filter(s.Name)
		if s.Section == elf.SHN_UNDEF || readable == s.Name {
			continue
		}
		got := HeapFunction(s.Name)
		if again := HeapFunction(readable); again != got {
			t.Errorf("%s is %q, and demangled %q", s.Name, got, again)
		}
		if got != "" {
			operators++
		}
	}
	if operators < 20 { // new and delete, each also of arrays, aligned, sized and without an exception
		t.Errorf("%d operators are exported", operators)
	}
}
