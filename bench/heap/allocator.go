package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"diagnose/agent"
)

// allocator is a way to run a program with another heap.
type allocator struct {
	name    string
	preload string   // library that is loaded before all others
	wrapper []string // command that the program is an argument of
	build   string   // how own programs are built; real ones cannot be
	share   int      // of a hundred: how much of the work it is given
}

const glibc = "glibc"

// ownOnly says whether programs that are not ours are beyond it.
func (a allocator) ownOnly() bool { return a.share < 100 }

// installed are the allocators to compare, glibc first; one that this machine
// lacks is left out and said to be.
func installed(s settings) ([]allocator, error) {
	const lib = "/usr/lib/x86_64-linux-gnu/"
	library, err := agentLibrary(s)
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench/heap: the agent is left out: %v\n", err)
	}
	known := []allocator{
		{name: glibc, share: 100},
		{name: "agent", preload: library, share: 100},
		{name: "jemalloc", preload: lib + "libjemalloc.so.2", share: 100},
		{name: "mimalloc", preload: lib + "libmimalloc.so.2", share: 100},
		{name: "tcmalloc", preload: lib + "libtcmalloc_minimal.so.4", share: 100},
		{name: "scudo", preload: scudo(), share: 100},
		{name: "asan", build: "-fsanitize=address", share: 20},
		{name: "valgrind", wrapper: []string{"valgrind", "--quiet", "--error-exitcode=9"}, share: 4},
		{name: "efence", preload: "/usr/lib/libefence.so.0.0", share: 1},
	}
	for _, name := range s.allocators {
		if !slices.ContainsFunc(known, func(a allocator) bool { return a.name == name }) {
			return nil, fmt.Errorf("no allocator is called %q", name)
		}
	}
	return slices.DeleteFunc(known, func(a allocator) bool {
		if a.name == glibc {
			return false
		}
		if len(s.allocators) > 0 && !slices.Contains(s.allocators, a.name) {
			return true
		}
		if err := a.missing(); err != nil {
			fmt.Fprintf(os.Stderr, "bench/heap: %s is left out: %v\n", a.name, err)
			return true
		}
		return false
	}), nil
}

func (a allocator) missing() error {
	if a.wrapper != nil {
		_, err := exec.LookPath(a.wrapper[0])
		return err
	}
	if a.build != "" {
		return nil
	}
	_, err := os.Stat(a.preload)
	return err
}

// scudo is clang's library, in a directory named by its version.
func scudo() string {
	found, err := filepath.Glob("/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.scudo_standalone-x86_64.so")
	if err != nil || len(found) == 0 {
		return "libclang_rt.scudo_standalone-x86_64.so"
	}
	return found[len(found)-1]
}

func agentLibrary(s settings) (string, error) {
	if s.agent != "" {
		return filepath.Abs(s.agent)
	}
	return agent.Library(context.Background())
}
