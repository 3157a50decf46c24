package unwind_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/unwind"
	"diagnose/internal/crashtest"
)

// tailVariants are the ways in which the programs of testdata/tailcall are compiled. gdb 13
// reads no DW_AT_call_pc, which is all that clang's DWARF 5 has.
var tailVariants = []struct {
	compiler, flags string
	readable        bool // by gdb
}{
	{"gcc", "-O2", true},
	{"gcc", "-O3 -gdwarf-4", true},
	{"gcc", "-O1 -foptimize-sibling-calls", true},
	{"gcc", "-O2 -fno-pie -no-pie", true},
	{"gcc", "-O2 -fno-plt -Wl,-z,now", true},
	{"gcc", "-Os -fcf-protection=full", true},
	{"clang", "-O2", false},
	{"clang", "-O3 -gdwarf-4 -ggdb", false}, // see docs/images.md: calls that clang leaves out
	{"clang", "-O2 -fno-plt", false},
}

// TestTailCalls compares the frames of programs with what their sources say, in the form
// of describeTails, and with gdb's.
func TestTailCalls(t *testing.T) {
	sources, err := filepath.Glob("testdata/tailcall/*.c*")
	if err != nil || len(sources) == 0 {
		t.Fatal(sources, err)
	}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range tailVariants {
			name := strings.ReplaceAll(v.compiler+" "+v.flags, " ", "_")
			t.Run(filepath.Base(source)+"/"+name, func(t *testing.T) {
				t.Parallel()
				checkTails(t, source, v.compiler, strings.Fields(v.flags), directive(text, "WANT"), v.readable && directive(text, "GDB") == "")
			})
		}
		if fixed := directive(text, "FIXED"); fixed != "" {
			t.Run(filepath.Base(source)+"/fixed", func(t *testing.T) {
				checkTails(t, source, "gcc", []string{"-O2", "-DFIXED"}, fixed, true)
			})
		}
	}
}

func directive(text []byte, name string) string {
	m := regexp.MustCompile(`(?m)^// ` + name + `: (.*)$`).FindSubmatch(text)
	if m == nil {
		return ""
	}
	return string(m[1])
}

func checkTails(t *testing.T, source, compiler string, flags []string, want string, readable bool) {
	if strings.HasSuffix(source, ".cc") {
		compiler = map[string]string{"gcc": "g++", "clang": "clang++"}[compiler]
	}
	path, err := filepath.Abs(source)
	if err != nil {
		t.Fatal(err)
	}
	exe := crashtest.Compile(t, crashtest.Program{Source: path, Compiler: compiler, Flags: append([]string{"-g", "-w", "-fpermissive"}, flags...)})
	core := crashtest.Core(t, exe, crashtest.Run{})
	p, err := image.OpenCore(core, image.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	u := unwind.New(p)
	s := u.Walk(&p.Threads[p.Failing], oracleLimit)
	u.Symbolize(s.Frames)
	if got := describeTails(&s); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := exec.LookPath("gdb"); err == nil && readable {
		for _, g := range gdbStacks(t, crashtest.Crash{Exe: exe, Core: core}) {
			compareStack(t, g, &s, knownDifference{})
		}
	}
}

// describeTails names the functions from the one that failed to main: those of tail calls with a
// star, and a < or > where others may be missing before or after. Of the C library only abort
// is named.
func describeTails(s *unwind.Stack) string {
	var names []string
	for i := range s.Frames {
		for _, c := range s.Frames[i].Calls {
			if name := evidence.ShortName(c.Site.Function); !strings.Contains(c.Site.Module, "libc") {
				names = append(names, name)
			} else if strings.HasSuffix(name, "abort") {
				names = append(names, "abort")
			}
		}
		for _, tail := range s.Frames[i].TailCalls {
			mark := map[evidence.Gap]string{evidence.GapInner: ">", evidence.GapOuter: "<"}[tail.Gap]
			for _, c := range tail.Calls {
				if !strings.Contains(c.Site.Module, "libc") {
					names = append(names, evidence.ShortName(c.Site.Function)+mark+"*")
				}
			}
		}
	}
	text := strings.Join(names, " ")
	text, _, _ = strings.Cut(text, " main")
	return text + " main"
}
