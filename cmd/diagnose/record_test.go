package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"diagnose/internal/crashtest"
	"diagnose/replay/record"
)

// mayTrace returns what keeps this machine from tracing, "" if nothing does.
var mayTrace = sync.OnceValue(func() string {
	cmd := exec.Command("/proc/self/exe", "record", "--output", filepath.Join(os.TempDir(), "diagnose-may-trace"), "--", "true")
	cmd.Env = append(os.Environ(), "DIAGNOSE_TEST_MAIN=1")
	said, _ := cmd.CombinedOutput()
	os.Remove(filepath.Join(os.TempDir(), "diagnose-may-trace"))
	if bytes.Contains(said, []byte("may not be traced")) {
		return string(said)
	}
	return ""
})

// recordCommand is 'diagnose record' in a directory and a session of its own.
func recordCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if why := mayTrace(); why != "" {
		t.Skip(&crashtest.UnsupportedError{What: why})
	}
	cmd := runCommand(t, args...)
	cmd.Args[1] = "record"
	return cmd
}

// recordings returns the names of the recordings in a command's directory.
func recordings(t *testing.T, cmd *exec.Cmd) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(cmd.Dir, "recordings"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func recordingNamed(t *testing.T, cmd *exec.Cmd, name string) *record.Recording {
	t.Helper()
	r, err := record.Open(filepath.Join(cmd.Dir, "recordings", name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// expectRecorded fails unless the engine ran: otherwise a test would say nothing about recording.
func expectRecorded(t *testing.T, r *record.Recording) {
	t.Helper()
	stats, err := r.File(record.LogName)
	if err != nil {
		t.Fatal(err)
	}
	defer stats.Close()
	info, err := stats.Stat()
	if err != nil || info.Size() <= 65536 {
		t.Errorf("the log of %s has %d bytes (%v): nothing was recorded", r.Dir, info.Size(), err)
	}
	if len(r.Manifest.Start.Mappings) == 0 || r.Manifest.Start.Random == "" {
		t.Errorf("the manifest of %s says nothing of the start", r.Dir)
	}
}

func TestRecordPassesThrough(t *testing.T) {
	const text = `cat; echo "$0 $*"; echo "$DIAGNOSE_RECORD"; echo complaint >&2; exit 7`
	cmd := recordCommand(t, "--", "sh", "-c", text, "a b", "--all", "")
	cmd.Stdin = strings.NewReader("input\n")
	status, stdout, stderr := ended(t, cmd)
	if status.ExitStatus() != 7 || stdout != "input\na b --all \n1\n" {
		t.Errorf("status %v, %q", status, stdout)
	}
	if want := "complaint\ndiagnose: the program exited with status 7; to see it again: diagnose replay recordings/sh-0001-exit-7\n" +
		"diagnose: to find the cause: diagnose crash --recording recordings/sh-0001-exit-7\n"; stderr != want {
		t.Errorf("stderr %q, want %q", stderr, want)
	}
	expectRecorded(t, recordingNamed(t, cmd, "sh-0001-exit-7"))
}

func TestRecordOfRealPrograms(t *testing.T) {
	for _, x := range []struct{ name, text string }{
		{"pipeline", `seq 1000 | sort -r | head -n 3 | tr 1 2`},
		{"substitution", `x=$(echo inner; exit 3); echo "$x $?"`},
		{"background", `for i in 1 2 3; do (echo $i; exit $i) & wait $!; echo "= $?"; done`},
		{"python", `python3 -c 'import threading, sys
l = []
ts = [threading.Thread(target=l.append, args=(i,)) for i in range(8)]
[t.start() for t in ts]; [t.join() for t in ts]
print(sorted(l)); sys.exit(5)'`},
		{"signals", `trap 'echo caught' USR1; kill -USR1 $$; kill -TERM $$`},
		{"file", `echo text >f; wc -c <f; cat f f | md5sum; rm f; ls f`},
	} {
		t.Run(x.name, func(t *testing.T) {
			native := runCommand(t)
			native.Path, native.Args = "/bin/sh", []string{"sh", "-c", x.text}
			want, wantOut, wantErr := ended(t, native)
			cmd := recordCommand(t, "--all", "--", "sh", "-c", x.text)
			status, stdout, stderr := ended(t, cmd)
			stderr = regexp.MustCompile(`(?m)^diagnose: .*\n`).ReplaceAllString(stderr, "")
			if status != want || stdout != wantOut || stderr != wantErr {
				t.Errorf("%v, %q, %q;\nnatively %v, %q, %q", status, stdout, stderr, want, wantOut, wantErr)
			}
			names := recordings(t, cmd)
			if len(names) != 1 {
				t.Fatalf("recordings %q", names)
			}
			expectRecorded(t, recordingNamed(t, cmd, names[0]))
		})
	}
}

func TestRecordInherits(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "inherited.c", Text: inherited})
	command := filepath.Join(t.TempDir(), "diagnose")
	if said, err := exec.Command("go", "build", "-o", command, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	print := func(cmd *exec.Cmd) string {
		cmd.Path, cmd.Args = "/usr/bin/env", append([]string{"env", "--block-signal=USR2", "--ignore-signal=PIPE", "--ignore-signal=HUP", "sh", "-c",
			`umask 27; ulimit -n 100; exec nice -n 3 "$@" 7</dev/null`, "sh"}, cmd.Args...)
		status, stdout, stderr := ended(t, cmd)
		if status.ExitStatus() != 0 {
			t.Fatalf("%v\n%s", status, stderr)
		}
		return stdout
	}
	native := recordCommand(t)
	native.Args = []string{exe}
	cmd := recordCommand(t, "--", exe)
	cmd.Args[0] = command
	want, got := print(native), print(cmd)
	if !strings.Contains(want, "signal 13 ignored") || !strings.Contains(want, "file 7\n") || !strings.Contains(want, "blocked") {
		t.Fatalf("the test sets nothing: %s", want)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("natively (-), recorded (+)\n%s", diff)
	}
}

func TestRecordKeeps(t *testing.T) {
	crash := crashtest.Compile(t, crashtest.Program{Source: "login.c", Text: nullRead, Flags: []string{"-O0"}})
	over := crashtest.Compile(t, crashtest.Program{Source: "overrun.c", Text: strings.ReplaceAll(overrun, "return 4", "return 0")})
	for _, x := range []struct {
		name string
		args []string
		env  string
		want []string
		core bool
		said string
	}{
		{"passed", []string{"--", "true"}, "", []string{}, false, "the program passed, its recording was dropped (--all keeps it)"},
		{"all", []string{"--all", "--", "true"}, "", []string{"true-0001-passed"}, true, "the program passed; to see it again"},
		{"status", []string{"--", "false"}, "", []string{"false-0001-exit-1"}, true, "the program exited with status 1; to see"},
		{"signal", []string{"--", crash}, "", []string{"login-0001-SIGSEGV"}, true, "the program died of SIGSEGV; to see"},
		{"kill", []string{"--", "sh", "-c", "kill -9 $$"}, "", []string{"sh-0001-SIGKILL"}, false, "the program died of SIGKILL; to see"},
		{"heap", []string{"--", over}, "on_error=continue", []string{"overrun-0001-heap"}, true, "1 corruption of the heap was found; to see"},
		{"child", []string{"--", "sh", "-c", crash + "; true"}, "", []string{"sh-0001-child-SIGSEGV"}, false, "died of SIGSEGV; to see"},
	} {
		t.Run(x.name, func(t *testing.T) {
			cmd := recordCommand(t, x.args...)
			cmd.Env = append(cmd.Env, "DIAGNOSE_OPTIONS="+x.env)
			_, _, stderr := ended(t, cmd)
			got := recordings(t, cmd)
			if diff := cmp.Diff(x.want, got); diff != "" || !strings.Contains(stderr, x.said) {
				t.Fatalf("%s\n%s", diff, stderr)
			}
			if len(got) == 0 {
				if _, err := os.Lstat(filepath.Join(cmd.Dir, "recordings")); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("an empty directory for recordings is left (%v)", err)
				}
				return
			}
			r := recordingNamed(t, cmd, got[0])
			expectRecorded(t, r)
			if _, err := r.Core(); (err == nil) != x.core {
				t.Errorf("core: %v", err)
			}
		})
	}
}

func TestRecordOfACrash(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "login.c", Text: nullRead, Flags: []string{"-O0"}})
	cmd := recordCommand(t, "--", exe)
	status, _, stderr := ended(t, cmd)
	if !status.Signaled() || status.Signal() != unix.SIGSEGV {
		t.Fatalf("%v: %s", status, stderr)
	}
	r := recordingNamed(t, cmd, "login-0001-SIGSEGV")
	o := r.Manifest.Outcome
	if o.Kind != record.OutcomeSignal || o.Signal != int(unix.SIGSEGV) || o.Thread != 1 || o.FaultAddr == nil || *o.FaultAddr != 8 && *o.FaultAddr != 0 || o.PC == nil {
		t.Errorf("outcome %+v", o)
	}
	core, err := r.Core()
	if err != nil {
		t.Fatal(err)
	}
	if report := diagnose(t, nil, "crash", "--core", core); report.status != exitOK || !strings.Contains(report.stdout, "null pointer read") {
		t.Errorf("%+v", report)
	}
}

// Every process has a recording, and they are linked both ways.
func TestRecordChildren(t *testing.T) {
	cmd := recordCommand(t, "--all", "--", "sh", "-c", `/bin/true; (sh -c "exit 3"; exit 4); echo $?`)
	if _, stdout, stderr := ended(t, cmd); stdout != "4\n" {
		t.Fatalf("%q, %s", stdout, stderr)
	}
	programs := map[string]int{}
	var walk func(r *record.Recording)
	walk = func(r *record.Recording) {
		expectRecorded(t, r)
		last := r.Manifest.Program.Args[len(r.Manifest.Program.Args)-1]
		programs[fmt.Sprintf("%s %v %d", last, r.Manifest.Outcome.Kind, r.Manifest.Outcome.Status)]++
		for _, c := range r.Manifest.Children {
			child, err := r.Child(c)
			if err != nil {
				t.Fatal(err)
			}
			defer child.Close()
			if child.Manifest.PID != c.PID || child.Manifest.Parent == nil || child.Manifest.Parent.PID != r.Manifest.PID && !c.Exec {
				t.Errorf("child %+v has manifest of %d, parent %+v", c, child.Manifest.PID, child.Manifest.Parent)
			}
			walk(child)
		}
	}
	walk(recordingNamed(t, cmd, "sh-0001-passed"))
	if programs["/bin/true passed 0"] != 1 || programs["exit 3 exit 3"] != 1 {
		t.Errorf("recorded: %v", programs)
	}
}

// many makes many threads that end at the same time, and aborts while others run.
const many = `
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_barrier_t all;
static void *work(void *p)
{
	pthread_barrier_wait(&all);
	return p;
}
int main(int argc, char **argv)
{
	int n = atoi(argv[1]);
	pthread_t *t = malloc(n * sizeof *t);
	pthread_attr_t a;

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, 65536);
	pthread_barrier_init(&all, NULL, argc > 2 ? n + 2 : n + 1);
	for (int i = 0; i < n; i++)
		if (pthread_create(&t[i], &a, work, t))
			return 9;
	if (argc > 2)
		abort();
	pthread_barrier_wait(&all);
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	printf("%d threads\n", n);
	return 3;
}
`

func TestRecordManyThreads(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "many.c", Text: many})
	cmd := recordCommand(t, "--", exe, "1000")
	if status, stdout, stderr := ended(t, cmd); status.ExitStatus() != 3 || stdout != "1000 threads\n" {
		t.Fatalf("%v, %q, %s", status, stdout, stderr)
	}
	cmd = recordCommand(t, "--", exe, "1000", "abort")
	if status, _, stderr := ended(t, cmd); !status.Signaled() || status.Signal() != unix.SIGABRT {
		t.Fatalf("%v, %s", status, stderr)
	}
	r := recordingNamed(t, cmd, "many-0001-SIGABRT")
	core, err := r.Core()
	if err != nil {
		t.Fatal(err)
	}
	report := diagnose(t, nil, "crash", "--core", core)
	if report.status != exitOK || !strings.Contains(report.stdout, "1001 threads") {
		t.Errorf("status %d: %.2000s%s", report.status, report.stdout, report.stderr)
	}
}

func TestRecordRepeats(t *testing.T) {
	const flaky = `n=$(cat n 2>/dev/null || echo 0); echo $((n+1)) >n; [ $n != 2 ] && [ $n != 3 ]`
	cmd := recordCommand(t, "--repeat", "6", "--", "sh", "-c", flaky)
	status, _, stderr := ended(t, cmd)
	if got := recordings(t, cmd); status.ExitStatus() != 1 || !cmp.Equal(got, []string{"sh-0003-exit-1", "sh-0005-passed"}) {
		t.Errorf("%v: %q\n%s", status, got, stderr)
	}
	if !strings.Contains(stderr, "6 runs, 2 failed; the first that failed: the program exited with status 1; to see it again: diagnose replay recordings/sh-0003-exit-1") ||
		!strings.HasSuffix(stderr, "diagnose: to find the cause: diagnose crash --recording recordings/sh-0003-exit-1 --passing recordings/sh-0005-passed\n") {
		t.Errorf("%s", stderr)
	}
	cmd = recordCommand(t, "--until-fail", "--", "sh", "-c", flaky)
	status, _, stderr = ended(t, cmd)
	if got := recordings(t, cmd); status.ExitStatus() != 1 || !cmp.Equal(got, []string{"sh-0002-passed", "sh-0003-exit-1"}) {
		t.Errorf("%v: %q\n%s", status, got, stderr)
	}
}

// Each run has the same input: a file is read again, and of a pipe it is said that it cannot be.
func TestRecordRepeatsInput(t *testing.T) {
	const needs = `read a && read b && [ "$a $b" = "second third" ]`
	path := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(path, []byte("first\nsecond\nthird\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Seek(int64(len("first\n")), io.SeekStart); err != nil {
		t.Fatal(err)
	}
	cmd := recordCommand(t, "--repeat", "3", "--", "sh", "-c", needs)
	cmd.Stdin = file
	if status, _, stderr := ended(t, cmd); status.ExitStatus() != 0 || !strings.Contains(stderr, "3 runs, 0 failed") || strings.Contains(stderr, "warning") {
		t.Errorf("a file: %v\n%s", status, stderr)
	}
	cmd = recordCommand(t, "--repeat", "3", "--", "sh", "-c", needs)
	cmd.Stdin = strings.NewReader("second\nthird\n")
	if status, _, stderr := ended(t, cmd); status.ExitStatus() != 1 || !strings.Contains(stderr, "3 runs, 2 failed") || strings.Count(stderr, "only the first run had the content") != 1 {
		t.Errorf("a pipe: %v\n%s", status, stderr)
	}
}

func TestRecordPortable(t *testing.T) {
	cmd := recordCommand(t, "--all", "--portable", "--", "true")
	ended(t, cmd)
	r := recordingNamed(t, cmd, "true-0001-passed")
	stored := map[string]bool{}
	for _, o := range r.Manifest.Portable {
		f, err := r.File(o.Stored)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(f)
		f.Close()
		want, wantErr := os.ReadFile(string(o.Path))
		if err != nil || wantErr != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not %s: %v, %v", o.Stored, o.Path, err, wantErr)
		}
		stored[filepath.Base(string(o.Path))] = true
	}
	if !stored["true"] || !stored["libc.so.6"] || !stored["libdiagnose-record.so"] {
		t.Errorf("stored are %v", stored)
	}
}

func TestRecordRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		args   []string
		status int
		said   string
	}{
		{nil, exitUsage, "nothing to record"},
		{[]string{"--", "/nonexistent/x"}, exitInput, "no such file"},
		{[]string{"--output", file, "--", "true"}, exitInternal, "recordings cannot be written"},
		{[]string{"--repeat", "-1", "--", "true"}, exitUsage, "no negative"},
	} {
		cmd := recordCommand(t, x.args...)
		status, stdout, stderr := ended(t, cmd)
		if status.ExitStatus() != x.status || stdout != "" || !strings.Contains(stderr, x.said) {
			t.Errorf("%q: status %v, %s", x.args, status, stderr)
		}
	}
}

// A program without the library in its environment is not recorded, and ends as it would without
// the tool.
func TestRecordOfAProgramWithoutTheLibrary(t *testing.T) {
	cmd := recordCommand(t, "--", "env", "-i", "/bin/sh", "-c", "echo ran; exit 5")
	status, stdout, stderr := ended(t, cmd)
	if status.ExitStatus() != 5 || stdout != "ran\n" || !strings.Contains(stderr, "sh was started without DIAGNOSE_RECORD in its environment") {
		t.Errorf("%v, %q, %s", status, stdout, stderr)
	}
}

// The kernel loads a set-user-ID program at random addresses even for the user whose rights it has.
// Such a program is refused before it has executed anything. As a child process it runs, and the
// recording says that it does not contain it.
func TestRecordOfASetUserIDProgram(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "greets.c", Text: `#include <unistd.h>
int main(void) { return write(1, "ran\n", 4) != 4; }`})
	if err := os.Chmod(exe, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(exe, &fs); err != nil || fs.Flags&unix.ST_NOSUID != 0 {
		t.Skip(&crashtest.UnsupportedError{What: "the file system ignores set-user-ID"})
	}
	cmd := recordCommand(t, "--", exe)
	status, stdout, stderr := ended(t, cmd)
	if status.ExitStatus() != exitInput || stdout != "" || !strings.Contains(stderr, "is set-user-ID or set-group-ID") {
		t.Errorf("%v, %q, %s", status, stdout, stderr)
	}
	if names := recordings(t, cmd); len(names) != 0 {
		t.Errorf("recordings: %v", names)
	}
	cmd = recordCommand(t, "--all", "--", "sh", "-c", exe+"; exit 0")
	if _, stdout, stderr := ended(t, cmd); stdout != "ran\n" || strings.Count(stderr, "a child, is not recorded, and how it ends is not known") != 1 {
		t.Errorf("%q, %s", stdout, stderr)
	}
	shell := recordingNamed(t, cmd, "sh-0001-passed")
	child, err := shell.Child(shell.Manifest.Children[0])
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	expectLimit(t, child, "child", "is set-user-ID or set-group-ID")
	if err := os.Chmod(exe, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd = recordCommand(t, "--all", "--", exe)
	if _, _, stderr := ended(t, cmd); len(recordings(t, cmd)) != 1 {
		t.Errorf("the program without the bit is not recorded: %s", stderr)
	}
}

// noPtrace makes ptrace fail with EPERM, as a container's rules do.
const noPtrace = `
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof rules / sizeof *rules, rules };

	if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 99;
	execv(argv[1], argv + 1);
	return 98;
}
`

func TestRecordWithoutPtrace(t *testing.T) {
	cmd := recordCommand(t, "--", "true")
	cmd.Args = append([]string{"noptrace", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = crashtest.Compile(t, crashtest.Program{Source: "noptrace.c", Text: noPtrace})
	status, stdout, stderr := ended(t, cmd)
	if status.ExitStatus() != exitInput || stdout != "" || !strings.Contains(stderr, "processes may not be traced here") {
		t.Errorf("%v: %s", status, stderr)
	}
	if got := recordings(t, cmd); len(got) != 0 {
		t.Errorf("recordings %q are left", got)
	}
}
