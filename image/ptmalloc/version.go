package ptmalloc

import (
	"bytes"
	"path/filepath"
	"strconv"
	"strings"

	"diagnose/image"
)

// Version is the number after the point of a version of glibc: 36 for 2.36; 0 when it is
// not known.
type Version int

// The first versions with a change of the heap.
const (
	firstSafeLinking Version = 32 // links of singly linked lists are combined with their address
	mostConstants            = 4 << 20
)

// libc is the object that has malloc: the C library, or a static executable. nil when
// there is none, or several.
func libc(p *image.Process) *image.Module {
	var found *image.Module
	for _, m := range p.Modules {
		if !libcName(filepath.Base(m.Path)) {
			continue
		}
		if found != nil {
			return nil
		}
		found = m
	}
	if found == nil && !dynamic(p) {
		return p.Exe
	}
	return found
}

// dynamic reports whether the process has a dynamic linker.
func dynamic(p *image.Process) bool {
	for _, m := range p.Modules {
		if name := filepath.Base(m.Path); strings.HasPrefix(name, "ld-") || strings.HasPrefix(name, "ld.so") {
			return true
		}
	}
	return false
}

// libcName reports whether a file is named as a C library is: libc.so.6, libc-2.31.so.
func libcName(name string) bool {
	return name == "libc.so.6" || strings.HasPrefix(name, "libc-2.") && strings.HasSuffix(name, ".so")
}

// versionOf reads the version from the text that the library prints when it is run
// (csu/version.c).
func versionOf(m *image.Module) Version {
	if m.Object == nil {
		return 0
	}
	s := m.Object.Section(".rodata")
	if s == nil {
		return 0
	}
	data, err := s.Prefix(mostConstants)
	if err != nil {
		return 0
	}
	const banner, release = "GNU C Library", "release version 2."
	at := bytes.Index(data, []byte(banner))
	if at < 0 {
		return 0
	}
	data = data[at:min(at+256, len(data))]
	if at = bytes.Index(data, []byte(release)); at < 0 {
		return 0
	}
	digits := data[at+len(release):]
	end := 0
	for end < len(digits) && digits[end] >= '0' && digits[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(string(digits[:end]))
	if err != nil {
		return 0
	}
	return Version(n)
}
