package agent_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"diagnose/agent"
)

// Each C file parses by itself with what scripts/compile-commands writes for editors, and each
// file is a part of a unit.
func TestSourcesParseAlone(t *testing.T) {
	var entries []struct{ Directory, File, Command string }
	out := filepath.Join(t.TempDir(), "compile_commands.json")
	if text, err := exec.Command("../scripts/compile-commands", out).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &entries); err != nil {
		t.Fatal(err)
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip(&agent.UnsupportedError{What: "no C compiler: " + err.Error()})
	}
	listed := map[string]bool{}
	var wait sync.WaitGroup
	limit := make(chan struct{}, 4)
	for _, e := range entries {
		listed[e.File] = true
		wait.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			args := append(strings.Fields(e.Command)[1:], "-fsyntax-only", "-Werror=implicit-function-declaration")
			cmd := exec.CommandContext(t.Context(), cc, args...)
			cmd.Dir = e.Directory
			if text, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", e.File, err, text)
			}
		})
	}
	wait.Wait()
	for _, pattern := range []string{"*.c", "heap/*.c", "engine/*.c", "hunt/*.c", "wrap/*.c"} {
		files, err := filepath.Glob(filepath.Join("src", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			if name, _ := filepath.Rel("src", file); !listed[name] {
				t.Errorf("%s is in no unit", name)
			}
		}
	}
}
