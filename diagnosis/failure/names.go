package failure

import (
	"strings"

	"github.com/ianlancetaylor/demangle"

	"diagnose/image"
)

// plainName is image.CanonicalName without parameters, for names that were
// demangled with them.
func plainName(name string) string {
	name = image.CanonicalName(name)
	if i := strings.IndexByte(name, '('); i > 0 && !strings.HasPrefix(name, "(anonymous") {
		name = name[:i]
	}
	return name
}

// stdString is the type that std::string abbreviates.
const stdString = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"

// typeName demangles the name in a C++ type_info (Itanium ABI 2.9.5); a
// leading asterisk marks names that are compared by address.
func typeName(name string) string {
	name = strings.TrimPrefix(name, "*")
	plain, err := demangle.ToString("_ZTS" + name)
	if err != nil {
		return name
	}
	plain = strings.TrimPrefix(plain, "typeinfo name for ")
	return strings.ReplaceAll(plain, stdString, "std::string")
}
