package failure

import (
	"strings"

	"github.com/ianlancetaylor/demangle"
)

// canonicalName is a function's name as this package's rules know it:
// demangled even when the user wants linkage names, without parameters and
// without the aliases that glibc gives its own functions.
func canonicalName(name string) string {
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

// plainName is canonicalName without parameters, for names that were
// demangled with them.
func plainName(name string) string {
	name = canonicalName(name)
	if i := strings.IndexByte(name, '('); i > 0 && !strings.HasPrefix(name, "(anonymous") {
		name = name[:i]
	}
	return name
}

// stdString is what std::string is an abbreviation of.
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
