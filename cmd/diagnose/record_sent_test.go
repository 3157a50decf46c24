package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"diagnose/internal/crashtest"
)

// sleeper prints its process number and waits. With an argument it has a handler of SIGSEGV.
const sleeper = `
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static void fatal(int sig) { if (write(2, "fatal\n", 6) == 6) _exit(sig == SIGSEGV ? 3 : 4); }
int main(int argc, char **argv)
{
	char line[8];

	if (argc > 1)
		signal(SIGSEGV, fatal);
	printf("%d\n", getpid());
	fflush(stdout);
	while (!fgets(line, sizeof line, stdin))
		;
	return argv == NULL;
}
`

// A SIGSEGV that another process sends ends a waiting program as it does without a recorder. It is
// no fault of the program's memory, whatever a handler does.
func TestRecordSentFault(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "sleeper.c", Text: sleeper, Flags: []string{"-O1"}})
	for _, x := range []struct {
		name    string
		args    []string
		signal  unix.Signal
		kept    string
		message string
	}{
		{"no handler", nil, unix.SIGSEGV, "sleeper-0001-SIGSEGV", "killed by SIGSEGV (SI_USER) in main"},
		{"illegal instruction", nil, unix.SIGILL, "sleeper-0001-SIGILL", "killed by SIGILL (SI_USER) in main"},
		{"handler", []string{"x"}, unix.SIGSEGV, "sleeper-0001-exit-3", "the handler of SIGSEGV ended the process with status 3"},
	} {
		t.Run(x.name, func(t *testing.T) {
			cmd := recordCommand(t, append([]string{"--", exe}, x.args...)...)
			pid, _, lines := startStepper(t, cmd)
			if err := unix.Kill(pid, x.signal); err != nil {
				t.Fatal(err)
			}
			for lines.Scan() {
			}
			cmd.Wait()
			if got := fmt.Sprint(recordings(t, cmd)); got != "["+x.kept+"]" {
				t.Fatalf("recordings %s, %v, want %s", got, cmd.ProcessState, x.kept)
			}
			got := diagnose(t, nil, "crash", "--recording", filepath.Join(cmd.Dir, "recordings", x.kept), "--time", "1s")
			for _, says := range []string{x.message, fmt.Sprintf("sent by process %d of user %d", os.Getpid(), os.Getuid()), "killed-by-signal"} {
				if got.status != exitOK || !strings.Contains(got.stdout, says) {
					t.Errorf("%q is not told: %s%s", says, got.stdout, got.stderr)
				}
			}
		})
	}
}

// handlers are ways in which the handler of a fault, of an abort or of std::terminate ends a
// process.
var handlers = []struct {
	name, handler, source string
	flags                 []string
	says                  []string
}{
	{"status", "_exit(sig)", "", nil, []string{"null pointer", "the handler of SIGSEGV ended the process with status 11", "[proved]"}},
	{"exit", "exit(1)", "", []string{"-O2"}, []string{"null pointer", "the handler of SIGSEGV ended the process with status 1", "[proved]"}},
	{"default and return", "signal(sig, SIG_DFL)", "", nil, []string{"null pointer", "[proved]"}},
	{"default and raise", "signal(sig, SIG_DFL); raise(sig)", "", nil, []string{"null pointer", "[proved]"}},
	{"abort's", "_exit(5)", "", []string{"-DASSERT"}, []string{"assertion failed in visit: user", "[proved]"}},
}

const handled = `
#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static int alice, *user = &alice;
static void fatal(int sig) { (void)sig; HANDLER; }
__attribute__((noinline)) static void logout(void) { user = NULL; }
__attribute__((noinline)) static void visit(void)
{
#ifdef ASSERT
	assert(user);
#endif
	++*(volatile int *)user;
}
int main(int argc, char **argv)
{
	signal(SIGSEGV, fatal);
	signal(SIGABRT, fatal);
	visit();
	if (argc < 2)
		logout();
	visit();
	return argv == NULL;
}
`

func TestCrashInAHandler(t *testing.T) {
	crashtest.TracesAccesses(t)
	for _, x := range handlers {
		t.Run(x.name, func(t *testing.T) {
			exe := crashtest.Compile(t, crashtest.Program{Source: "handled.c", Text: handled, Flags: append([]string{"-O1", "-DHANDLER=" + x.handler}, x.flags...)})
			cmd := recordCommand(t, "--", exe)
			ended(t, cmd)
			names := recordings(t, cmd)
			if len(names) != 1 {
				t.Fatalf("recordings %q", names)
			}
			got := diagnose(t, nil, "crash", "--recording", filepath.Join(cmd.Dir, "recordings", names[0]), "--experiments", "1")
			for _, says := range append(x.says, "logout") {
				if got.status != exitOK || !strings.Contains(got.stdout, says) {
					t.Errorf("%s: %q is not told: %s%s", names[0], says, got.stdout, got.stderr)
				}
			}
			twin := recordCommand(t, "--", exe, "x")
			if status, _, stderr := ended(t, twin); status.ExitStatus() != 0 || len(recordings(t, twin)) != 0 {
				t.Errorf("the twin: %v, %s", status, stderr)
			}
		})
	}
}

// A program that recovers from faults, and ends with a status for another reason, did not fail
// because of the faults.
func TestCrashAfterRecoveries(t *testing.T) {
	crashtest.TracesAccesses(t)
	exe := crashtest.Compile(t, crashtest.Program{Source: "probe.c", Text: `
#include <setjmp.h>
#include <signal.h>
static sigjmp_buf env;
static void on_fault(int sig) { siglongjmp(env, sig); }
__attribute__((noinline)) static int readable(volatile int *p) { return sigsetjmp(env, 1) ? 0 : (*p, 1); }
int main(int argc, char **argv)
{
	signal(SIGSEGV, on_fault);
	return readable((int *)8) + readable(&argc) + readable((int *)16) + (argv == 0);
}
`, Flags: []string{"-O1"}})
	cmd := recordCommand(t, "--", exe)
	ended(t, cmd)
	got := diagnose(t, nil, "crash", "--recording", filepath.Join(cmd.Dir, "recordings", "probe-0001-exit-1"), "--time", "1s")
	if got.status != exitOK || !strings.Contains(got.stdout, "exit with status 1 in main") {
		t.Errorf("%s%s", got.stdout, got.stderr)
	}
}

// An exception is reported even if the handler of std::terminate ends the program with a status.
func TestCrashInATerminateHandler(t *testing.T) {
	crashtest.TracesAccesses(t)
	exe := crashtest.Compile(t, crashtest.Program{Source: "terminate.cc", Text: `
#include <cstdlib>
#include <exception>
#include <stdexcept>
static void gone() { std::_Exit(4); }
int main(int argc, char **) { std::set_terminate(gone); if (argc < 2) throw std::out_of_range("index 7"); }
`, Flags: []string{"-O1"}})
	cmd := recordCommand(t, "--", exe)
	ended(t, cmd)
	got := diagnose(t, nil, "crash", "--recording", filepath.Join(cmd.Dir, "recordings", "terminate-0001-exit-4"), "--time", "1s")
	if got.status != exitOK || !strings.Contains(got.stdout, `uncaught std::out_of_range in gone: "index 7"`) {
		t.Errorf("%s%s", got.stdout, got.stderr)
	}
}
