package agent_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const newFlags = "-std=c++17 -O1 -fno-builtin -fsized-deallocation -Wno-unused-function -Wno-unknown-warning-option -Wno-sized-deallocation"

// Programs that make it hard for the agent: they interrupt it, take its memory
// away, or use what few programs use. Each prints "ok" after it saw that the
// agent is loaded, and exits with 3 if it is not.
func TestAdversePrograms(t *testing.T) {
	for _, compiler := range []string{"gcc", "clang"} {
		t.Run(compiler, func(t *testing.T) {
			t.Parallel()
			library := supportAgent(t, compiler)
			for _, x := range []struct {
				source, flags, options string
				args                   []string
			}{
				{"support_step.c", "-O2", map[string]string{"gcc": "", "clang": "check_interval_ms=1"}[compiler], []string{"1"}},
				{"support_limit.c", "-O2", "quarantine_mb=16", nil},
				{"support_edges.c", "-O2 -fno-builtin", "", nil},
				{"support_stack.c", "-O2 -fno-builtin -Wl,-z,now", "on_error=continue", nil},
				{"support_odd.c", "-O2 -fno-builtin", "", nil},
				{"support_odd.c", "-O2 -fno-builtin", "check_interval_ms=1", nil},
				{"support_abort.c", "-O2 -fno-builtin", "log_path=/dev/null", nil},
				{"support_new.cc", newFlags, "", nil},
				{"support_new.cc", newFlags + " -DSUPPORT_REPLACE", "", nil},
			} {
				compile := compiler
				if strings.HasSuffix(x.source, ".cc") {
					compile = map[string]string{"gcc": "g++", "clang": "clang++"}[compiler]
				}
				program := supportBuild(t, compile, append(strings.Fields(x.flags), x.source)...)
				args := append([]string{program}, x.args...)
				got := supportStart(t, library, x.options, args...)
				got.check(t, 0)
				if got.stdout != "ok\n" || got.stderr != "" {
					t.Errorf("%s, %q: %s%s", x.source, x.options, got.stdout, got.stderr)
				}
				if got := supportStart(t, "", "", args...); got.status.ExitStatus() != 3 {
					t.Errorf("%s succeeds without the agent", x.source)
				}
			}
		})
	}
}

// Objects bound to their own dependencies first, and by whose RUNPATH others
// are found.
func TestAdverseDeepBinding(t *testing.T) {
	for _, compiler := range []string{"gcc", "clang"} {
		library := supportAgent(t, compiler)
		object := []string{"-O2", "-fPIC", "-shared", "-DSUPPORT_OBJECT", "support_deep.c"}
		inner := supportBuild(t, compiler, slices.Clone(object)...)
		outer := supportBuild(t, compiler, append(object, "-Wl,--enable-new-dtags,-rpath,"+filepath.Dir(inner))...)
		program := supportBuild(t, compiler, "-O2", "support_deep.c")
		got := supportStart(t, library, "", program, outer, filepath.Base(inner))
		got.check(t, 0)
		if got.stdout != "ok\n" || got.stderr != "" {
			t.Errorf("%s: %s%s", compiler, got.stdout, got.stderr)
		}
	}
}
