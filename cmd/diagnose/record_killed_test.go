package main

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/internal/crashtest"
	"diagnose/replay/record"
)

// The program continues whichever process is killed, and a recording remains as long as the tracer
// lives.
func TestRecordLauncherKilled(t *testing.T) {
	cmd := recordCommand(t, "--", crashtest.Compile(t, crashtest.Program{Source: "stepper.c", Text: stepper}))
	_, in, lines := startStepper(t, cmd)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, "go")
	expectLine(t, lines, "1")
	in.Close()
	for lines.Scan() { // up to its end
	}
	awaitRecording(t, cmd, "stepper-0001-exit-6")
	expectRecorded(t, recordingNamed(t, cmd, "stepper-0001-exit-6"))
	cmd.Wait()
}

func TestRecordTracerKilled(t *testing.T) {
	cmd := recordCommand(t, "--", crashtest.Compile(t, crashtest.Program{Source: "stepper.c", Text: stepper}))
	var said bytes.Buffer
	cmd.Stderr = &said
	pid, in, lines := startStepper(t, cmd)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`TracerPid:\t(\d+)`).FindSubmatch(status)
	if m == nil || string(m[1]) == "0" {
		t.Fatalf("the program is not traced: %s", status)
	}
	tracer, _ := strconv.Atoi(string(m[1]))
	if err := unix.Kill(tracer, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, "go")
	expectLine(t, lines, "1")
	in.Close()
	cmd.Wait()
	if cmd.ProcessState.ExitCode() != exitInternal || !strings.Contains(said.String(), "continues, and is not recorded any more") {
		t.Errorf("%v: %s", cmd.ProcessState, said.String())
	}
	recordingNamed(t, cmd, ".stepper-0001-running")
}

// awaitRecording waits until a recording has its last name. The limit is for a machine that is
// stuck.
func awaitRecording(t *testing.T, cmd *exec.Cmd, name string) {
	t.Helper()
	for limit := time.Now().Add(3 * time.Minute); time.Now().Before(limit); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(cmd.Dir, "recordings", name)); err == nil {
			return
		}
	}
	t.Fatalf("recordings %q, want %s", recordings(t, cmd), name)
}

// daemon leaves a process running as daemon(3) does, which crashes on request.
const daemon = `
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char c;
	FILE *f;

	if (fork())
		exit(0);
	setsid();
	if (fork())
		_exit(0);
	freopen("/dev/null", "r", stdin);
	freopen("/dev/null", "w", stdout);
	freopen("/dev/null", "w", stderr);
	f = fopen(argv[1], "r");
	if (f && fread(&c, 1, 1, f) == 1 && c == 'x')
		abort();
	return argc == 0;
}
`

func TestRecordDaemon(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "daemon.c", Text: daemon})
	for tell, want := range map[string]string{"x": "daemon-0001-child-SIGABRT", "y": ""} {
		t.Run(tell, func(t *testing.T) {
			fifo := filepath.Join(t.TempDir(), "fifo")
			if err := unix.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := recordCommand(t, "--", exe, fifo)
			// The pipe of standard output ends with the program, although the daemon and its tracer
			// continue.
			status, _, stderr := ended(t, cmd)
			if status.ExitStatus() != 0 || !strings.Contains(stderr, "still recorded, in recordings/.daemon-0001-running") {
				t.Fatalf("%v: %s", status, stderr)
			}
			if err := os.WriteFile(fifo, []byte(tell), 0); err != nil {
				t.Fatal(err)
			}
			if want != "" {
				awaitRecording(t, cmd, want)
				return
			}
			for limit := time.Now().Add(3 * time.Minute); len(recordings(t, cmd)) > 0; time.Sleep(5 * time.Millisecond) {
				if time.Now().After(limit) {
					t.Fatalf("recordings %q are left", recordings(t, cmd))
				}
			}
		})
	}
}

// The recording exists and opens, wherever the program was killed.
func TestRecordKilledAnywhere(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "stepper.c", Text: stepper})
	for i := range 10 {
		cmd := recordCommand(t, "--", exe)
		pid, in, lines := startStepper(t, cmd)
		steps := rand.Intn(200)
		for range steps {
			fmt.Fprintln(in, "go")
		}
		for range rand.Intn(min(steps, 1) + 1) { // a line that is to come
			lines.Scan()
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
		}
		cmd.Wait()
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != unix.SIGKILL {
			t.Fatalf("run %d: %v", i, cmd.ProcessState)
		}
		expectRecorded(t, recordingNamed(t, cmd, "stepper-0001-SIGKILL"))
	}
}

// The recording's directory is removed while the program runs.
func TestRecordDirectoryGone(t *testing.T) {
	cmd := recordCommand(t, "--", crashtest.Compile(t, crashtest.Program{Source: "stepper.c", Text: stepper}))
	var said bytes.Buffer
	cmd.Stderr = &said
	_, in, lines := startStepper(t, cmd)
	if err := os.RemoveAll(filepath.Join(cmd.Dir, "recordings")); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, "go")
	expectLine(t, lines, "1")
	in.Close()
	cmd.Wait()
	if cmd.ProcessState.ExitCode() != 6 || !strings.Contains(said.String(), "no such file or directory") || strings.Contains(said.String(), "diagnose replay") {
		t.Errorf("%v: %s", cmd.ProcessState, said.String())
	}
}

// bulk writes data that the recording must keep, because it reads random bytes.
const bulk = `
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	static char b[4096];
	FILE *f = fopen("/dev/urandom", "r");

	for (int i = 0; i < atoi(argv[1]); i++)
		if (!f || fread(b, sizeof b, 1, f) != 1)
			return 9;
	puts("done");
	return argc == 0 ? 1 : 8;
}
`

// The recording ends if the disk is full, and says so. The program does not notice.
func TestRecordDiskFull(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "bulk.c", Text: bulk})
	full := t.TempDir()
	if err := unix.Mount("none", full, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip(&crashtest.UnsupportedError{What: "mount: " + err.Error()})
	}
	defer unix.Unmount(full, unix.MNT_DETACH)
	for _, x := range []struct {
		name string
		args []string
		kind string
		says string
	}{
		{"disk full", []string{"--output", full}, "disk", "no more room"},
		{"limit", []string{"--max-size", "1"}, "size", "--max-size"},
	} {
		cmd := recordCommand(t, append(x.args, "--", exe, "2000")...)
		status, stdout, stderr := ended(t, cmd)
		if status.ExitStatus() != 8 || stdout != "done\n" {
			t.Errorf("%s: %v, %q, %s", x.name, status, stdout, stderr)
		}
		dir := filepath.Join(cmd.Dir, "recordings")
		if x.name == "disk full" {
			dir = full
		}
		r, err := record.Open(filepath.Join(dir, "bulk-0001-exit-8"))
		if err != nil {
			t.Fatalf("%s: %v\n%s", x.name, err, stderr)
		}
		limits := fmt.Sprint(r.Manifest.Limits)
		r.Close()
		if !strings.Contains(limits, x.kind) || !strings.Contains(stderr, "recording ended early") || !strings.Contains(stderr, x.says) {
			t.Errorf("%s: limits %s, said %s", x.name, limits, stderr)
		}
	}
}

// A disk that is full from the start: whatever is kept, the last line says how
// the program ended and why there is no more.
func TestRecordDiskFullAtTheStart(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "abort.c", Text: "#include <stdlib.h>\nint main(void) { abort(); }\n"})
	cores := 0
	for _, size := range []string{"4k", "16k", "64k", "128k", "512k"} {
		full := t.TempDir()
		if err := unix.Mount("none", full, "tmpfs", 0, "size="+size); err != nil {
			t.Skip(&crashtest.UnsupportedError{What: "mount: " + err.Error()})
		}
		defer unix.Unmount(full, unix.MNT_DETACH)
		cmd := recordCommand(t, "--output", full, "--", exe)
		status, _, stderr := ended(t, cmd)
		if !status.Signaled() || status.Signal() != unix.SIGABRT {
			t.Errorf("%s: %v", size, status)
		}
		if !strings.Contains(stderr, "\ndiagnose: the program died of SIGABRT; ") || !strings.Contains(stderr, "no space left") && !strings.Contains(stderr, "no more room") {
			t.Errorf("%s: %s", size, stderr)
		}
		if strings.Contains(stderr, "passed") || strings.Contains(stderr, "not loaded") {
			t.Errorf("%s: said %s", size, stderr)
		}
		// What can be replayed, and has no core, is told as far as the recording goes.
		dir := filepath.Join(full, "abort-0001-SIGABRT")
		if strings.Contains(stderr, "the core of process") {
			cores++
			if got := diagnose(t, nil, "crash", "--recording", dir); got.status != exitOK || !strings.Contains(got.stdout, "what follows is the process where its recording ends") {
				t.Errorf("%s: status %d, %s%s", size, got.status, got.stdout, got.stderr)
			}
		}
	}
	if cores == 0 {
		t.Error("there was room for the core everywhere, or for nothing")
	}
}
