package agent

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestRuntimeIsBuilt(t *testing.T) {
	for _, compiler := range []string{"gcc", "clang"} {
		t.Run(compiler, func(t *testing.T) {
			cc, runs := countingCompiler(t, compiler)
			o := BuildOptions{runtime: true, Compiler: cc + " -Wall -Wextra -Werror", Places: []string{t.TempDir()}}
			path := build(t, o).Path
			first := runs()
			if first == 0 {
				t.Fatal("no compiler ran")
			}
			if build(t, o); runs() != first {
				t.Errorf("the compiler ran %d times, then %d", first, runs()-first)
			}
			for _, name := range runtimeBeside {
				if err := os.Remove(filepath.Join(filepath.Dir(path), name)); err != nil {
					t.Fatal(err)
				}
				if again := build(t, o).Path; again != path {
					t.Errorf("without %s it is in %s", name, again)
				}
				if err := checkRuntime(path); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestRuntimeConcurrently(t *testing.T) {
	needCompiler(t, "gcc")
	place := t.TempDir()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			built, err := Build(t.Context(), BuildOptions{runtime: true, Compiler: "gcc", Places: []string{place}})
			if err == nil {
				err = checkRuntime(built.Path)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	entries, err := filepath.Glob(filepath.Join(place, "*", "*"))
	if err != nil || len(entries) != 1+len(runtimeBeside) {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestOwnCompilerIsNotUsed: a build that runs under CC="diagnose cc" may run
// programs that need the agent.
func TestOwnCompilerIsNotUsed(t *testing.T) {
	for command, ours := range map[string]bool{"diagnose cc": true, "/opt/bin/diagnose c++ -O1": true, "diagnose": false, "gcc cc": false, "": false} {
		if isOurs(command) != ours {
			t.Errorf("%q: %v", command, !ours)
		}
	}
	needCompiler(t, "cc")
	t.Setenv("CC", "/no/such/diagnose cc")
	if _, err := Build(t.Context(), BuildOptions{Sources: standIn(""), Places: []string{t.TempDir()}}); err != nil {
		t.Error(err)
	}
}
