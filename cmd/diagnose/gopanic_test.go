package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAdviceOnPanics: a Go program that panicked left no core, and run says how to get one. A C
// program that exits with the same status gets no advice.
func TestAdviceOnPanics(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	text := "package main\n\nimport \"C\"\n\nfunc main() {\n\tvar m map[string]int\n\tm[\"a\"] = 1\n}\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "panics")
	build := exec.Command("go", "build", "-o", program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=1", "GO111MODULE=off", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, x := range []struct {
		setting string
		argv    []string
		advised bool
	}{
		{"GOTRACEBACK=single", []string{program}, true},
		{"GOTRACEBACK=crash", []string{program}, false},
		{"GOTRACEBACK=single", []string{"/bin/sh", "-c", "exit 2"}, false},
	} {
		cmd := runCommand(t, append([]string{"--"}, x.argv...)...)
		cmd.Env = append(cmd.Environ(), x.setting)
		cmd.Dir = dir
		_, _, stderr := ended(t, cmd)
		if advised := strings.Contains(stderr, "with GOTRACEBACK=crash in its environment it leaves one"); advised != x.advised {
			t.Errorf("%s %q: advised is %v, want %v: %s", x.setting, x.argv, advised, x.advised, stderr)
		}
	}
}
