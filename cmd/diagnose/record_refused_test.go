package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/internal/crashtest"
	"diagnose/replay/record"
)

// needsCall makes a system call that the recorder refuses, and ends by itself when it
// fails. With FALLBACK it does without, and fails for another reason if it has an argument.
const needsCall = `
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static char room[256];
static void *volatile none;
int main(int argc, char **argv)
{
	long result = syscall(NUMBER, FIRST, room); /* WANT: refused */
	if (result < 0 && errno == ENOSYS) {
		fprintf(stderr, "%s: %s\\n", argv[0], strerror(errno));
#ifdef FALLBACK
		return argc > 1 ? *(int *)none : 0;
#elif defined(ABORT)
		abort();
#endif
		return 3;
	}
	return 0;
}
`

// A program that fails because the recorder refuses it a call is told so, at once and in
// its report; one that does without the call, or crashes by itself, is not suspected.
func TestRecordOfRefusedCalls(t *testing.T) {
	for _, x := range []struct {
		name, compiler string
		flags, args    []string
		recording      string
		call           string
		told, warned   bool
	}{
		{"io_uring", "gcc", []string{"-O2", "-DNUMBER=SYS_io_uring_setup", "-DFIRST=8"}, nil, "ring-0001-exit-3", "io_uring_setup", true, true},
		{"aio", "clang", []string{"-O0", "-DNUMBER=SYS_io_setup", "-DFIRST=8", "-DABORT"}, nil, "ring-0001-SIGABRT", "io_setup", true, true},
		{"fallback", "gcc", []string{"-O1", "-DNUMBER=SYS_io_uring_setup", "-DFIRST=8", "-DFALLBACK"}, nil, "", "io_uring_setup", false, false},
		{"crash", "gcc", []string{"-O1", "-DNUMBER=SYS_io_uring_setup", "-DFIRST=8", "-DFALLBACK"}, []string{"x"}, "ring-0001-SIGSEGV", "io_uring_setup", true, false},
		{"lacking", "gcc", []string{"-O1", "-DNUMBER=SYS_uselib", "-DFIRST=8"}, nil, "ring-0001-exit-3", "uselib", false, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			exe := crashtest.Compile(t, crashtest.Program{Source: "ring.c", Text: needsCall, Compiler: x.compiler, Flags: x.flags})
			cmd := recordCommand(t, append([]string{"--", exe}, x.args...)...)
			_, _, stderr := ended(t, cmd)
			if told := strings.Contains(stderr, "the recorder refused "+x.call); told != x.told {
				t.Errorf("told: %t, want %t: %s", told, x.told, stderr)
			}
			if x.recording == "" {
				return
			}
			dir := filepath.Join(cmd.Dir, "recordings", x.recording)
			m, err := record.ReadManifest(dir)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(m.Refused); n > 1 || (n == 1) != x.told || n == 1 && (m.Refused[0].Call != x.call || m.Refused[0].Error != "ENOSYS" || m.Refused[0].Thread != 1 || m.Refused[0].Ordinal < 2) {
				t.Errorf("%+v", m.Refused)
			}
			for _, format := range []string{"text", "html", "sarif"} {
				got := diagnose(t, nil, "crash", "--recording", dir, "--format", format).stdout
				if warned := strings.Contains(got, "may have failed because of that alone"); warned != x.warned {
					t.Errorf("%s: warned: %t, want %t: %s", format, warned, x.warned, got)
				}
				if told := strings.Contains(got, "refused "+x.call+" with ENOSYS"); told != x.told {
					t.Errorf("%s: told: %t, want %t", format, told, x.told)
				}
			}
			if shown := diagnose(t, nil, "recording", "show", dir).stdout; strings.Contains(shown, "refused:") != x.told {
				t.Errorf("%s", shown)
			}
		})
	}
}

// A filter for system calls is not enforced in a recording, which is said while the
// program runs; a program without one is not warned of.
func TestRecordOfAFilter(t *testing.T) {
	const program = `
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog all = {1, code};
	if (argc < 2)
		return prctl(PR_SET_DUMPABLE, 1);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return 2;
	return argv[1][0] == 'p' ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) : (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &all);
}
`
	exe := crashtest.Compile(t, crashtest.Program{Source: "filter.c", Text: program})
	for _, x := range []struct{ arg, call string }{{"prctl", "prctl"}, {"seccomp", "seccomp"}, {"", ""}} {
		args := []string{"--all", "--", exe}
		if x.arg != "" {
			args = append(args, x.arg)
		}
		cmd := recordCommand(t, args...)
		_, _, stderr := ended(t, cmd)
		if n := strings.Count(stderr, "sets a filter for system calls ("+x.call+"), which is not enforced"); n > 1 || (n == 1) != (x.arg != "") {
			t.Errorf("%q: said %d times: %s", x.arg, n, stderr)
		}
		r := recordingNamed(t, cmd, "filter-0001-passed")
		if refused := r.Manifest.Refused; len(refused) > 0 != (x.arg != "") || len(refused) > 0 && (!refused[0].Filter() || refused[0].Call != x.call) {
			t.Errorf("%q: %+v", x.arg, refused)
		}
	}
}

// Where a limit on the size of files ends a recording, the limit and its value are told,
// and no disk is blamed.
func TestRecordWithAFileSizeLimit(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "calls.c", Text: `#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) { for (long i = atol(argv[1]); i; i--) getppid(); abort(); }`})
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		t.Skip(&crashtest.UnsupportedError{What: err.Error()})
	}
	for _, x := range []struct {
		limit int64
		calls int
		cut   bool
	}{{64 << 10, 1, true}, {1 << 20, 100000, true}, {256 << 10, 1, false}, {-1, 100000, false}} {
		cmd := recordCommand(t, "--", exe, fmt.Sprint(x.calls))
		value := "unlimited"
		if x.limit > 0 {
			value = fmt.Sprint(x.limit)
		}
		cmd.Args = append([]string{prlimit, "--fsize=" + value, "--", cmd.Path}, cmd.Args[1:]...)
		cmd.Path = prlimit
		_, _, stderr := ended(t, cmd)
		named := strings.Contains(stderr, "RLIMIT_FSIZE") && strings.Contains(stderr, value+" bytes")
		if limited := x.limit > 0; named != limited || strings.Contains(stderr, "recording ended early") != x.cut {
			t.Errorf("%s: %s", value, stderr)
		}
		if strings.Contains(stderr, "no more room") || strings.Contains(stderr, "disk") || strings.Contains(stderr, "space") {
			t.Errorf("%s: the disk is blamed: %s", value, stderr)
		}
	}
}

// That processes share memory is said once for a run, while it runs.
func TestRecordOfSharedMemory(t *testing.T) {
	const program = `
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	int flags = atoi(argv[1]) ? MAP_SHARED : MAP_PRIVATE;
	int *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < 3; i++)
		if (!fork()) {
			*p = i;
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	return argc != 2;
}
`
	exe := crashtest.Compile(t, crashtest.Program{Source: "shares.c", Text: program})
	for arg, want := range map[string]int{"1": 1, "0": 0} {
		for _, races := range []string{racesEvents, racesTurns} {
			_, _, stderr := ended(t, recordCommand(t, "--races="+races, "--all", "--", exe, arg))
			if n := strings.Count(stderr, "shares memory with other processes: their writes to it are not recorded"); n != want {
				t.Errorf("--races=%s, with %s it is said %d times, want %d: %s", races, arg, n, want, stderr)
			}
		}
	}
}
