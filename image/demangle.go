package image

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ianlancetaylor/demangle"
)

const (
	// longestMangled bounds the demangler's input: its output and time may grow
	// exponentially with the substitutions. 1<<longestNamePower bounds the
	// output.
	longestMangled   = 16 << 10
	longestNamePower = 14
	longestName      = 1 << longestNamePower
)

// demangled returns the name a programmer wrote, or the name itself if it is
// not mangled. Whatever the symbol table holds, the result is printable and
// bounded.
func demangled(name string) string {
	name, version, _ := strings.Cut(name, "@")
	if version == "plt" { // not a version: package object names a stub's symbol so
		return demangled(name) + "@plt"
	}
	if len(name) > longestMangled || !mangled(name) {
		return printable(name)
	}
	text := name
	err := recovered(func() (err error) {
		text, err = demangle.ToString(name, demangle.Verbose, demangle.MaxLength(longestNamePower))
		return err
	})
	if err != nil {
		text = name
	}
	return printable(text)
}

// mangled reports the prefixes of the Itanium C++ ABI and of Rust's v0 scheme.
func mangled(name string) bool {
	return strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R") ||
		strings.HasPrefix(name, "__Z") || strings.HasPrefix(name, "_GLOBAL_")
}

// printable escapes bytes that could control a terminal, and cuts a long name.
func printable(name string) string {
	cut := false
	if len(name) > longestName {
		name, cut = name[:longestName], true
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
