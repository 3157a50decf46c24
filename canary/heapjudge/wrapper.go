package heapjudge

import (
	"regexp"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
)

// allocatorName is what programs call their own functions around malloc and
// free: xmalloc, zfree, PyMem_Malloc, luaM_realloc_, g_strdup; not functions
// that make or free one kind of object, such as session_alloc and session_free.
var allocatorName = regexp.MustCompile(`(?i)((m|c|re|z)alloc(0|n|array)?|strn?dup)_*$|^[a-z]_alloc$|^x[a-z]*alloc$|^[a-z]{0,2}_?free_*$|mem_?free$`)

// purpose is what a call of the heap is made for.
type purpose uint8

const (
	makes purpose = iota
	frees
)

// wraps reports whether a call at an address is in a function around malloc or free, at each level of the inline chain. A function that
// returns void * makes memory for others, whatever its name is, and one that gets void * and returns nothing or void * frees it. Where
// there is no DWARF, its name decides.
func (h *Heap) wraps(pc evidence.Addr, chain []image.SymbolizedCall, does purpose) []bool {
	out := make([]bool, len(chain))
	for i := range chain {
		out[i] = allocatorName.MatchString(image.CanonicalName(chain[i].Site.Function))
	}
	m := h.process.ModuleAt(pc)
	if m == nil {
		return out
	}
	info, err := m.Debug()
	if err != nil || info == nil {
		return out
	}
	calls, err := info.CallsAt(m.LinkAddr(image.ReturnAddress.Address(pc)))
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
func generic(f *debuginfo.Function, does purpose) bool {
	result, parameters, err := f.Signature()
	switch {
	case err != nil:
		return false
	case does == makes:
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
