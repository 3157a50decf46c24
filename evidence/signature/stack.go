package signature

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"diagnose/evidence"
)

// mostFrames bounds the frames of a stack that count. Frames farther out are callers,
// which differ for one defect.
const mostFrames = 5

// stackLines are the program, how it ended, and the innermost frames of the
// program's own code.
func stackLines(c *evidence.Case) []string {
	lines := []string{"program " + oneLine(base(c.Program.Exe, c.Program.Command)), "ended " + oneLine(ending(&c.Failure))}
	last := ""
	for _, f := range ownFrames(c) {
		line := oneLine(frameName(&f.Site))
		if line == last {
			continue // however deep a recursion went
		}
		if len(lines) == 2+mostFrames {
			break
		}
		lines, last = append(lines, "in "+line), line
	}
	return lines
}

func base(names ...string) string {
	for _, n := range names {
		if n != "" {
			return path.Base(n)
		}
	}
	return "unknown"
}

// ending is the signal, or the kind of a failure without one: which kind a signal
// stands for depends on where a bad pointer led.
func ending(f *evidence.Failure) string {
	switch {
	case f.Signal != nil && f.Signal.Name != "":
		return f.Signal.Name
	case f.Signal != nil && f.Signal.Number != 0:
		return fmt.Sprintf("signal %d", f.Signal.Number)
	case f.Kind == evidence.ExitStatus:
		return fmt.Sprintf("status %d", f.Status)
	}
	return string(f.Kind)
}

// ownFrames are the frames of the failing thread from the reported place of the failure
// outward: the inner ones raise, abort and panic.
func ownFrames(c *evidence.Case) []evidence.Frame {
	i := slices.IndexFunc(c.Stacks, func(g evidence.ThreadGroup) bool { return g.Failing })
	if i < 0 {
		return siteAlone(c)
	}
	frames := c.Stacks[i].Stack.Frames
	if site := c.Failure.Site; site != nil {
		from := slices.IndexFunc(frames, func(f evidence.Frame) bool { return f.Site.PC == site.PC && f.Site.Function == site.Function })
		if from < 0 {
			return siteAlone(c)
		}
		frames = frames[from:]
	}
	own := slices.DeleteFunc(separate(frames), func(f evidence.Frame) bool {
		return f.Kind == evidence.SignalFrame || f.Trust == evidence.TrustScan || ofLibrary(&f.Site)
	})
	if len(own) == 0 {
		return frames[:min(len(frames), 1)]
	}
	return own
}

// separate gives each function that a tail call's was inlined into a frame of its own, which it has
// in a build without inlining.
func separate(frames []evidence.Frame) []evidence.Frame {
	var list []evidence.Frame
	for _, f := range frames {
		list = append(list, f)
		for _, s := range f.InlinedInto {
			list = append(list, evidence.Frame{Kind: f.Kind, Trust: f.Trust, Site: s})
		}
	}
	return list
}

func siteAlone(c *evidence.Case) []evidence.Frame {
	if c.Failure.Site == nil {
		return nil
	}
	return []evidence.Frame{{Site: *c.Failure.Site}}
}

// frameName is the function, or where none is known the place in its object. The
// object's own name counts with both: one function name is in many libraries.
func frameName(s *evidence.Site) string {
	switch {
	case s.Function != "":
		return base(s.Module) + " " + functionName(s.Function)
	case s.Module != "":
		return fmt.Sprintf("%s +%v", base(s.Module), s.ModuleOffset)
	}
	return "no object"
}

// functionName is a function's without what compilers append to it.
func functionName(name string) string {
	name = evidence.ShortName(name)
	if i := strings.LastIndex(name, "::h"); i > 0 && len(name) == i+19 && strings.Trim(name[i+3:], "0123456789abcdef") == "" {
		name = name[:i] // the hash of Rust's legacy mangling
	}
	if i := strings.IndexByte(name, '@'); i > 0 {
		name = name[:i]
	}
	for _, mark := range []string{".constprop.", ".isra.", ".part.", ".cold", ".llvm.", ".lto_priv."} {
		if i := strings.Index(name, mark); i > 0 {
			name = name[:i]
		}
	}
	return strings.TrimPrefix(name, "__GI_")
}

// libraries are objects that every program has, by how their names begin: their
// inside differs from one machine to the next.
var libraries = []string{
	"libc.so", "libc-2", "libm.so", "libpthread", "ld-linux", "ld-2", "ld-musl", "linux-vdso", "[vdso]",
	"libstdc++.so", "libc++", "libgcc_s", "libunwind.so", "libasan.", "libubsan.", "libtsan.", "libdiagnose",
}

// libraryNames are functions that start programs and threads, and the name spaces of
// standard libraries, whose templates are inlined or not as the compiler likes.
var libraryNames = []string{
	"_start", "__libc_start", "start_thread", "clone3", "__clone", "execute_native_thread_routine",
	"std::", "core::", "alloc::", "__gnu_cxx::", "__cxxabiv1::", "<std::", "<core::", "<alloc::", "void std::", "bool std::",
	"__rust_", "rust_", "__rustc", "_rust_", "lang_start",
}

func ofLibrary(s *evidence.Site) bool {
	return hasPrefix(path.Base(s.Module), libraries) && s.Module != "" || s.Function != "" && hasPrefix(s.Function, libraryNames)
}

func hasPrefix(text string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(text, p) })
}
