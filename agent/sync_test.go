package agent_test

import (
	"os"
	"testing"
)

// syncProgram is src/test/sync_units.c with the engine, without a tracer.
func syncProgram(t *testing.T, compiler string) string {
	t.Helper()
	flags := []string{"-std=gnu11", "-O2", "-Isrc", "-DDG_RECORD", "-Wno-unused-function", "-Wno-unused-variable",
		"-fno-stack-protector", "-U_FORTIFY_SOURCE", "-ftls-model=initial-exec"}
	engine := supportBuild(t, compiler, append([]string{"-c", "-mgeneral-regs-only", "src/test/sync_engine.c"}, flags...)...)
	object := engine + ".o"
	if err := os.Rename(engine, object); err != nil {
		t.Fatal(err)
	}
	return supportBuild(t, compiler, append([]string{"-D_GNU_SOURCE", "src/test/sync_units.c", "src/engine/entry.S", object}, flags...)...)
}

// Threads meet at every kind of variable, and none waits for good, none is let
// in too many, and nothing is left of the waits.
func TestSynchronisation(t *testing.T) {
	for _, compiler := range []string{"gcc", "clang"} {
		program := syncProgram(t, compiler)
		t.Run(compiler, func(t *testing.T) {
			if got, want := engineRun(t, program, ""), "met\n"; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
