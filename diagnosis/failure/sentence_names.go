package failure

import (
	"fmt"
	"path"
	"strings"

	"diagnose/evidence"
)

// siteName is how a sentence names a place: the function, or the object and
// the offset in it.
func siteName(site *evidence.Site) string {
	switch {
	case site.Function != "":
		return shortFunction(site.Function)
	case site.Module != "":
		return fmt.Sprintf("%s+%#x", path.Base(site.Module), uint64(site.ModuleOffset))
	}
	return "code at " + site.PC.String()
}

// shortFunction leaves out the parameters, and cuts the end of a name that is still too long for a
// sentence.
func shortFunction(name string) string {
	const longest = 80
	name = withoutResult(strings.ReplaceAll(evidence.ShortName(name), stdString, "std::string"))
	if len(name) > longest {
		name = withoutTemplateArguments(name)
	}
	if len(name) <= longest {
		return name
	}
	return name[:longest] + "..."
}

// withoutResult leaves out the type of the result, which the demangled names of template functions
// have.
func withoutResult(name string) string {
	depth, start := 0, 0
	for i := range len(name) {
		switch name[i] {
		case '<', '(':
			depth++
		case '>', ')':
			depth--
		case ' ':
			if depth == 0 {
				start = i + 1
			}
		}
		if depth == 0 && strings.HasPrefix(name[i:], "operator") {
			break
		}
	}
	return name[start:]
}

// withoutTemplateArguments writes "std::vector<...>::at" for the names of templates. It stops at an
// operator's own angle brackets.
func withoutTemplateArguments(name string) string {
	name, operator, isOperator := strings.Cut(name, "::operator")
	var out strings.Builder
	depth := 0
	for _, c := range name {
		switch {
		case c == '<':
			if depth++; depth == 1 {
				out.WriteString("<...>")
			}
		case c == '>':
			depth--
		case depth == 0:
			out.WriteRune(c)
		}
	}
	if isOperator {
		out.WriteString("::operator" + operator)
	}
	return out.String()
}
