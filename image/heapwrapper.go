package image

import (
	"regexp"

	"diagnose/evidence"
	"diagnose/image/debuginfo"
)

// allocatorName is what programs call their own functions around malloc and
// free: xmalloc, zfree, PyMem_Malloc, luaM_realloc_, g_strdup; not functions
// that make or free one kind of object, such as session_alloc and session_free.
var allocatorName = regexp.MustCompile(`(?i)((m|c|re|z)alloc(0|n|array)?|strn?dup)_*$|^[a-z]_alloc$|^x[a-z]*alloc$|^[a-z]{0,2}_?free_*$|mem_?free$`)

// HeapPurpose is what a call of the heap is made for.
type HeapPurpose uint8

// The purposes: a call makes memory, or it frees memory.
const (
	MakesMemory HeapPurpose = iota
	FreesMemory
)

// NamedAsAllocator reports whether a function is called as programs call their own functions around malloc and free.
func NamedAsAllocator(function string) bool {
	return allocatorName.MatchString(CanonicalName(function))
}

// WrapsHeap reports whether code is in a function around malloc or free, at each level of chain, its inline chain. A function that
// returns void * makes memory for others, whatever its name is, and one that gets void * and returns nothing or void * frees it. Where
// there is no DWARF, its name decides. is says how pc is to be understood.
func WrapsHeap(p *Process, pc evidence.Addr, is Lookup, chain []SymbolizedCall, does HeapPurpose) []bool {
	out := make([]bool, len(chain))
	for i := range chain {
		out[i] = NamedAsAllocator(chain[i].Site.Function)
	}
	m := p.ModuleAt(pc)
	if m == nil {
		return out
	}
	info, err := m.Debug()
	if err != nil || info == nil {
		return out
	}
	calls, err := info.CallsAt(m.LinkAddr(is.Address(pc)))
	if err != nil || len(calls) != len(chain) {
		return out
	}
	for i := range calls {
		if f := calls[i].Function; f != nil && !out[i] {
			out[i] = generic(f, does)
		}
	}
	return out
}

// generic reports whether a function makes or frees memory of any kind.
func generic(f *debuginfo.Function, does HeapPurpose) bool {
	result, parameters, err := f.Signature()
	switch {
	case err != nil:
		return false
	case does == MakesMemory:
		return anyPointer(result)
	case result != nil && !anyPointer(result):
		return false
	}
	for _, p := range parameters {
		if anyPointer(p) {
			return true
		}
	}
	return false
}

// anyPointer reports whether a type is void *.
func anyPointer(t debuginfo.Type) bool {
	return t != nil && t.Kind() == debuginfo.KindPointer && t.Elem() == nil
}
