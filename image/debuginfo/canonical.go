package debuginfo

import "strings"

// canonical spells the integer types in a C++ name as the demangler does
// ("unsigned long" for "long unsigned int"), so that a function without a
// linkage name compares equal to one with. Other differences are left alone.
// gdb cannot parse names with a lambda, and leaves them unchanged.
func canonical(name string) string {
	if !strings.Contains(name, "int") && !strings.Contains(name, "unsigned") || strings.Contains(name, "<lambda") {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		if !isLetter(name[i]) {
			b.WriteByte(name[i])
			i++
			continue
		}
		end := integerWords(name, i)
		if end == i {
			for end < len(name) && isWord(name[end]) {
				end++
			}
			b.WriteString(name[i:end])
		} else {
			b.WriteString(canonicalInteger(name[i:end]))
		}
		i = end
	}
	return b.String()
}

func isWord(c byte) bool { return isLetter(c) || c >= '0' && c <= '9' || c == '$' }

// integerWords returns the end of the words of an integer type at i; i when
// there is none.
func integerWords(name string, i int) int {
	end := i
	for at := i; at < len(name); {
		word := at
		for word < len(name) && isWord(name[word]) {
			word++
		}
		switch name[at:word] {
		case "long", "short", "int", "unsigned", "signed", "char":
			end = word
		default:
			return end
		}
		if word == len(name) || name[word] != ' ' {
			return end
		}
		at = word + 1
	}
	return end
}

func canonicalInteger(words string) string {
	count := map[string]int{}
	list := strings.Fields(words)
	for _, w := range list {
		count[w]++
	}
	if len(list) == 1 || count["long"] > 2 {
		return words
	}
	var out []string
	switch {
	case count["unsigned"] > 0:
		out = append(out, "unsigned")
	case count["signed"] > 0 && count["char"] > 0:
		out = append(out, "signed")
	}
	for range count["long"] {
		out = append(out, "long")
	}
	switch {
	case count["char"] > 0:
		out = append(out, "char")
	case count["short"] > 0:
		out = append(out, "short")
	case count["long"] == 0:
		out = append(out, "int")
	}
	return strings.Join(out, " ")
}
