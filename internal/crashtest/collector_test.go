package crashtest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// setCorePattern makes this package read another core_pattern.
func setCorePattern(t *testing.T, pattern string) {
	t.Helper()
	file, before := filepath.Join(t.TempDir(), "core_pattern"), corePattern
	if err := os.WriteFile(file, []byte(pattern+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	corePattern = file
	t.Cleanup(func() { corePattern = before })
}

func TestKernelWritesCores(t *testing.T) {
	for pattern, want := range map[string]bool{
		"core":                            true,
		"core.%p":                         true,
		"%e.core":                         false,
		"":                                false,
		"/var/crash/core.%p":              false,
		"core/%p":                         false,
		"|/usr/share/apport/apport %p %s": false,
	} {
		setCorePattern(t, pattern)
		if got := kernelWritesCores(); got != want {
			t.Errorf("%q: %v, want %v", pattern, got, want)
		}
	}
}

// If cores go to a collector, gdb writes them, also of a child that crashes, and the test says what
// gdb cannot do.
func TestCollector(t *testing.T) {
	for _, name := range []string{"null_read", "fork_child"} {
		t.Run(name, func(t *testing.T) {
			setCorePattern(t, "|/usr/share/apport/apport %p")
			f := Named(t, name)
			crash := f.Crash(t, f.AllVariants()[0])
			if info, err := os.Stat(crash.Core); err != nil || info.Size() == 0 {
				t.Errorf("no core: %v", err)
			}
		})
	}
	setCorePattern(t, "|/usr/share/apport/apport %p")
	exe := Compile(t, Program{Source: "environment.c", Text: environmentC})
	Core(t, exe, Run{Env: []string{"MOOD=not good=at all", "LD_PRELOAD="}})
	var unsupported *UnsupportedError
	if _, err := core(t.TempDir(), "/bin/true", Run{Hang: true}); !errors.As(err, &unsupported) {
		t.Errorf("a program that hangs: %v, want it not to be supported", err)
	}
}

const environmentC = `#include <stdlib.h>
#include <string.h>

int main(void)
{
    const char *mood = getenv("MOOD");
    if (mood && !strcmp(mood, "not good=at all"))
        abort();
    return 0;
}
`
