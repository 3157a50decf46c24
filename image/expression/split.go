package expression

import "strings"

// Split splits a list of expressions at its commas. Those in quotes and brackets do not count. An
// empty list has no expressions; an empty part is one, which Parse refuses.
func Split(list string) []string {
	if strings.TrimSpace(list) == "" {
		return nil
	}
	var parts []string
	start, depth := 0, 0
	for i := 0; i < len(list); i++ {
		switch c := list[i]; c {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case '\'', '"':
			for i++; i < len(list) && list[i] != c; i++ {
				if list[i] == '\\' {
					i++
				}
			}
		case ',':
			if depth == 0 {
				parts = append(parts, strings.TrimSpace(list[start:i]))
				start = i + 1
			}
		}
	}
	return append(parts, strings.TrimSpace(list[start:]))
}
