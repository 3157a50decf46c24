package instrument_test

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"diagnose/agent"
	"diagnose/internal/instrument"
	"diagnose/replay/recorder"
)

func TestMain(m *testing.M) {
	recorder.Init()
	os.Exit(m.Run())
}

const programs = "../testdata/instrument"

// compilers are those of this machine, C and C++.
func compilers(t *testing.T) map[string][2]string {
	t.Helper()
	all := map[string][2]string{"gcc": {"gcc", "g++"}, "clang": {"clang", "clang++"}}
	for name, both := range all {
		for _, c := range both {
			if _, err := exec.LookPath(c); err != nil {
				delete(all, name)
			}
		}
	}
	if len(all) == 0 {
		t.Skip("neither gcc nor clang is installed")
	}
	return all
}

func language(source string) instrument.Language {
	if filepath.Ext(source) == ".cc" {
		return instrument.CXX
	}
	return instrument.C
}

// flags are what a program's comment asks for.
func flags(t *testing.T, source string) []string {
	t.Helper()
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if list, found := strings.CutPrefix(line, "// FLAGS: "); found {
			return strings.Fields(list)
		}
	}
	return nil
}

// wrap returns what diagnose cc would execute.
func wrap(t *testing.T, compiler string, l instrument.Language, args ...string) *exec.Cmd {
	t.Helper()
	c, err := instrument.Wrap(t.Context(), instrument.Options{Language: l, Compiler: compiler, Args: args,
		Runtime: agent.Runtime, RuntimeName: agent.RuntimeName})
	var unsupported *agent.UnsupportedError
	if errors.As(err, &unsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &exec.Cmd{Path: c.Path, Args: c.Args}
}

func run(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", c, err, out)
	}
	return string(out)
}

// instrumented compiles a program for its points.
func instrumented(t *testing.T, compiler, source string, more ...string) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(source), filepath.Ext(source)))
	run(t, wrap(t, compiler, language(source), slices.Concat([]string{source, "-o", exe, "-pthread"}, more, flags(t, source))...))
	return exe
}

// TestProgramsAreTheSame compares what programs that use every kind of access
// say with what they say without instrumentation.
func TestProgramsAreTheSame(t *testing.T) {
	for name, both := range compilers(t) {
		for _, how := range [][]string{{"-O2"}, {"-O0", "-no-pie"}} {
			for _, file := range []string{"atomics.c", "access.c", "objects.cc"} {
				t.Run(file+" "+name+" "+strings.Join(how, " "), func(t *testing.T) {
					t.Parallel()
					source := filepath.Join(programs, file)
					compiler := both[language(source)]
					native := filepath.Join(t.TempDir(), "native")
					run(t, exec.Command(compiler, slices.Concat([]string{source, "-o", native}, how, flags(t, source))...))
					ours := instrumented(t, compiler, source, how...)
					if got, want := run(t, exec.Command(ours)), run(t, exec.Command(native)); got != want {
						t.Errorf("it says %q, and %q without instrumentation", got, want)
					}
					if n := len(symbols(t, ours, "__tsan_")); n < 100 {
						t.Errorf("%d functions of the runtime", n)
					}
				})
			}
		}
	}
}

// symbols are those that a file defines, of its table of all symbols.
func symbols(t *testing.T, path string, prefixes ...string) []string {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	table, err := f.Symbols()
	if errors.Is(err, elf.ErrNoSymbols) {
		table, err = f.DynamicSymbols()
	}
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range table {
		if s.Section != elf.SHN_UNDEF && slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s.Name, p) }) {
			names = append(names, s.Name)
		}
	}
	return names
}

// notOurs are of libtsan alone: what it calls, and its own tests'.
var notOurs = []string{"__tsan_default_", "__tsan_on_report", "__tsan_symbolize_external", "__tsan_test", "__tsan_resume", "__tsan_stack_initialization",
	"__tsan_tls_initialization", "__tsan_thread_start_func", "__tsan_trace_switch", "__tsan_report_race"}

// TestEveryEntryExists holds the runtime to what gcc's and clang's own have.
func TestEveryEntryExists(t *testing.T) {
	dir, err := agent.Runtime(t.Context())
	if err != nil {
		t.Skip(err)
	}
	have := symbols(t, filepath.Join(dir, agent.RuntimeName), "__tsan_", "Annotate", "WTFAnnotate")
	want := map[string]string{}
	for name, both := range compilers(t) {
		for _, file := range []string{"libtsan.so", "libclang_rt.tsan-x86_64.a.syms"} {
			out, err := exec.Command(both[0], "-print-file-name="+file).Output()
			if path := strings.TrimSpace(string(out)); err == nil && filepath.IsAbs(path) {
				for _, symbol := range exported(t, path) {
					want[symbol] = name
				}
			}
		}
	}
	if len(want) < 100 {
		t.Skipf("no libtsan to compare with: %d names", len(want))
	}
	for symbol, name := range want {
		ours := slices.Contains(have, symbol) || strings.Contains(symbol, ".") // a part of a function
		if !ours && !slices.ContainsFunc(notOurs, func(p string) bool { return strings.HasPrefix(symbol, p) }) {
			t.Errorf("%s of %s's libtsan is missing", symbol, name)
		}
	}
}

// exported are the names of a shared library, or of a list as clang has beside an
// archive.
func exported(t *testing.T, path string) []string {
	t.Helper()
	prefixes := []string{"__tsan_", "Annotate", "WTFAnnotate"}
	if filepath.Ext(path) != ".syms" {
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			path = resolved
		}
		return symbols(t, path, prefixes...)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		name := strings.Trim(s.Text(), " ;{}")
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) && !strings.Contains(name, "*") }) {
			names = append(names, name)
		}
	}
	return names
}

// TestLinkedTwice links as libtool does, which repeats what the compiler linked.
func TestLinkedTwice(t *testing.T) {
	for name, both := range compilers(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			object, library := filepath.Join(dir, "plugin.o"), filepath.Join(dir, "libplugin.so")
			run(t, wrap(t, both[0], instrument.C, "-fPIC", "-c", filepath.Join(programs, "plugin.c"), "-o", object))
			runtime, err := agent.Runtime(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			run(t, wrap(t, both[0], instrument.C, "-shared", "-nostdlib", object, filepath.Join(runtime, agent.RuntimeName), "-lc", "-Wl,-z,defs", "-o", library))
			f, err := elf.Open(library)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			dynamic, err := f.DynamicSymbols()
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range dynamic {
				if strings.HasPrefix(s.Name, "__tsan_") {
					t.Errorf("%s is seen outside of the library", s.Name)
				}
			}
		})
	}
}
