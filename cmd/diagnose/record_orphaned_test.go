package main

import (
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/internal/crashtest"
)

// orphaned leads a session whose only process group is orphaned, as cron and containers make them.
// With a stopped member in the group, it runs a command and prints how the command ended and
// whether the member still exists.
const orphaned = `
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int status = 0, stands;
	pid_t stopped = fork(), pid;

	(void)argc;
	if (stopped == 0) {
		raise(SIGSTOP);
		_exit(0);
	}
	if (waitpid(stopped, &status, WUNTRACED) != stopped || !WIFSTOPPED(status))
		return 9;
	pid = fork();
	if (pid == 0) {
		execv(argv[1], argv + 1);
		_exit(10);
	}
	waitpid(pid, &status, 0);
	stands = waitpid(stopped, NULL, WNOHANG) == 0;
	kill(stopped, SIGKILL);
	printf("ended %d, stands %d, orphaned %d\n", status, stands, getsid(0) == getpid() && getpgrp() == getpid());
	return 0;
}
`

// view says what a program sees of job control. In an orphaned group SIGTSTP
// does nothing.
const view = `
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	raise(SIGTSTP);
	printf("leader's %d, terminal %d\\n", getsid(0) == getpgrp(), tcgetpgrp(0));
	return 0;
}
`

// The kernel hangs up on an orphaned group with a stopped member when a process
// ends whose parent is in another group of the session (kernel/exit.c,
// kill_orphaned_pgrp): the tracer must not be such a parent.
func TestRecordInAnOrphanedGroup(t *testing.T) {
	leader := crashtest.Compile(t, crashtest.Program{Source: "orphaned.c", Text: orphaned})
	for name, args := range map[string][]string{"passes": {"true"}, "crashes": {"sh", "-c", "kill -SEGV $$"}} {
		t.Run(name, func(t *testing.T) {
			cmd := recordCommand(t, append([]string{"--all", "--"}, args...)...)
			cmd.Args = append([]string{leader, cmd.Path}, cmd.Args[1:]...)
			cmd.Path = leader
			status, stdout, stderr := ended(t, cmd)
			want := 0
			if name == "crashes" {
				want = int(unix.SIGSEGV)
			}
			if status != 0 || stdout != "ended "+strconv.Itoa(want)+", stands 1, orphaned 1\n" {
				t.Errorf("%v: %q, %s", status, stdout, stderr)
			}
			expectRecorded(t, recordingNamed(t, cmd, recordings(t, cmd)[0]))
		})
	}
}

// Natively the program is the session's leader, so that its parent is the test;
// a shell between them is in its group, as the launcher is.
func TestRecordedProgramIsInTheSameGroup(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "view.c", Text: view})
	print := func(args ...string) string {
		cmd := recordCommand(t, append([]string{"--all", "--"}, args...)...)
		if len(args) > 1 {
			cmd.Path, cmd.Args = args[0], args
		}
		status, stdout, stderr := ended(t, cmd)
		if status != 0 {
			t.Fatalf("%v: %s", status, stderr)
		}
		return stdout
	}
	want, got := print("/bin/sh", "-c", exe+"; true"), print(exe)
	if want == "" || got != want {
		t.Errorf("natively %q, recorded %q", want, got)
	}
}

// In a PID namespace the leader of the group may have no number. With the /proc
// of another one nothing may be traced: a number there is another process.
func TestRecordInAPIDNamespace(t *testing.T) {
	for _, x := range []struct {
		flags  []string
		status int
		want   string
	}{
		{[]string{"--mount-proc"}, 0, "the program passed"},
		{nil, exitInput, "not of this PID namespace"},
	} {
		cmd := recordCommand(t, "--", "true")
		cmd.Args = append(append([]string{"unshare", "--pid", "--fork"}, x.flags...), append([]string{cmd.Path}, cmd.Args[1:]...)...)
		cmd.Path = "/usr/bin/unshare"
		status, _, stderr := ended(t, cmd)
		if strings.HasPrefix(stderr, "unshare:") {
			t.Skip(&crashtest.UnsupportedError{What: stderr})
		}
		if status.ExitStatus() != x.status || !strings.Contains(stderr, x.want) {
			t.Errorf("%q: %v, %s", x.flags, status, stderr)
		}
	}
}

// The tracer outlives its launcher's process group, and writes down how the
// program ended.
func TestRecordGroupKilled(t *testing.T) {
	cmd := recordCommand(t, "--", crashtest.Compile(t, crashtest.Program{Source: "stepper.c", Text: stepper}))
	startStepper(t, cmd)
	if err := unix.Kill(-cmd.Process.Pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	awaitRecording(t, cmd, "stepper-0001-SIGKILL")
	expectRecorded(t, recordingNamed(t, cmd, "stepper-0001-SIGKILL"))
}
