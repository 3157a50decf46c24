package wording

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// LongestName is the length in bytes to which Name cuts.
const LongestName = 1 << 14

// Name is a name that another program chose, such as a symbol's or a file's, fit for print:
// bytes that could control a terminal are escaped, and a long name is cut. Unlike Printable
// it keeps what can be read, in any script.
func Name(name string) string {
	cut := false
	if len(name) > LongestName {
		name, cut = name[:LongestName], true
		for len(name) > 0 && !utf8.ValidString(name[len(name)-min(len(name), utf8.UTFMax):]) {
			r, size := utf8.DecodeLastRuneInString(name)
			if r != utf8.RuneError || size != 1 {
				break
			}
			name = name[:len(name)-1]
		}
	}
	plain := true
	for _, r := range name {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			plain = false
			break
		}
	}
	if !plain {
		name = escaped(name)
	}
	if cut {
		name += "…"
	}
	return name
}

func escaped(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		switch {
		case r == utf8.RuneError && size == 1 || r < 0x80 && !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\x%02x`, name[i])
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(name[i : i+size])
		}
		i += size
	}
	return b.String()
}
