package evidence

import "strings"

// ShortName is a demangled function name without its parameters, what follows
// them, and the compiler's clone suffix, as a debugger shows it in a stack:
// "ns::f<int>" for "ns::f<int>(char const*) const [clone .cold]".
func ShortName(function string) string {
	name := function
	if i := strings.Index(name, " [clone "); i > 0 {
		name = name[:i]
	}
	for _, suffix := range []string{" const", " volatile", " &&", " &", " noexcept"} {
		name = strings.TrimSuffix(name, suffix)
	}
	if !strings.HasSuffix(name, ")") {
		return name
	}
	open := matchingParenthesis(name)
	switch {
	case open <= 0:
		return name
	case strings.HasSuffix(name[:open], "operator") && name[open:] == "()":
		return name // "x::operator()" without parameters
	case strings.HasSuffix(name, "(anonymous namespace)"):
		return name
	}
	return strings.TrimSpace(name[:open])
}

// matchingParenthesis returns the index of the parenthesis that the last byte
// closes, -1 if there is none.
func matchingParenthesis(name string) int {
	depth := 0
	for i := len(name) - 1; i >= 0; i-- {
		switch name[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
