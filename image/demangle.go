package image

import (
	"strings"

	"github.com/ianlancetaylor/demangle"

	"diagnose/internal/wording"
)

const (
	// longestMangled bounds the demangler's input: its output and time may grow
	// exponentially with the substitutions. 1<<longestNamePower bounds the
	// output.
	longestMangled   = 16 << 10
	longestNamePower = 14
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
		return wording.Name(name)
	}
	text := name
	err := recovered(func() (err error) {
		text, err = demangle.ToString(name, demangle.Verbose, demangle.MaxLength(longestNamePower))
		return err
	})
	if err != nil {
		text = name
	}
	return wording.Name(text)
}

// mangled reports the prefixes of the Itanium C++ ABI and of Rust's v0 scheme.
func mangled(name string) bool {
	return strings.HasPrefix(name, "_Z") || strings.HasPrefix(name, "_R") ||
		strings.HasPrefix(name, "__Z") || strings.HasPrefix(name, "_GLOBAL_")
}
