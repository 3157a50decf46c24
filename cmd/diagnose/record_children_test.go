package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/internal/crashtest"
)

// visitor crashes in visit unless it is told not to.
const visitor = `
#include <stdlib.h>
static int alice, *user = &alice;
__attribute__((noinline)) static void logout(void) { user = NULL; }
__attribute__((noinline)) static void visit(void) { ++*(volatile int *)user; }
int main(int argc, char **argv)
{
	visit();
	if (argc < 2)
		logout();
	else if (argv[1][0] != '0')
		return atoi(argv[1]);
	visit();
	return 0;
}
`

// If a script runs a program that crashes, the crash is the failure, whatever the script's status
// is, and a diagnosis of the run is about the crash.
func TestRecordChildCrashed(t *testing.T) {
	crashtest.TracesAccesses(t)
	exe := crashtest.Compile(t, crashtest.Program{Source: "visitor.c", Text: visitor, Flags: []string{"-O1"}})
	for _, x := range []struct {
		name, script string
		status       int
		said, told   []string
	}{
		{"a status of its own", `PROGRAM || { echo failed; exit 1; }`, 1, []string{"the program exited with status 1, and its child process ", "(visitor) died of SIGSEGV"}, nil},
		{"passed", `PROGRAM; exit 0`, 0, []string{"(visitor) died of SIGSEGV"}, nil},
		{"grandchild", `sh -c "PROGRAM; exit 5" || exit 4`, 4, []string{"(visitor) died of SIGSEGV", " exited with status 5; its recording is "},
			[]string{"exited with status 5 ", "exited with status 4 "}},
		{"several", `PROGRAM 0; PROGRAM; PROGRAM 3; PROGRAM; exit 2`, 2, []string{"(visitor) died of SIGSEGV; its recording is ", "exited with status 3; its recording is "},
			[]string{"exited with status 3 "}},
	} {
		t.Run(x.name, func(t *testing.T) {
			cmd := recordCommand(t, "--", "sh", "-c", strings.ReplaceAll(x.script, "PROGRAM", exe))
			status, _, stderr := ended(t, cmd)
			names := recordings(t, cmd)
			if status.ExitStatus() != x.status || len(names) != 1 || !strings.HasSuffix(names[0], "-child-SIGSEGV") {
				t.Fatalf("%v, recordings %q: %s", status, names, stderr)
			}
			for _, says := range append(x.said, "diagnose crash --recording "+filepath.Join("recordings", names[0], "children")) {
				if !strings.Contains(stderr, says) {
					t.Errorf("%q is not said: %s", says, stderr)
				}
			}
			got := diagnose(t, nil, "crash", "--recording", filepath.Join(cmd.Dir, "recordings", names[0]), "--experiments", "1")
			for _, says := range append(x.told, "user is null", "in visit", "logout", "[proved]", "(child of ", "<- this report") {
				if got.status != exitOK || !strings.Contains(got.stdout, says) {
					t.Errorf("status %d, %q is not told: %s%s", got.status, says, got.stdout, got.stderr)
				}
			}
		})
	}
}

// Children of a script end with a status, or by a signal that they were sent. If the script ends
// with status 0 it passed. Otherwise those children are named, and the script is what failed.
func TestRecordChildEndedWithAStatus(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "visitor.c", Text: visitor, Flags: []string{"-O1"}})
	cmd := recordCommand(t, "--", "sh", "-c", exe+" 3; sleep 60 & kill $!; wait; exit 0")
	if status, _, stderr := ended(t, cmd); status.ExitStatus() != 0 || len(recordings(t, cmd)) != 0 {
		t.Errorf("%v, recordings %q: %s", status, recordings(t, cmd), stderr)
	}
	cmd = recordCommand(t, "--", "sh", "-c", exe+" 3; exit 6")
	status, _, stderr := ended(t, cmd)
	if status.ExitStatus() != 6 || fmt.Sprint(recordings(t, cmd)) != "[sh-0001-exit-6]" || !strings.Contains(stderr, "(visitor) exited with status 3; its recording is recordings/sh-0001-exit-6/children/") {
		t.Errorf("%v, recordings %q: %s", status, recordings(t, cmd), stderr)
	}
	got := diagnose(t, nil, "crash", "--recording", filepath.Join(cmd.Dir, "recordings/sh-0001-exit-6"), "--time", "1s")
	if !strings.Contains(got.stdout, "exit with status 6") || !strings.Contains(got.stdout, "visitor (child of ") {
		t.Errorf("%s%s", got.stdout, got.stderr)
	}
}

// A program that ends before it can be recorded is named with how it ended.
func TestRecordChildWithoutItsLibrary(t *testing.T) {
	library := crashtest.Compile(t, crashtest.Program{Source: "gone.c", Text: "int gone;\n", Flags: []string{"-shared", "-fPIC"}, Output: "libgone.so"})
	exe := crashtest.Compile(t, crashtest.Program{Source: "needs.c", Text: "extern int gone;\nint main(void) { return gone; }\n", Flags: []string{library}})
	if err := os.Remove(library); err != nil {
		t.Fatal(err)
	}
	cmd := recordCommand(t, "--", "sh", "-c", exe+"; exit 6")
	_, _, stderr := ended(t, cmd)
	if want := "(needs) exited with status 127; it was not recorded to its end"; !strings.Contains(stderr, want) {
		t.Errorf("%q is not said: %s", want, stderr)
	}
}
