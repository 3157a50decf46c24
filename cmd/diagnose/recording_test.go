package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

const recordedLog = `log 1 pid 4711
1 t1 start 1(0 0x1267 0x7ffff7d8a740 0x7ffffffde000 0x7ffffffff000) = 0
2 t1 syscall read(3 0x7fffffffe000 16) = 42 at 0x7ffff7e5a1b2 out 0x7fffffffe000:"0123456789012345678901234567890123456789\x1b["
3 t1 create 2(0x24a000001000 0x24a001000000 0x401000) = 0 at 0x401300
4 t2 start 2(1 0x1268 0x24a000fff000 0x24a000001000 0x24a001000000) = 0
5 t2 mutex 0x404040(lock) = 0 at 0x401020 skipped 7
6 t1 syscall openat(-100 0x402000 0) = -2(ENOENT) at 0x7ffff7e5b1b2
7 t2 limit syscall() = 0 text 0x0:"bpf \x1b[31m"
8 t2 exit 2() = 0
`

// madeRecording is a recording of a program with a hostile name.
func madeRecording(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "prog-0001-SIGSEGV")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	pid, events, err := eventlog.ReadText(strings.NewReader(recordedLog))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, record.LogName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := eventlog.WriteLog(f, pid, events); err != nil {
		t.Fatal(err)
	}
	pc, fault := evidence.Addr(0x401234), evidence.Addr(8)
	started := time.Date(2024, 5, 6, 7, 8, 9, 0, time.Local)
	ended := started.Add(1500 * time.Millisecond)
	m := &record.Manifest{
		Program: record.Program{Path: "/bin/\x1b[2Jprog", Args: record.Texts([]string{"prog", "a b", "\x1b]0;x\a"}), Directory: "/tmp"},
		PID:     4711,
		Machine: record.Machine{Kernel: "6.1", CPU: "some", CPUs: 2},
		Outcome: record.Outcome{Kind: record.OutcomeSignal, Signal: 11, Thread: 2, PC: &pc, FaultAddr: &fault},
		Limits:  []eventlog.Limit{{Kind: "vdso", Text: "not hidden"}},
		Times:   record.Times{Started: started, Ended: &ended, UserNS: 2e9},
	}
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRecordingShow(t *testing.T) {
	dir := madeRecording(t)
	got := diagnose(t, nil, "recording", "show", dir)
	want := `recording:  ` + dir + `
program:    /bin/\x1b[2Jprog
command:    prog 'a b' '\x1b]0;x\x07'
directory:  /tmp
outcome:    SIGSEGV at address 0x8 in thread 2, pc 0x401234
started:    2024-05-06 07:08:09, process 4711, took 1.5s, 2s of processor time
machine:    some, 2 processors, Linux 6.1
log:        8 events of 2 threads
limit:      vdso: not hidden
limit:      syscall: bpf \x1b[31m

  Thread   Tid  Parent  Events  Bytes  Relocked  End
       1  4711       0       4    368         0  with the process
       2  4712       1       4    272         7  ended

  Kind     Events  Bytes
  start         2    176
  syscall       2    208
  exit          1     48
  create        1     72
  mutex         1     56
  limit         1     80

  System call  Calls  Errors  Bytes
  read             1       0    136
  openat           1       1     72
`
	shown, _, found := strings.Cut(got.stdout, "\n  File")
	if got.status != exitOK || !found || shown != want {
		t.Errorf("status %d, %s\n%s\nwant\n%s", got.status, got.stderr, got.stdout, want)
	}
}

func TestRecordingShowJSON(t *testing.T) {
	got := diagnose(t, nil, "recording", "show", "--format", "json", madeRecording(t))
	var s shown
	if err := json.Unmarshal([]byte(got.stdout), &s); err != nil || got.status != exitOK {
		t.Fatalf("status %d, %v\n%s", got.status, err, got.stdout)
	}
	if s.Version != "1.1" || s.Events != 8 || len(s.Threads) != 2 || s.Calls[0].Name != "read" || s.Manifest.PID != 4711 || len(s.Limits) != 2 ||
		s.Manifest.Program.Path != "/bin/\x1b[2Jprog" {
		t.Errorf("%+v", s)
	}
}

func TestRecordingShowEvents(t *testing.T) {
	dir := madeRecording(t)
	if got := diagnose(t, nil, "recording", "show", "--events", "--full", dir); got.status != exitOK || got.stdout != recordedLog {
		t.Errorf("status %d, %s\n%s", got.status, got.stderr, got.stdout)
	}
	got := diagnose(t, nil, "recording", "show", "--events", dir)
	if !strings.Contains(got.stdout, `:"01234567890123456789012345678901"...42`) || strings.Contains(got.stdout, "\x1b") {
		t.Errorf("%s", got.stdout)
	}
	got = diagnose(t, nil, "recording", "show", "--events", "--thread", "2", dir)
	if strings.Count(got.stdout, "\n") != 5 || strings.Contains(got.stdout, " t1 ") {
		t.Errorf("thread 2: %s", got.stdout)
	}
	got = diagnose(t, nil, "recording", "show", "--events", "--format", "json", dir)
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	var e shownEvent
	if len(lines) != 8 || json.Unmarshal([]byte(lines[1]), &e) != nil || e.Name != "read" || e.Payloads[0].Length != 42 || len(e.Payloads[0].Data) != 32 {
		t.Errorf("%s", got.stdout)
	}
}

// A recording that was cut off is shown up to the cut, and says so.
func TestRecordingCutOff(t *testing.T) {
	dir := madeRecording(t)
	m, err := record.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, record.LogName)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	m.Sizes.Log = info.Size()
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	if got := diagnose(t, nil, "recording", "check", dir); got.status != exitOK || !strings.Contains(got.stdout, ": whole, 8 events") {
		t.Fatalf("status %d, %s%s", got.status, got.stdout, got.stderr)
	}
	if err := os.Truncate(path, info.Size()-65536); err != nil {
		t.Fatal(err)
	}
	got := diagnose(t, nil, "recording", "check", dir)
	if got.status != exitInternal || !strings.Contains(got.stdout, "cut off: "+dir+"/log: log is cut off at") || strings.Contains(got.stdout, "damaged") {
		t.Errorf("check: status %d, %s%s", got.status, got.stdout, got.stderr)
	}
	got = diagnose(t, nil, "recording", "show", dir)
	if got.status != exitOK || !strings.Contains(got.stdout, "\ncut off:    log is cut off at") {
		t.Errorf("show: status %d, %s%s", got.status, got.stdout, got.stderr)
	}
	got = diagnose(t, nil, "recording", "show", "--events", dir)
	if got.status != exitOK || !strings.Contains(got.stderr, "the events end here") || strings.Count(got.stdout, " t1 ") != 3 {
		t.Errorf("events: status %d, %s%s", got.status, got.stdout, got.stderr)
	}
}

func TestRecordingRefuses(t *testing.T) {
	dir := madeRecording(t)
	for _, x := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"show"}, exitUsage, "takes one recording"},
		{[]string{"show", "--thread", "2", dir}, exitUsage, "go with --events"},
		{[]string{"show", "--events", "--thread", "9", dir}, exitUsage, "no events of thread 9"},
		{[]string{"show", "--format", "xml", dir}, exitUsage, "text or json"},
		{[]string{"show", filepath.Dir(dir)}, exitInput, "there are some in it: " + dir},
		{[]string{"check", dir + "/none"}, exitInput, "no such file"},
		{[]string{"look"}, exitUsage, "unknown command"},
	} {
		if got := diagnose(t, nil, append([]string{"recording"}, x.args...)...); got.status != x.status || !strings.Contains(got.stderr, x.want) {
			t.Errorf("%v: status %d, %s", x.args, got.status, got.stderr)
		}
	}
}

// The core of a recording is read like any other: the program failed, not the library in which the
// signal found it.
func TestRecordedCore(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "fails.c", Text: `#include <stdlib.h>
__attribute__((noinline)) void give_up(void) { abort(); }
int main(void) { give_up(); return 0; }
`})
	cmd := recordCommand(t, "--", exe)
	if status, _, stderr := ended(t, cmd); !status.Signaled() || status.Signal() != unix.SIGABRT {
		t.Fatalf("%v: %s", status, stderr)
	}
	found, err := filepath.Glob(filepath.Join(cmd.Dir, "recordings", "*-SIGABRT"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	if got := diagnose(t, nil, "recording", "check", found[0]); got.status != exitOK {
		t.Errorf("status %d: %s%s", got.status, got.stdout, got.stderr)
	}
	got := diagnose(t, nil, "crash", "--core", filepath.Join(found[0], record.CoreName))
	if got.status != exitOK || !strings.HasPrefix(got.stdout, "abort in give_up\n") {
		t.Errorf("status %d: %.300s%s", got.status, got.stdout, got.stderr)
	}
}
