package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/internal/crashtest"
)

// smallMemory makes a control group whose processes have 64 MiB.
func smallMemory(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("diagnose-test-%d", os.Getpid())
	var problems []string
	for group, limit := range map[string]string{"/sys/fs/cgroup/memory/" + name: "memory.limit_in_bytes", "/sys/fs/cgroup/" + name: "memory.max"} {
		if err := os.Mkdir(group, 0o755); err != nil {
			problems = append(problems, err.Error())
			continue
		}
		t.Cleanup(func() { os.Remove(group) })
		// It must exist: without the second version of control groups the folder is an ordinary one.
		f, err := os.OpenFile(filepath.Join(group, limit), os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString("67108864")
			err = errors.Join(err, f.Close())
		}
		if err == nil {
			return group
		}
		problems = append(problems, err.Error())
	}
	t.Skipf("this machine has no control group for memory that a test may make: %s", strings.Join(problems, "; "))
	return ""
}

// A process that the kernel kills for lack of memory is told as that, with what its
// heap held; one that is killed otherwise is not.
func TestRecordKilledForMemory(t *testing.T) {
	const text = `#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *grow(void) { void *p = malloc(100000); memset(p, 1, 100000); return p; }
int main(int argc, char **argv)
{
	FILE *f = fopen(argv[1], "w");
	if (!f || fprintf(f, "%d\n", (int)getpid()) < 0 || fclose(f)) return 2;
	for (int i = 0; i < 3000; i++) {
		if (!grow()) return 3;
		if (argc > 2 && i == 100) raise(SIGKILL);
	}
	return 0;
}
`
	exe := crashtest.Compile(t, crashtest.Program{Source: "grows.c", Text: text, Flags: []string{"-O0"}})
	procs := filepath.Join(smallMemory(t), "cgroup.procs")
	for _, args := range [][]string{{procs}, {procs, "by itself"}} {
		cmd := recordCommand(t, append([]string{"--", exe}, args...)...)
		_, _, stderr := ended(t, cmd)
		got := diagnose(t, nil, "crash", "--recording", filepath.Join(cmd.Dir, "recordings", "grows-0001-SIGKILL"))
		told := strings.Contains(got.stdout, "out of memory: the kernel killed a process for lack of memory while it ran, and it died of SIGKILL  [inferred]")
		sites := strings.Contains(got.stdout, "allocated in grow at grows.c:6, called in main")
		if got.status != exitOK || told != (len(args) == 1) || sites != told {
			t.Errorf("%q: status %d\n%s\n%s%s", args, got.status, stderr, got.stdout, got.stderr)
		}
	}
}
