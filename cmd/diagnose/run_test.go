package main

import (
	"bufio"
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"diagnose/agent"
	"diagnose/internal/crashtest"
)

// runCommand is 'diagnose run' in a directory and a session of its own.
func runCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	builtLibrary(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	limit, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(limit, exe, append([]string{"run"}, args...)...)
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) } // the program, too
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "DIAGNOSE_TEST_MAIN=1", "DIAGNOSE_OPTIONS=", "LD_PRELOAD=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = time.Minute
	return cmd
}

func ended(t *testing.T, cmd *exec.Cmd) (status syscall.WaitStatus, stdout, stderr string) {
	t.Helper()
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.Sys().(syscall.WaitStatus), out.String(), said.String()
}

func TestRunPassesThrough(t *testing.T) {
	const text = `cat; echo "$0 $*"; echo "$DIAGNOSE_OPTIONS"; echo "$LD_PRELOAD"; echo complaint >&2; exit 7`
	for _, mode := range [][]string{nil, {"--exec"}} {
		cmd := runCommand(t, append(mode, "--option", "stacks=3", "--quarantine=2", "--", "sh", "-c", text, "a b", "--stacks", "")...)
		cmd.Stdin = strings.NewReader("input\n")
		cmd.Env = append(cmd.Env, "DIAGNOSE_OPTIONS=stacks=1:fill_bytes=64", "LD_PRELOAD=/nowhere/x.so")
		status, stdout, stderr := ended(t, cmd)
		// The linker complains about the missing library.
		stderr = regexp.MustCompile(`(?m)^ERROR: ld\.so: object '/nowhere/x\.so' .*\n`).ReplaceAllString(stderr, "")
		if status.ExitStatus() != 7 || stderr != "complaint\n" {
			t.Errorf("%v: status %v, stderr %q", mode, status, stderr)
		}
		lines := strings.Split(stdout, "\n")
		if len(lines) != 5 || lines[0] != "input" || lines[1] != "a b --stacks " || lines[2] != "fill_bytes=64:stacks=3:quarantine_mb=2" ||
			!strings.HasSuffix(lines[3], "/libdiagnose.so:/nowhere/x.so") {
			t.Errorf("%v: %q", mode, lines)
		}
	}
}

// The test checks what the linker did, not only the value of the variable.
func TestRunLoadsTheAgent(t *testing.T) {
	_, stdout, stderr := ended(t, runCommand(t, "--", "cat", "/proc/self/maps"))
	if !regexp.MustCompile(`(?m)r-xp .*/libdiagnose\.so$`).MatchString(stdout) {
		t.Errorf("the agent is not mapped:\n%s%s", stdout, stderr)
	}
}

func TestRunExecKeepsTheProcess(t *testing.T) {
	cmd := runCommand(t, "--exec", "--", "sh", "-c", "echo $$")
	if _, stdout, stderr := ended(t, cmd); strings.TrimSpace(stdout) != strconv.Itoa(cmd.Process.Pid) {
		t.Errorf("process %q, want %d; stderr %q", stdout, cmd.Process.Pid, stderr)
	}
}

// inherited prints what a program inherits from its parent.
const inherited = `
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void)
{
	struct sigaction a;
	struct rlimit r;
	sigset_t blocked;

	sigprocmask(SIG_BLOCK, NULL, &blocked);
	for (int i = 1; i < 65; i++) {
		if (!sigaction(i, NULL, &a) && a.sa_handler != SIG_DFL)
			printf("signal %d %s\n", i, a.sa_handler == SIG_IGN ? "ignored" : "handled");
		if (sigismember(&blocked, i) == 1)
			printf("signal %d blocked\n", i);
	}
	for (int i = 0; i < RLIM_NLIMITS; i++)
		if (i != RLIMIT_CORE && !getrlimit(i, &r))
			printf("limit %d %lu %lu\n", i, (unsigned long)r.rlim_cur, (unsigned long)r.rlim_max);
	for (int i = 0; i < 64; i++)
		if (fcntl(i, F_GETFD) >= 0)
			printf("file %d\n", i);
	printf("mask %o, group %d, nice %d\n", umask(0), getpgrp() == getsid(0), getpriority(PRIO_PROCESS, 0));
	return 0;
}
`

// A wrapper between a service and its supervisor must not be noticed. Go's
// runtime handles signals and raises a limit for itself.
func TestRunInherits(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "inherited.c", Text: inherited})
	// A test's executable has no symbol table, and the command has one.
	command := filepath.Join(t.TempDir(), "diagnose")
	if said, err := exec.Command("go", "build", "-o", command, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	print := func(cmd *exec.Cmd) string {
		// env(1) blocks and ignores what a shell's trap cannot.
		const start = `ulimit -Sn 100 && umask 027 && exec nice -n 3 env --ignore-signal=HUP,INT,QUIT,PIPE,USR1,TERM,TSTP,RTMIN+2 --block-signal=USR2 "$0" "$@" 5</dev/null`
		cmd.Args = append([]string{"sh", "-c", start, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
		status, stdout, stderr := ended(t, cmd)
		if status.ExitStatus() != 0 || stderr != "" {
			t.Fatalf("status %#x, stderr %q", uint32(status), stderr)
		}
		return stdout
	}
	plain := runCommand(t)
	plain.Path, plain.Args = exe, []string{exe}
	want := print(plain)
	for _, line := range []string{"signal 13 ignored\n", "signal 36 ignored\n", "signal 12 blocked\n", "limit 7 100 ", "file 5\n", "mask 27, "} {
		if !strings.Contains(want, line) {
			t.Fatalf("the program lacks %q:\n%s", line, want)
		}
	}
	for _, mode := range [][]string{{"--"}, {"--exec", "--"}} {
		cmd := runCommand(t, append(mode, exe)...)
		cmd.Path = command
		if got := print(cmd); got != want {
			t.Errorf("%v:\n%s", mode, cmp.Diff(want, got))
		}
	}
}

// The caller sees the signal itself, as if it had started the program.
func TestRunEndsBySignal(t *testing.T) {
	for _, s := range []syscall.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGKILL, unix.SIGPIPE, unix.SIGUSR1} {
		status, _, stderr := ended(t, runCommand(t, "--", "sh", "-c", "kill -"+strconv.Itoa(int(s))+" $$"))
		if !status.Signaled() || status.Signal() != s || status.CoreDump() || stderr != "" {
			t.Errorf("%v: status %#x, stderr %q", s, uint32(status), stderr)
		}
	}
}

// counter prints every signal that it gets, and ends at SIGTERM.
const counter = `
#include <signal.h>
#include <stdio.h>
int main(void)
{
	sigset_t all;
	int s;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	setlinebuf(stdout);
	puts("ready");
	do {
		sigwait(&all, &s);
		printf("%d\n", s);
	} while (s != SIGTERM);
	return 5;
}
`

func expectLine(t *testing.T, lines *bufio.Scanner, want string) {
	t.Helper()
	if !lines.Scan() || strings.TrimSpace(lines.Text()) != want {
		t.Fatalf("%q, %v, want %q", lines.Text(), lines.Err(), want)
	}
}

func TestRunPassesSignalsOn(t *testing.T) {
	cmd := runCommand(t, "--", crashtest.Compile(t, crashtest.Program{Source: "counter.c", Text: counter}))
	expectSignalsPassedOn(t, cmd)
}

// expectSignalsPassedOn sends signals to a command that runs counter.
func expectSignalsPassedOn(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	lines := startLines(t, cmd)
	expectLine(t, lines, "ready")
	for _, s := range []syscall.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGWINCH, 40, unix.SIGTERM} {
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		expectLine(t, lines, strconv.Itoa(int(s)))
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 5 {
		t.Error(err)
	}
}

func startLines(t *testing.T, cmd *exec.Cmd) *bufio.Scanner {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return bufio.NewScanner(stdout)
}

// A key of the terminal sends its signal to the program as well: the program must receive it once.
func TestRunAtATerminal(t *testing.T) {
	expectOneInterrupt(t, runCommand(t, "--", crashtest.Compile(t, crashtest.Program{Source: "counter.c", Text: counter})))
}

// expectOneInterrupt starts a command that runs counter at a terminal and types
// a key that interrupts.
func expectOneInterrupt(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	master, slave := quietTerminal(t)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(master)
	expectLine(t, lines, "ready")
	if _, err := master.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	expectLine(t, lines, "2")
	// Signals are passed on in order, and of several pending ones the lowest is taken first: a
	// second SIGINT would have arrived by now.
	if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	expectLine(t, lines, "15")
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 5 {
		t.Error(err)
	}
}

// One byte too many, noticed when the object is freed.
const overrun = `
#include <stdlib.h>
#include <string.h>
#ifndef SIZE
#define SIZE 24
#endif
int main(void)
{
	char *volatile name = malloc(SIZE);

	strcpy(name, "a name of 24 bytes or so");
	free(name);
	return 4;
}
`

// A user's whole session: the program dies of its corruption, the core is named, and the core is
// that program's.
func TestRunToTheCore(t *testing.T) {
	crashtest.NeedKernelCores(t)
	for _, x := range []struct {
		name, text string
		signal     syscall.Signal
	}{
		{"overrun", overrun, unix.SIGABRT},
		{"null", nullRead, unix.SIGSEGV},
	} {
		t.Run(x.name, func(t *testing.T) {
			exe := crashtest.Compile(t, crashtest.Program{Source: "login.c", Text: x.text, Flags: []string{"-O0", "-w"}})
			cmd := runCommand(t, "--", exe)
			status, _, stderr := ended(t, cmd)
			if !status.Signaled() || status.Signal() != x.signal || status.CoreDump() {
				t.Fatalf("status %#x, stderr %q", uint32(status), stderr)
			}
			m := regexp.MustCompile(`diagnose: ` + exe + ` \(process (\d+)\) died of ` + unix.SignalName(x.signal) +
				`\ndiagnose: to see why: diagnose crash --core (\S+)\n$`).FindStringSubmatch(stderr)
			if m == nil {
				t.Fatalf("stderr %q", stderr)
			}
			if filepath.Dir(m[2]) != cmd.Dir {
				t.Errorf("the core is %s, want it in %s", m[2], cmd.Dir)
			}
			report := diagnose(t, nil, "crash", "--core", m[2])
			if report.status != exitOK || !strings.Contains(report.stdout, "(process "+m[1]) {
				t.Errorf("the report is not of process %s: status %d\n%s%s", m[1], report.status, report.stdout, report.stderr)
			}
		})
	}
}

func TestRunOfAFixedProgram(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "login.c", Text: overrun, Flags: []string{"-O0", "-DSIZE=25"}})
	if status, _, stderr := ended(t, runCommand(t, "--", exe)); status.ExitStatus() != 4 || stderr != "" {
		t.Errorf("status %#x, stderr %q", uint32(status), stderr)
	}
}

// on_error=log, for all errors or one kind: the evidence is written to the file, and the program
// continues.
func TestRunLogs(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "login.c", Text: overrun, Flags: []string{"-O0", "-w"}})
	for _, what := range []string{"log", "abort,overflow=log"} {
		cmd := runCommand(t, "--on-error", what, "--log", "heap.log", "--", exe)
		status, _, stderr := ended(t, cmd)
		if status.ExitStatus() != 4 || stderr != "" {
			t.Errorf("%s: status %#x, stderr %q", what, uint32(status), stderr)
		}
		text, err := os.ReadFile(filepath.Join(cmd.Dir, "heap.log"))
		if err != nil || !strings.Contains(string(text), "overflow") {
			t.Errorf("%s: the log holds %q, %v", what, text, err)
		}
	}
}

// If a core is missing, the command says why.
func TestRunWithoutACore(t *testing.T) {
	crashtest.NeedKernelCores(t)
	exe := crashtest.Compile(t, crashtest.Program{Source: "login.c", Text: nullRead, Flags: []string{"-O0"}})
	cmd := runCommand(t, "--", exe)
	cmd.Args = append([]string{"sh", "-c", `ulimit -c 0 && exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	status, _, stderr := ended(t, cmd)
	if status.Signal() != unix.SIGSEGV || !strings.Contains(stderr, "no core was written: the hard limit of its size is 0") {
		t.Errorf("status %#x, stderr %q", uint32(status), stderr)
	}
}

func TestRunRefuses(t *testing.T) {
	static := crashtest.Compile(t, crashtest.Program{Source: "static.c", Text: "int main(void) { return 0; }", Flags: []string{"-static"}})
	log := filepath.Join(t.TempDir(), "missing", "log")
	for _, x := range []struct {
		args   []string
		status int
		says   string
	}{
		{nil, exitUsage, "nothing to run: give a program"},
		{[]string{"--"}, exitUsage, "nothing to run"},
		{[]string{"--on-error", "stop", "true"}, exitUsage, `--on-error takes abort, log or continue, not "stop"`},
		{[]string{"--on-error", "abort,mismatch=lg", "true"}, exitUsage, `not "lg", did you mean log?`},
		{[]string{"--on-error", "abort,mismach=log", "true"}, exitUsage, `--on-error: "mismach" is no kind of error`},
		{[]string{"--option", "on_error=abort,mismach=log", "true"}, exitUsage, "did you mean mismatch?"},
		{[]string{"--stacks", "many", "true"}, exitUsage, `--stacks: it takes a whole number from 1 to 12, not "many"`},
		{[]string{"--quarantine", "-1", "true"}, exitUsage, `--quarantine: it takes a whole number from 0 to 65536, not "-1"`},
		{[]string{"--log", log, "true"}, exitUsage, "--log: write " + log + ": no such file or directory"},
		{[]string{"--log", t.TempDir(), "true"}, exitUsage, "is a directory"},
		{[]string{"--option", "stack=3", "true"}, exitUsage, `--option: unknown option "stack": it is one of`},
		{[]string{"--option", "stacks", "true"}, exitUsage, `--option takes NAME=VALUE, not "stacks"`},
		{[]string{"--option", "canary=00", "true"}, exitUsage, "--option: canary: it takes 1 or 8 bytes"},
		{[]string{"--no-such-flag", "true"}, exitUsage, "no-such-flag"},
		{[]string{"no-such-program"}, exitInput, "no-such-program is not in PATH"},
		{[]string{static}, exitInput, static + " is statically linked"},
		{[]string{"--exec", "--", static}, exitInput, static + " is statically linked"},
		{[]string{"/etc/passwd"}, exitInput, "/etc/passwd cannot be run: permission denied"},
	} {
		got := diagnose(t, nil, append([]string{"run"}, x.args...)...)
		if got.status != x.status || !strings.Contains(got.stderr, x.says) || got.stdout != "" {
			t.Errorf("diagnose run %s: status %d, want %d; stderr %q, want %q in it", strings.Join(x.args, " "), got.status, x.status, got.stderr, x.says)
		}
	}
}

// The help says what the agent does by default.
func TestRunHelpDefaults(t *testing.T) {
	text, err := fs.ReadFile(agent.Sources(), "heap/options.c")
	if err != nil {
		t.Fatal(err)
	}
	for option, name := range map[string]string{"quarantine_mb": "QUARANTINE_MB", "fill_bytes": "FILL", "stacks": "STACKS"} {
		value := regexp.MustCompile(`#define DG_DEFAULT_` + name + ` (\d+)`).FindSubmatch(text)
		if value == nil {
			t.Errorf("options.c has no default for %s", option)
			continue
		}
		if !regexp.MustCompile(`(?m)^    ` + option + `=N .*; ` + string(value[1]) + `$`).MatchString(optionsHelp) {
			t.Errorf("%s is %s unless it is set; the help says\n%s", option, value[1], optionsHelp)
		}
	}
	for _, name := range agent.OptionNames() {
		if !strings.Contains(optionsHelp, "    "+name+"=") {
			t.Errorf("the help lacks %s", name)
		}
	}
}

func TestRunCompletion(t *testing.T) {
	for _, x := range []struct{ typed, want string }{
		{"run --on-error ", "abort\nlog\ncontinue\n:4\n"},
		{"run --option ", strings.Join(agent.OptionNames(), "=\n") + "=\n:6\n"},
		{"run --log ", ":0\n"},
		{"run ", ":0\n"},
		{"agent ", "path\n:4\n"},
	} {
		got := diagnose(t, nil, append([]string{"__completeNoDesc"}, strings.Split(x.typed, " ")...)...)
		if got.status != exitOK || got.stdout != x.want {
			t.Errorf("%q completes to %q (status %d), want %q", x.typed, got.stdout, got.status, x.want)
		}
	}
}
