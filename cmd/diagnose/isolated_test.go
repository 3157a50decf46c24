package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestIsolatedRefused(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"isolated"}, "one of the commands crash"},
		{[]string{"isolated", "record", "--", "true"}, "one of the commands crash"},
		{[]string{"isolated", "crash", "--core", "core"}, "none of the arguments is the directory of a recording"},
	} {
		if o := diagnose(t, nil, c.args...); o.status != exitUsage || !strings.Contains(o.stderr, c.says) {
			t.Errorf("%v: %+v", c.args, o)
		}
	}
}

// publicDir returns a new directory that every user may write to.
func publicDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "diagnose-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// staticTool builds the command without shared libraries, as make does, where every user can run it.
func staticTool(t *testing.T) string {
	t.Helper()
	command := filepath.Join(publicDir(t), "diagnose")
	if said, err := exec.Command("go", "build", "-tags=netgo,osusergo", "-o", command, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return command
}

// runTool runs a built command.
func runTool(t *testing.T, tool string, args ...string) outcome {
	t.Helper()
	cmd := exec.Command(tool, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Error(err)
		return outcome{status: -1}
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// TestIsolated: a user diagnoses a portable recording of a program that is not here any more.
func TestIsolated(t *testing.T) {
	dir, command := publicDir(t), staticTool(t)
	source, program := filepath.Join(dir, "gone.c"), filepath.Join(dir, "gone")
	if err := os.WriteFile(source, []byte("int *cell; void clear(void) { cell = 0; } int main(void) { static int n; cell = &n; clear(); return *cell; }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command("cc", "-g", "-O0", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	// Another user than root, to whom the recording belongs and who may make namespaces.
	as := func(args ...string) *exec.Cmd {
		cmd := exec.Command(command, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "TMPDIR="+dir, "XDG_CACHE_HOME="+filepath.Join(dir, "cache"))
		if os.Geteuid() == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		return cmd
	}
	if out, err := as("record", "--portable", "--", program).CombinedOutput(); err == nil {
		t.Fatalf("it did not fail: %s", out)
	}
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	recording := filepath.Join("recordings", "gone-0001-SIGSEGV")
	if out, err := as("replay", recording).CombinedOutput(); err == nil || !strings.Contains(string(out), "no such file") {
		t.Fatalf("it is replayed without the program: %s", out)
	}
	out, err := as("isolated", "crash", "--recording="+recording).CombinedOutput()
	text := string(out)
	if strings.Contains(text, "operation not permitted") || strings.Contains(text, "permission denied") {
		t.Skipf("no namespaces of one's own here: %v: %s", err, text)
	}
	if err != nil || !strings.HasPrefix(text, "clear (gone.c:1) gave cell its bad value 0x0  [proved]") {
		t.Errorf("%v: %s", err, text)
	}
}
