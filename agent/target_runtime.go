package agent

import (
	"debug/elf"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	pythonProgram = regexp.MustCompile(`^python[0-9.]*(d|t|-dbg)?$`)
	pythonLibrary = regexp.MustCompile(`^libpython[0-9.]+(d|t)?\.so`)
)

// isPython knows Python's interpreter by its name, which may be that of a link to it or of
// a script that chooses a version, and programs that have it as a library by what they are linked with.
func isPython(path, file string, f *elf.File) bool {
	names := []string{path, file}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		names = append(names, real)
	}
	if slices.ContainsFunc(names, func(name string) bool { return pythonProgram.MatchString(filepath.Base(name)) }) {
		return true
	}
	needed, err := f.ImportedLibraries()
	return err == nil && slices.ContainsFunc(needed, pythonLibrary.MatchString)
}

// isGo: the section that debug/buildinfo reads. Stripping does not remove it.
func isGo(f *elf.File) bool { return f.Section(".go.buildinfo") != nil }

// IsGoProgram reports whether a file is a program that was built by Go's compiler. What
// cannot be read is none.
func IsGoProgram(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return isGo(f)
}

// IsPythonFile reports whether a file is, by its name, Python's interpreter or the library that has it.
func IsPythonFile(path string) bool {
	name := filepath.Base(path)
	return pythonProgram.MatchString(name) || pythonLibrary.MatchString(name)
}

// MallocReplaces reports whether an entry of an environment has Python take its objects from malloc.
func MallocReplaces(entry string) bool {
	value, found := strings.CutPrefix(entry, pythonVariable+"=")
	return found && (value == "malloc" || value == "malloc_debug")
}

// pythonVariable chooses Python's allocator. Its own takes whole arenas from malloc,
// so that an overrun or a use after free of an object in one is not seen by the agent
// (docs.python.org, "PYTHONMALLOC").
const pythonVariable = "PYTHONMALLOC"

// Environ returns environ with what the program needs to be guarded: PYTHONMALLOC=malloc
// for Python. What the user has set, to nothing as well, is kept.
func (t *Target) Environ(environ []string) []string {
	set := func(entry string) bool { return strings.HasPrefix(entry, pythonVariable+"=") }
	if !t.Python || slices.ContainsFunc(environ, set) {
		return environ
	}
	return append(slices.Clone(environ), pythonVariable+"=malloc")
}
