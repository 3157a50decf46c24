package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A recording that cannot be meant is refused with what to give instead.
func TestCrashNamesTheRecordingMeant(t *testing.T) {
	cmd := recordCommand(t, "--output", "recordings", "--", "sh", "-c", "sh -c 'kill -SEGV $$'; exit 0")
	cmd.Run()
	names := recordings(t, cmd)
	if len(names) != 1 || !strings.HasSuffix(names[0], "-child-SIGSEGV") {
		t.Fatalf("recordings %q, want one of a child", names)
	}
	above := filepath.Join(cmd.Dir, "recordings")
	dir := filepath.Join(above, names[0])
	for _, x := range []struct {
		args   []string
		status int
		says   []string
	}{
		{[]string{"--recording", dir}, exitInput, []string{"did not fail itself", "--recording " + filepath.Join(dir, "children")}},
		{[]string{"--recording", above}, exitInput, []string{"is no recording; there are some in it: " + dir}},
		{[]string{"--recording", t.TempDir()}, exitInput, []string{"is no recording: it has no manifest.json"}},
		{[]string{dir}, exitUsage, []string{"did you mean --recording " + dir + "?"}},
	} {
		got := diagnose(t, nil, append([]string{"crash"}, x.args...)...)
		for _, says := range x.says {
			if got.status != x.status || !strings.Contains(got.stderr, says) || got.stdout != "" {
				t.Errorf("crash %s: status %d, want %d; stderr %q, want %q in it", strings.Join(x.args, " "), got.status, x.status, got.stderr, says)
			}
		}
	}
}

// Without its program a recording gives no pass, which is no search in vain.
func TestCrashOfAProgramBuiltAnew(t *testing.T) {
	dir := traceable(t)
	got := diagnose(t, nil, "recording", "show", dir)
	var exe string
	for line := range strings.Lines(got.stdout) {
		if name, found := strings.CutPrefix(line, "program:"); found {
			exe = strings.TrimSpace(name)
		}
	}
	if out, err := exec.Command("cc", "-g", "-O2", "-pthread", "-o", exe, "../../testdata/trace/names.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got = diagnose(t, nil, "crash", "--recording", dir)
	for _, says := range []string{"is not what was recorded any more", "diagnose crash --core " + filepath.Join(dir, "core")} {
		if got.status != exitInput || !strings.Contains(got.stderr, says) || got.stdout != "" {
			t.Errorf("status %d; stderr %q, want %q in it", got.status, got.stderr, says)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "core")); err != nil {
		t.Error(err)
	}
}
