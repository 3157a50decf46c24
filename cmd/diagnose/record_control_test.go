package main

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/internal/crashtest"
)

func TestRecordPassesSignalsOn(t *testing.T) {
	expectSignalsPassedOn(t, recordCommand(t, "--", crashtest.Compile(t, crashtest.Program{Source: "counter.c", Text: counter})))
}

// stepper prints its process number, then a line for each line that it reads.
const stepper = `
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	char line[64];

	printf("%d\n", getpid());
	fflush(stdout);
	for (int n = 1; fgets(line, sizeof line, stdin); n++) {
		printf("%d\n", n);
		fflush(stdout);
	}
	return 6;
}
`

// startStepper starts it under record and returns its process.
func startStepper(t *testing.T, cmd *exec.Cmd) (pid int, in io.WriteCloser, lines *bufio.Scanner) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	lines = startLines(t, cmd)
	if !lines.Scan() {
		t.Fatal("no output")
	}
	if pid, err = strconv.Atoi(lines.Text()); err != nil {
		t.Fatal(err)
	}
	return pid, in, lines
}

// A shell sees that its job was stopped, although a grandchild was stopped. Resuming the job
// resumes the program.
func TestRecordJobControl(t *testing.T) {
	cmd := recordCommand(t, "--", crashtest.Compile(t, crashtest.Program{Source: "stepper.c", Text: stepper}))
	// An orphaned process group is not stopped by the terminal's signals.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pid, in, lines := startStepper(t, cmd)
	for n, s := range []syscall.Signal{unix.SIGSTOP, unix.SIGTSTP} {
		if err := unix.Kill(pid, s); err != nil {
			t.Fatal(err)
		}
		var status unix.WaitStatus
		if _, err := unix.Wait4(cmd.Process.Pid, &status, unix.WUNTRACED, nil); err != nil || !status.Stopped() {
			t.Fatalf("%v, %v", status, err)
		}
		if err := cmd.Process.Signal(unix.SIGCONT); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(in, "go")
		expectLine(t, lines, strconv.Itoa(n+1))
	}
	in.Close()
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 6 {
		t.Error(err)
	}
}

// As in TestRunAtATerminal, a key's signal arrives once.
func TestRecordAtATerminal(t *testing.T) {
	expectOneInterrupt(t, recordCommand(t, "--", crashtest.Compile(t, crashtest.Program{Source: "counter.c", Text: counter})))
}

// A key stops a shell's job that is recorded, and fg resumes it, as without the recorder.
func TestRecordInAShell(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(&crashtest.UnsupportedError{What: err.Error()})
	}
	master, slave := quietTerminal(t)
	cmd := recordCommand(t, "--", crashtest.Compile(t, crashtest.Program{Source: "stepper.c", Text: stepper}))
	job := append([]string{cmd.Path}, cmd.Args[1:]...)
	cmd.Path, cmd.Args = bash, append([]string{"bash", "--norc", "--noediting", "-i", "-c", `set -m
"$@"
echo "stopped $?"
fg >/dev/null
echo "ended $?"`, "bash"}, job...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(master)
	until := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.TrimSpace(lines.Text()) == want {
				return
			}
		}
		t.Fatalf("no %q: %v", want, lines.Err())
	}
	master.WriteString("go\n")
	until("1")
	master.WriteString("\x1a")
	until(fmt.Sprintf("stopped %d", 128+unix.SIGTSTP))
	master.WriteString("go\n")
	until("2")
	master.WriteString("\x04")
	until("ended 6")
	cmd.Wait()
}
