package main

import (
	"os/exec"
	"strings"
	"testing"

	"diagnose/internal/crashtest"
	"diagnose/replay/record"
)

// traces traces a child, and ignores the results of ptrace.
const traces = `
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	int status;
	long own = ptrace(PTRACE_TRACEME, 0, 0, 0);
	pid_t child = fork();

	if (!child) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		_exit(3);
	}
	waitpid(child, &status, 0);
	printf("%ld %d", own, WIFSTOPPED(status));
	ptrace(PTRACE_CONT, child, 0, 0);
	waitpid(child, &status, 0);
	printf(" %d\n", WEXITSTATUS(status));
	fflush(stdout);
	abort();
}
`

// The recorder detaches from a process that the program traces itself: otherwise the program would
// wait for a child that it cannot continue.
func TestRecordOfAProgramThatTraces(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "traces.c", Text: traces})
	cmd := recordCommand(t, "--", exe)
	_, stdout, stderr := ended(t, cmd)
	if stdout != "-1 1 3\n" {
		t.Errorf("the program said %q", stdout)
	}
	for _, part := range []string{"is not recorded any more: the program traces it itself (ptrace)", "(ptrace fails with EPERM)"} {
		if strings.Count(stderr, part) != 1 {
			t.Errorf("not said once: %q\n%s", part, stderr)
		}
	}
	r := recordingNamed(t, cmd, recordings(t, cmd)[0])
	expectRecorded(t, r)
	expectLimit(t, r, "syscall", "EPERM")
	child, err := r.Child(r.Manifest.Children[0])
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	if child.Manifest.Outcome.Kind != record.OutcomeCut {
		t.Errorf("the child's recording ends as %+v", child.Manifest.Outcome)
	}
	expectLimit(t, child, "traced", "the program traces this process itself")
	if got := diagnose(t, nil, "replay", "--verify", r.Dir); got.status != 0 {
		t.Errorf("replay: status %d\n%s", got.status, got.stderr)
	}
}

func expectLimit(t *testing.T, r *record.Recording, kind, text string) {
	t.Helper()
	for _, l := range r.Manifest.Limits {
		if l.Kind == kind && strings.Contains(l.Text, text) {
			return
		}
	}
	t.Errorf("%s has the limits %+v", r.Dir, r.Manifest.Limits)
}

// A debugger in a recorded program is the only tracer of its own program. The library leaves that
// program alone.
func TestRecordOfADebugger(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "null.c", Text: "int main(int n, char **v) { *(volatile int *)(v - v) = n; return 0; }"})
	cmd := recordCommand(t, "--all", "--", "gdb", "-nx", "-batch", "-ex", "run", "-ex", "info signals SIGTRAP", exe)
	_, stdout, stderr := ended(t, cmd)
	if !strings.Contains(stdout, "received signal SIGSEGV") || strings.Contains(stdout, "received signal SIGTRAP") {
		t.Errorf("%s\n%s", stdout, stderr)
	}
}

// An emulator passes the environment, and the library in it, to the program that it runs in its own
// process.
func TestRecordOfAnEmulator(t *testing.T) {
	if _, err := exec.LookPath("qemu-x86_64"); err != nil {
		t.Skip(&crashtest.UnsupportedError{What: err.Error()})
	}
	exe := crashtest.Compile(t, crashtest.Program{Source: "guest.c", Text: "#include <stdio.h>\nint main(void) { puts(\"guest\"); return 3; }"})
	cmd := recordCommand(t, "--", "qemu-x86_64", exe)
	status, stdout, stderr := ended(t, cmd)
	if status.ExitStatus() != 3 || stdout != "guest\n" {
		t.Fatalf("%v, %q, %s", status, stdout, stderr)
	}
	expectRecorded(t, recordingNamed(t, cmd, "qemu-x86_64-0001-exit-3"))
}
