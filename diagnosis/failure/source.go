package failure

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"diagnose/evidence"
)

// SourcePaths says where to look for source files.
type SourcePaths struct {
	// Sysroot is prefixed to absolute paths; "" is this machine's root.
	Sysroot string
	// Dirs are searched for the file's name below them, the longest suffix of its path first, if
	// the file is not where the compiler read it.
	Dirs []string
	// Object is the object's file, whose time tells whether the source is
	// newer; "" leaves Stale unset.
	Object string
}

const (
	maxSource     = 16 << 20
	maxSourceLine = 4096
)

// SourceLines reads the source around a site, around lines before and after it. It returns nil if
// the site has no line or its file does not exist, is no regular file, is too large, or has no such
// line.
func SourceLines(site evidence.Site, around int, paths SourcePaths) *evidence.Source {
	if site.File == "" || site.Line <= 0 {
		return nil
	}
	for _, name := range candidates(site.File, paths) {
		if src := readSource(name, site.Line, around); src != nil {
			src.Stale = newer(name, paths.Object)
			return src
		}
	}
	return nil
}

func candidates(file string, paths SourcePaths) []string {
	file = filepath.Clean(file)
	var out []string
	if filepath.IsAbs(file) {
		out = append(out, filepath.Join(paths.Sysroot, file))
	}
	parts := strings.Split(strings.TrimPrefix(file, "/"), "/")
	for _, dir := range paths.Dirs {
		for i := range parts {
			if parts[i] != ".." {
				out = append(out, filepath.Join(dir, filepath.Join(parts[i:]...)))
			}
		}
	}
	return out
}

func readSource(name string, line, around int) *evidence.Source {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxSource {
		return nil
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || !isSource(f) {
		return nil
	}
	src := &evidence.Source{File: name}
	scanner := bufio.NewScanner(io.LimitReader(f, maxSource))
	scanner.Buffer(nil, maxSource)
	for n := 1; scanner.Scan() && n <= line+around; n++ {
		if n >= line-around {
			src.Lines = append(src.Lines, evidence.SourceLine{Number: n, Text: sourceText(scanner.Bytes()), Failed: n == line})
		}
	}
	if len(src.Lines) == 0 || src.Lines[len(src.Lines)-1].Number < line {
		return nil
	}
	return src
}

// sourceEndings are the extensions of the files that compilers read.
var sourceEndings = map[string]bool{
	".c": true, ".cc": true, ".cpp": true, ".cxx": true, ".c++": true, ".cp": true, ".h": true, ".hh": true, ".hpp": true,
	".hxx": true, ".h++": true, ".inc": true, ".inl": true, ".ipp": true, ".tcc": true, ".tpp": true, ".txx": true, ".def": true,
	".rs": true, ".go": true, ".s": true, ".asm": true, ".y": true, ".yy": true, ".l": true, ".ll": true, ".m": true, ".mm": true,
	".d": true, ".zig": true, ".f": true, ".f90": true, ".cu": true, ".adb": true, ".pas": true,
}

// isSource distinguishes source code from other files by the real name of an open file, after all
// links: the maker of the debug information chose the path, and must not be able to have the
// reader's keys and passwords printed.
func isSource(f *os.File) bool {
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	return err == nil && sourceEndings[strings.ToLower(filepath.Ext(name))]
}

func sourceText(b []byte) string {
	b = bytes.TrimRight(b, "\r")
	if len(b) > maxSourceLine {
		b = b[:maxSourceLine]
	}
	if !utf8.Valid(b) {
		b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	}
	return string(b)
}

// newer reports whether the source was changed after the object was built. A second is allowed for
// file systems with coarse times.
func newer(source, object string) bool {
	s, err := os.Stat(source)
	if err != nil || object == "" {
		return false
	}
	o, err := os.Stat(object)
	return err == nil && s.ModTime().After(o.ModTime().Add(time.Second))
}
