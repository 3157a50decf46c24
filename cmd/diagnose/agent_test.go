package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestAgentPath(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	first := diagnose(t, nil, "agent", "path")
	if first.status != exitOK || first.stderr != "diagnose: compiling the agent's library, once for this compiler\n" || !strings.HasPrefix(first.stdout, os.Getenv("XDG_CACHE_HOME")) {
		t.Fatalf("status %d, stdout %q, stderr %q", first.status, first.stdout, first.stderr)
	}
	if second := diagnose(t, nil, "agent", "path"); second.status != exitOK || second.stderr != "" || second.stdout != first.stdout {
		t.Errorf("then %+v", second)
	}
	t.Setenv("XDG_CACHE_HOME", "/proc/diagnose")
	t.Setenv("TMPDIR", t.TempDir())
	got := diagnose(t, nil, "agent", "path")
	if got.status != exitOK || !strings.Contains(got.stderr, "diagnose: the agent's library is kept in ") || !strings.Contains(got.stderr, "/proc/diagnose") {
		t.Errorf("without a cache: %+v", got)
	}
	for _, args := range [][]string{{"agent", "path", "x"}, {"agent", "paht"}, {"agent", "export"}} {
		if got := diagnose(t, nil, args...); got.status != exitUsage {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

func TestAgentWithoutACompiler(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("CC", "no-such-compiler")
	got := diagnose(t, nil, "agent", "path")
	if got.status != exitInternal || !strings.Contains(got.stderr, "the C compiler no-such-compiler, which CC names, cannot be run") {
		t.Errorf("%+v", got)
	}
}

// A release needs no compiler on the machine that it runs on.
func TestReleaseBuild(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if got := diagnose(t, nil, "agent", "export", dir); got.status != exitOK {
		t.Fatalf("%+v", got)
	}
	// The overlay has what make puts into the tree, so the tree is not touched.
	overlay := map[string]map[string]string{"Replace": {}}
	for _, name := range []string{"libdiagnose.so", "libdiagnose.so.sources", "libdiagnose-record.so", "libdiagnose-record.so.sources"} {
		overlay["Replace"][filepath.Join(root, "agent", "prebuilt", name)] = filepath.Join(dir, name)
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	release := filepath.Join(dir, "diagnose")
	build := exec.Command("go", "build", "-tags", "embedagent", "-overlay", filepath.Join(dir, "overlay.json"), "-o", release, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	cmd := exec.Command(release, "agent", "path")
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=/nowhere"}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	path, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	kept, err := os.ReadFile(strings.TrimSpace(string(path)))
	if err != nil {
		t.Fatal(err)
	}
	built, err := os.ReadFile(filepath.Join(dir, "libdiagnose.so"))
	if err != nil || !bytes.Equal(kept, built) || len(built) == 0 {
		t.Errorf("%s is not the library of the release: %v", path, err)
	}
}
