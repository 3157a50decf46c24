package failure

import (
	"fmt"
	"math"
	"strings"

	"diagnose/evidence"
	"diagnose/image"
)

const (
	maxTypeName = 4096
	// maxTypes bounds the classes that are searched for std::exception.
	maxTypes = 64
)

// describeException returns an exception's type and its text.
func (e *exceptionReader) describeException(t thrown) *evidence.Exception {
	object := t.object
	out := &evidence.Exception{Object: &object, Proof: t.proof}
	mangled, err := e.typeInfoName(t.typeInfo)
	if err != nil {
		out.WhatUnavailable = evidence.Say("the exception's type cannot be read: " + err.Error())
		return out
	}
	out.Type = typeName(mangled)
	text, err := e.thrownValue(strings.TrimPrefix(mangled, "*"), object)
	if err == errNoValue {
		text, err = e.what(t.typeInfo, object)
	}
	if err != nil {
		out.WhatUnavailable = evidence.Say(err.Error())
	}
	out.What = text
	return out
}

// typeInfoName reads the mangled name of a std::type_info: vptr, name.
func (e *exceptionReader) typeInfoName(info evidence.Addr) (string, error) {
	at, err := readPointer(e, info+8)
	if err != nil {
		return "", err
	}
	name, whole, err := image.CString(e, at, maxTypeName)
	switch {
	case err != nil:
		return "", err
	case !whole || name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("no type name at %v", at)
	}
	return name, nil
}

var errNoValue = fmt.Errorf("the type's values are not known")

// integers are the widths of the mangled builtin integer types (Itanium ABI
// 5.1.5.2); negative ones are signed.
var integers = map[string]int{
	"i": -4, "j": 4, "l": -8, "m": 8, "x": -8, "y": 8, "s": -2, "t": 2, "c": -1, "a": -1, "h": 1, "b": 1,
}

// thrownValue shows thrown values that are no std::exception.
func (e *exceptionReader) thrownValue(mangled string, object evidence.Addr) (string, error) {
	if width, ok := integers[mangled]; ok {
		return e.thrownInteger(width, object)
	}
	switch mangled {
	case "PKc", "Pc":
		at, err := readPointer(e, object)
		if err != nil {
			return "", err
		}
		return cString(e, at, maxMessage)
	case "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE":
		return e.stdString(object)
	case "d":
		v, err := image.Uint64(e, object)
		return fmt.Sprint(math.Float64frombits(v)), err
	case "f":
		v, err := image.Uint32(e, object)
		return fmt.Sprint(math.Float32frombits(v)), err
	}
	return "", errNoValue
}

func (e *exceptionReader) thrownInteger(width int, object evidence.Addr) (string, error) {
	b := make([]byte, max(width, -width))
	if _, err := e.ReadMemory(object, b); err != nil {
		return "", err
	}
	v := leUint(b)
	if width < 0 {
		shift := 64 - 8*len(b)
		return fmt.Sprint(int64(v<<shift) >> shift), nil
	}
	return fmt.Sprint(v), nil
}

// stdString reads libstdc++'s std::string: pointer, length.
func (e *exceptionReader) stdString(at evidence.Addr) (string, error) {
	data, err := readPointer(e, at)
	if err != nil {
		return "", err
	}
	n, err := image.Uint64(e, at+8)
	if err != nil {
		return "", err
	}
	return readText(e, data, n)
}

// fixedWhat are the functions what() that return a constant (libstdc++,
// libsupc++/*.cc and the headers of the classes).
var fixedWhat = map[string]string{
	"std::exception::what":            "std::exception",
	"std::bad_exception::what":        "std::bad_exception",
	"std::bad_alloc::what":            "std::bad_alloc",
	"std::bad_array_new_length::what": "std::bad_array_new_length",
	"std::bad_cast::what":             "std::bad_cast",
	"std::bad_typeid::what":           "std::bad_typeid",
	"std::bad_function_call::what":    "bad_function_call",
	"std::bad_optional_access::what":  "bad optional access",
	"std::bad_any_cast::what":         "bad any_cast",
	"std::bad_weak_ptr::what":         "bad_weak_ptr",
}

// what finds the text that the object's what() would return, without running it: the function's
// name in the virtual table says where the text is stored.
func (e *exceptionReader) what(info, object evidence.Addr) (string, error) {
	search := baseSearch{exceptionReader: e, left: maxTypes}
	offset, ok := search.offset(info)
	if !ok {
		return "", fmt.Errorf("the type is not derived from std::exception")
	}
	base := object + evidence.Addr(offset)
	vtable, err := readPointer(e, base)
	if err != nil {
		return "", err
	}
	// what() follows the two destructors (Itanium ABI 2.5.2 and 2.9.4).
	fn, err := readPointer(e, vtable+16)
	if err != nil {
		return "", err
	}
	sym, ok := e.SymbolAt(fn)
	if !ok || sym.Addr != fn {
		return "", fmt.Errorf("its function what() at %v has no name", fn)
	}
	text, err := e.whatOf(plainName(sym.Name), base)
	if err != nil {
		if at, ok := follow(e, fn, base); ok {
			return cString(e, at, maxMessage)
		}
	}
	return text, err
}

func (e *exceptionReader) whatOf(name string, object evidence.Addr) (string, error) {
	if text, ok := fixedWhat[name]; ok {
		return text, nil
	}
	switch name {
	// The text's pointer follows the vptr (__cow_string _M_msg; const char*).
	case "std::runtime_error::what", "std::logic_error::what", "std::ios_base::failure[abi:cxx11]::what",
		"std::bad_variant_access::what", "std::future_error::what":
		at, err := readPointer(e, object+8)
		if err != nil {
			return "", err
		}
		return cString(e, at, maxMessage)
	case "std::filesystem::__cxx11::filesystem_error::what":
		return e.filesystemWhat(object)
	}
	return "", fmt.Errorf("its text comes from %s, which would have to run", name)
}

// filesystemWhat reads filesystem_error: after runtime_error (16 bytes) and
// error_code (16) a shared pointer to { path, path, string what }, a path
// being 40 bytes (libstdc++, src/c++17/fs_path.cc).
func (e *exceptionReader) filesystemWhat(object evidence.Addr) (string, error) {
	impl, err := readPointer(e, object+32)
	if err != nil {
		return "", err
	}
	return e.stdString(impl + 80)
}
