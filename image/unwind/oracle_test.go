package unwind_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/internal/crashtest"
)

func TestMain(m *testing.M) { crashtest.Main(m) }

// oracleLimit bounds the frames compared with gdb for one thread.
const oracleLimit = 300

type gdbFrame struct {
	Kind    string `json:"kind"`
	PC      uint64 `json:"pc"`
	Name    string `json:"name"`
	Linkage string `json:"linkage"`
	Debug   bool   `json:"debug"`
	// File is as the compiler recorded it, Path with its directory.
	File string `json:"file"`
	Path string `json:"path"`
	Line int    `json:"line"`
}

type gdbThread struct {
	TID     int        `json:"tid"`
	Frames  []gdbFrame `json:"frames"`
	Stopped string     `json:"stopped"`
}

// TestAgainstGDB compares every frame of every thread of every fixture's core
// with gdb's: kind, pc, function, file and line.
func TestAgainstGDB(t *testing.T) {
	if _, err := exec.LookPath("gdb"); err != nil {
		t.Skip((&crashtest.UnsupportedError{What: "gdb is not installed"}).Error())
	}
	for _, f := range crashtest.Fixtures(t) {
		for _, v := range f.Variants() {
			t.Run(f.Name+"/"+v.Name, func(t *testing.T) {
				t.Parallel()
				compareWithGDB(t, f.Crash(t, v))
			})
		}
	}
}

func compareWithGDB(t *testing.T, c crashtest.Crash) {
	p, err := image.OpenCore(c.Core, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	u := unwind.New(p)
	theirs := slices.DeleteFunc(gdbStacks(t, c), func(g gdbThread) bool {
		// The core of a vfork child names its parent without registers.
		return len(g.Frames) == 0
	})
	if len(theirs) != len(p.Threads) {
		t.Errorf("%d threads, gdb has %d", len(p.Threads), len(theirs))
	}
	seen := false
	for _, g := range theirs {
		thread := threadByTID(p, g.TID)
		if thread == nil {
			t.Errorf("thread %d of gdb is missing", g.TID)
			continue
		}
		s := u.Walk(thread, oracleLimit)
		u.Symbolize(s.Frames)
		compareStack(t, g, &s, differs[c.Fixture.Name])
		for i := range s.Frames {
			seen = seen || wanted(&s.Frames[i], c.Fixture)
		}
	}
	if !seen {
		t.Errorf("no frame at %s:%d", c.Fixture.Source, c.Fixture.Want.Line)
	}
}

// knownDifference is a case in which gdb is wrong or gives up, and the reason.
type knownDifference struct {
	// after is the function whose callers may differ; reach, if set, the one
	// that our stack must reach.
	after, reach string
	reason       string
}

// differs holds the known differences by fixture. Frames up to the innermost
// one of the function after are compared all the same.
var differs = map[string]knownDifference{
	"no_cfi": {"through_assembler", "_start",
		"gdb takes the register pushed by a function without CFI for its return address"},
	"stack_smashing": {"main", "",
		"main's saved rbp is overwritten: gdb stops at the unreadable frame address, ours scans for the return address"},
}

func wanted(f *unwind.Frame, fixture *crashtest.Fixture) bool {
	for _, c := range f.Calls {
		if fixture.Want.At(c.Site.Line) && filepath.Base(c.Site.File) == filepath.Base(fixture.Source) {
			return true
		}
	}
	return false
}

func threadByTID(p *image.Process, tid int) *image.Thread {
	for i := range p.Threads {
		if p.Threads[i].Ref.TID == tid {
			return &p.Threads[i]
		}
	}
	return nil
}

func gdbStacks(t *testing.T, c crashtest.Crash) []gdbThread {
	t.Helper()
	script, err := filepath.Abs("testdata/stacks.py")
	if err != nil {
		t.Fatal(err)
	}
	output := filepath.Join(t.TempDir(), "stacks.json")
	cmd := exec.Command("gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-x", script, c.Exe, c.Core)
	cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS=", "STACKS_OUTPUT="+output, fmt.Sprintf("STACKS_LIMIT=%d", oracleLimit))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("gdb: %v\n%s", err, out)
	}
	data, err := os.ReadFile(output)
	if err != nil {
		t.Fatalf("gdb wrote nothing: %v\n%s", err, out)
	}
	var threads []gdbThread
	if err := json.Unmarshal(data, &threads); err != nil {
		t.Fatal(err)
	}
	return threads
}

// ourFrame is a frame as gdb counts them, inlined ones included.
type ourFrame struct {
	kind  evidence.FrameKind
	trust evidence.Trust
	site  evidence.Site
}

func flatten(s *unwind.Stack) []ourFrame {
	var list []ourFrame
	for i := range s.Frames {
		f := &s.Frames[i]
		for _, c := range f.Calls {
			kind := f.Kind
			if c.Inlined {
				kind = evidence.Inlined
			}
			list = append(list, ourFrame{kind, f.Trust, c.Site})
		}
		for _, tail := range f.TailCalls {
			// gdb has one frame of the innermost function, whatever it was inlined into
			list = append(list, ourFrame{evidence.TailCall, evidence.TrustCallSites, tail.Calls[0].Site})
		}
	}
	return list
}

func compareStack(t *testing.T, g gdbThread, s *unwind.Stack, known knownDifference) {
	t.Helper()
	ours := flatten(s)
	var theirs []gdbFrame
	theirs = append(theirs, g.Frames...)
	if len(ours) > oracleLimit || len(theirs) == oracleLimit || len(g.Frames) == oracleLimit {
		n := min(len(ours), len(theirs))
		ours, theirs = ours[:n], theirs[:n]
	}
	if known.after != "" {
		if known.reach != "" && ours[len(ours)-1].site.Function != known.reach {
			t.Errorf("thread %d: the stack does not reach %s: %s", g.TID, known.reach, s.Stopped)
		}
		n := slices.IndexFunc(theirs, func(f gdbFrame) bool { return f.Name == known.after }) + 1
		ours, theirs = ours[:min(n, len(ours))], theirs[:n]
	}
	problem := ""
	for i := range min(len(ours), len(theirs)) {
		if d := difference(&ours[i], &theirs[i]); d != "" {
			problem = fmt.Sprintf("frame %d: %s", i, d)
			break
		}
	}
	if problem == "" && len(ours) != len(theirs) {
		problem = fmt.Sprintf("%d frames, gdb has %d", len(ours), len(theirs))
	}
	if problem != "" {
		t.Errorf("thread %d: %s\n%s", g.TID, problem, sideBySide(ours, theirs, s.Stopped, g.Stopped))
	}
}

// difference says how our frame differs from gdb's; "" if it does not.
func difference(o *ourFrame, g *gdbFrame) string {
	switch {
	case string(o.kind) != g.Kind:
		return fmt.Sprintf("kind %s, gdb has %s", o.kind, g.Kind)
	case o.kind != evidence.Inlined && uint64(o.site.PC) != g.PC:
		return fmt.Sprintf("pc %v, gdb has %#x", o.site.PC, g.PC)
	case !sameFunction(&o.site, g):
		return fmt.Sprintf("function %q (%s), gdb has %q (%s)", o.site.Function, o.site.LinkageName, g.Name, g.Linkage)
	case !sameFile(o.site.File, g.File) && !sameFile(o.site.File, g.Path):
		return fmt.Sprintf("file %q, gdb has %q (%q)", o.site.File, g.File, g.Path)
	case o.site.Line != g.Line:
		return fmt.Sprintf("line %d, gdb has %d", o.site.Line, g.Line)
	}
	return ""
}

// sameFunction compares linkage names if both have one, otherwise the demangled
// names without their parameters, which gdb omits.
func sameFunction(o *evidence.Site, g *gdbFrame) bool {
	if o.LinkageName != "" && g.Linkage != "" && o.LinkageName == g.Linkage {
		return true
	}
	return bareName(o.Function) == bareName(g.Name)
}

func bareName(name string) string {
	name, _, _ = strings.Cut(name, "@")
	depth := 0
	for i, c := range name {
		switch {
		case c == '<':
			depth++
		case c == '>':
			depth--
		case c == '(' && depth == 0 && i > 0 && !strings.HasPrefix(name[i:], "(anonymous namespace)"):
			return name[:i]
		}
	}
	return name
}

// sameFile compares paths that may have been made absolute by one side only.
func sameFile(ours, theirs string) bool {
	ours, theirs = filepath.Clean(ours), filepath.Clean(theirs)
	return ours == theirs || strings.HasSuffix(ours, "/"+theirs)
}

func sideBySide(ours []ourFrame, theirs []gdbFrame, stopped, gdbStopped string) string {
	var b strings.Builder
	for i := range min(max(len(ours), len(theirs)), 40) {
		if i < len(ours) {
			o := ours[i]
			fmt.Fprintf(&b, "  %2d ours %-8s %-13s %v %s %s:%d\n", i, o.kind, o.trust, o.site.PC, o.site.Function, o.site.File, o.site.Line)
		}
		if i < len(theirs) {
			g := theirs[i]
			fmt.Fprintf(&b, "  %2d gdb  %-8s %-13s %#x %s %s:%d\n", i, g.Kind, "", g.PC, g.Name, g.File, g.Line)
		}
	}
	fmt.Fprintf(&b, "  ours stopped: %q; gdb: %q", stopped, gdbStopped)
	return b.String()
}
