package reports

import (
	"strings"

	"diagnose/evidence"
)

// plainNaming is for people: C++ names are written as programs write them, without the additions of
// the standard library. Values and source lines are unchanged.
var plainNaming = edits{text: plainNames, source: same[string], value: same[string], damage: same[evidence.Damage]}

// defaultArguments are template arguments that a program seldom writes.
var defaultArguments = []string{", std::char_traits<", ", std::allocator<", ", std::less<", ", std::hash<", ", std::equal_to<", ", std::default_delete<"}

var libraryNames = strings.NewReplacer(
	"std::basic_string<char>", "std::string", "std::basic_string_view<char>", "std::string_view",
	"std::basic_ostream<char>", "std::ostream", "std::basic_istream<char>", "std::istream", "> >", ">>",
)

// plainNames shortens names such as
// "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >".
func plainNames(text string) string {
	if !strings.Contains(text, "std::") {
		return text
	}
	plain := strings.NewReplacer("std::__cxx11::", "std::", "std::__1::", "std::").Replace(text)
	for _, argument := range defaultArguments {
		plain = withoutArgument(plain, argument)
	}
	if plain == text {
		return text
	}
	for before := ""; before != plain; {
		before, plain = plain, libraryNames.Replace(plain)
	}
	return plain
}

// withoutArgument leaves out each template argument with a given beginning, to the argument's end.
// An argument without an end, in a text that was cut, stays.
func withoutArgument(text, argument string) string {
	for from := 0; ; {
		i := strings.Index(text[from:], argument)
		if i < 0 {
			return text
		}
		i += from
		end := closing(text, i+len(argument))
		if end < 0 {
			from = i + len(argument)
			continue
		}
		rest := text[end:]
		if strings.HasPrefix(rest, " >") {
			rest = rest[1:]
		}
		text, from = text[:i]+rest, i
	}
}

// closing returns the index after the bracket that closes the one before from; -1 if there is none.
func closing(text string, from int) int {
	depth := 1
	for i := from; i < len(text); i++ {
		switch text[i] {
		case '<':
			depth++
		case '>':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// longestName is how many characters of a function's name are shown whole.
const longestName = 100

// shortArguments leaves out the template arguments of a long name. The report's JSON has the whole
// name.
func shortArguments(name string) string {
	if len(name) <= longestName || strings.Contains(name, "operator<") || strings.Contains(name, "operator>") || strings.Contains(name, "->") {
		return name
	}
	var b strings.Builder
	depth := 0
	for _, r := range name {
		switch {
		case r == '<':
			if depth++; depth == 1 {
				b.WriteString("<...>")
			}
		case r == '>':
			depth--
		case depth == 0:
			b.WriteRune(r)
		}
	}
	if depth != 0 || b.Len() == 0 {
		return name
	}
	return b.String()
}
