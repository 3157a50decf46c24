package agent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"diagnose/agent"
)

// The allocator: its arithmetic, sequences of calls against a model, and
// threads that work on each other's objects.

// allocatorLibrary builds the agent with one compiler.
func allocatorLibrary(tb testing.TB, compiler string) string {
	tb.Helper()
	needsCompiler(tb, compiler)
	built, err := agent.Build(tb.Context(), agent.BuildOptions{Compiler: compiler, Places: []string{tb.TempDir()}})
	if err != nil {
		tb.Fatal(err)
	}
	return built.Path
}

func needsCompiler(tb testing.TB, compiler string) {
	tb.Helper()
	if _, err := exec.LookPath(compiler); err != nil {
		tb.Skip(&agent.UnsupportedError{What: compiler + " is not installed"})
	}
}

// allocatorProgram compiles a program of src/test.
func allocatorProgram(tb testing.TB, compiler, source string, flags ...string) string {
	tb.Helper()
	needsCompiler(tb, compiler)
	out := filepath.Join(tb.TempDir(), "program")
	args := append([]string{
		"-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fno-builtin", "-pthread", "-iquote", "src",
		"-o", out, filepath.Join("src/test", source),
	}, flags...)
	if text, err := exec.CommandContext(tb.Context(), compiler, args...).CombinedOutput(); err != nil {
		tb.Fatalf("%s %q: %v\n%s", compiler, args, err, text)
	}
	return out
}

// allocatorRun runs a program, under the agent if library is not empty, and
// returns what it printed and its exit status, -1 if a signal ended it.
func allocatorRun(tb testing.TB, library string, input []byte, args ...string) (out, problems string, status int) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "DIAGNOSE_OPTIONS=")
	if library != "" {
		cmd.Env = append(cmd.Env, "LD_PRELOAD="+library)
	}
	cmd.Dir = tb.TempDir() // for a core
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		tb.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// renamed are options that give the interposed functions other names: a
// sanitizer's runtime calls them before it has set up its shadow memory.
func renamed() (flags []string) {
	for name := range strings.FieldsSeq("malloc free cfree calloc realloc reallocarray memalign aligned_alloc posix_memalign " +
		"valloc pvalloc malloc_usable_size malloc_trim mallinfo mallinfo2 malloc_stats mallopt dlopen dlclose") {
		flags = append(flags, "-D"+name+"=unit_"+name)
	}
	return flags
}

func TestAllocatorUnits(t *testing.T) {
	address := append(renamed(), "-fsanitize=address")
	variants := map[string][]string{
		"gcc": nil, "clang": nil,
		"gcc undefined":   {"-fsanitize=undefined", "-fno-sanitize-recover"},
		"clang undefined": {"-fsanitize=undefined", "-fno-sanitize-recover"},
		"gcc address":     address,
		"clang address":   address,
	}
	for name, flags := range variants {
		t.Run(name, func(t *testing.T) {
			compiler, _, _ := strings.Cut(name, " ")
			program := allocatorProgram(t, compiler, "units.c", append(flags, "-ldl")...)
			out, problems, status := allocatorRun(t, "", nil, program)
			var checks int
			if n, _ := fmt.Sscanf(out, "units: %d checks\n", &checks); n != 1 || checks < 1000000 || status != 0 {
				t.Errorf("status %d: %s%s", status, out, problems)
			}
		})
	}
}

// stressTime is how long the threads work: DIAGNOSE_STRESS says it, as CI does.
func stressTime(t *testing.T) time.Duration {
	text := os.Getenv("DIAGNOSE_STRESS")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// stress runs threads under the agent until the time is up, at least once.
func stress(t *testing.T, library, options, program string, lasting time.Duration) {
	t.Helper()
	const threads, rounds, steps = 8, 5, 20000
	want := fmt.Sprintf("stress: %d steps\n", threads*rounds*steps)
	for end := time.Now().Add(lasting); ; {
		got := supportStart(t, library, options, program, fmt.Sprint(threads), fmt.Sprint(rounds), "exact")
		got.check(t, 0)
		if got.stdout != want || got.stderr != "" {
			t.Fatalf("%q: %s%s", options, got.stdout, got.stderr)
		}
		if time.Now().After(end) {
			return
		}
	}
}

func TestAllocatorStress(t *testing.T) {
	lasting := stressTime(t)
	for _, x := range []struct {
		compiler, options string
		share             time.Duration // of the time, in percent
	}{
		{"gcc", "", 50}, {"gcc", "check_interval_ms=10:quarantine_mb=4", 40}, {"clang", "", 10},
	} {
		t.Run(x.compiler+" "+x.options, func(t *testing.T) {
			library := supportAgent(t, x.compiler)
			program := allocatorProgram(t, x.compiler, "stress.c")
			if _, problems, status := allocatorRun(t, "", nil, program, "1", "1", "exact"); status != 3 {
				t.Errorf("status %d without the agent: %s", status, problems)
			}
			stress(t, library, x.options, program, lasting*x.share/100)
		})
	}
}

// checkCalls runs a sequence of calls under the agent.
func checkCalls(tb testing.TB, library, program string, calls []byte) {
	tb.Helper()
	out, problems, status := allocatorRun(tb, library, calls, program, "exact")
	want := fmt.Sprintf("model: %d calls\n", len(calls)/4)
	if out != want || problems != "" || status != 0 {
		tb.Errorf("status %d: %s%s", status, out, problems)
	}
}

func randomCalls(n int, seed uint64) []byte {
	random := rand.New(rand.NewPCG(seed, 3))
	calls := make([]byte, 4*n)
	for i := range calls {
		calls[i] = byte(random.Uint32())
	}
	return calls
}

func TestAllocatorModel(t *testing.T) {
	for _, compiler := range []string{"gcc", "clang"} {
		t.Run(compiler, func(t *testing.T) {
			library := allocatorLibrary(t, compiler)
			program := allocatorProgram(t, compiler, "model.c")
			calls := randomCalls(3000, 1)
			if _, problems, status := allocatorRun(t, "", calls, program, "exact"); status != 3 {
				t.Errorf("status %d without the agent: %s", status, problems)
			}
			checkCalls(t, library, program, calls)
			for seed := range uint64(4) {
				checkCalls(t, library, program, randomCalls(3000, 2+seed))
			}
		})
	}
}

// FuzzAllocator looks for a sequence of calls that the model answers
// otherwise.
func FuzzAllocator(f *testing.F) {
	library, program := allocatorLibrary(f, "gcc"), allocatorProgram(f, "gcc", "model.c")
	f.Add([]byte{})
	for n := range 4 {
		f.Add(randomCalls(10<<n, uint64(n)))
	}
	f.Fuzz(func(t *testing.T, calls []byte) {
		checkCalls(t, library, program, calls)
	})
}
