package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/internal/crashtest"
	"diagnose/replay/record"
	"diagnose/replay/record/eventlog"
)

// replayable records a shell that ends with status 3.
func replayable(t *testing.T) string {
	t.Helper()
	cmd := recordCommand(t, "--output", "recordings", "--", "/bin/sh", "-c", "echo said; exit 3")
	cmd.Run() // its status is the program's
	names := recordings(t, cmd)
	if len(names) != 1 {
		t.Fatalf("recordings %q, want one", names)
	}
	return filepath.Join(cmd.Dir, "recordings", names[0])
}

func TestReplay(t *testing.T) {
	dir := replayable(t)
	got := diagnose(t, nil, "replay", dir, "--verify", "--echo", "--format", "json")
	if got.status != 0 {
		t.Fatalf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
	var report replayReport
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil {
		t.Fatal(err)
	}
	if !report.Reached || report.Identical == nil || !*report.Identical || report.End != "exit" || report.Status != 3 ||
		report.Events == 0 || report.Events != report.Total || report.Comparison.Bytes == 0 {
		t.Errorf("%s", got.stdout)
	}
	if !strings.Contains(got.stderr, "said\n") {
		t.Errorf("--echo shows %q", got.stderr)
	}
	got = diagnose(t, nil, "replay", dir)
	if got.status != 0 || got.stderr != "" || !strings.Contains(got.stdout, "reached the recorded end, status 3") {
		t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
	got = diagnose(t, nil, "replay", dir, "--until", "1:2")
	if got.status != 0 || !strings.Contains(got.stdout, "stopped at the moment") || !strings.Contains(got.stdout, "moment     1:2:0x") {
		t.Errorf("--until: status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
}

func TestReplayRefuses(t *testing.T) {
	dir := replayable(t)
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{}, exitUsage, "one recording"},
		{[]string{dir, "--until", "x"}, exitUsage, "no moment"},
		{[]string{dir, "--until", "1:1", "--verify"}, exitUsage, "exclude"},
		{[]string{dir, "--format", "sarif"}, exitUsage, "text or json"},
		{[]string{dir, "--until", "9:1"}, exitInput, "no moment 9:1"},
		{[]string{filepath.Dir(dir)}, exitInput, dir},
		{[]string{"/nowhere"}, exitInput, "/nowhere"},
	} {
		got := diagnose(t, nil, append([]string{"replay"}, c.args...)...)
		if got.status != c.status || !strings.Contains(got.stderr, c.says) {
			t.Errorf("%q: status %d, want %d, and %q in %q", c.args, got.status, c.status, c.says, got.stderr)
		}
	}
}

// divergeAtWrite changes the last write in a recording's log to a read.
func divergeAtWrite(t *testing.T, dir string) {
	t.Helper()
	rec, err := record.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	changed := int64(0)
	for e, err := range rec.Log.Ordered() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == eventlog.KindSyscall && eventlog.SyscallName(e.Object) == "write" {
			changed = e.Offset
		}
	}
	if changed == 0 {
		t.Fatal("the recording has no write")
	}
	f, err := os.OpenFile(filepath.Join(dir, record.LogName), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const object = 16 // offsetof(struct dg_event, object)
	if _, err := f.WriteAt([]byte{0}, changed+object); err != nil {
		t.Fatal(err)
	}
}

func TestReplayDiverged(t *testing.T) {
	dir := replayable(t)
	divergeAtWrite(t, dir)
	got := diagnose(t, nil, "replay", dir)
	if got.status != exitNotReplayed || !strings.Contains(got.stdout, "the recording has read(") || !strings.Contains(got.stdout, "the replay reached write(") {
		t.Errorf("status %d\n%s%s", got.status, got.stdout, got.stderr)
	}
	if strings.Contains(got.stdout, namesTurns) {
		t.Errorf("of a program with one thread: %s", got.stdout)
	}
}

const namesTurns = "'diagnose record --races=turns' has the order of accesses to memory"

// TestReplayNamesTurns: where a replay of a program with threads diverges, the report names --races=turns, unless the recording was
// made with it.
func TestReplayNamesTurns(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "two.c", Flags: []string{"-pthread"}, Text: `
#include <pthread.h>
#include <unistd.h>
static void *second(void *argument) { return argument; }
int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, second, NULL);
	pthread_join(thread, NULL);
	return write(1, "said\n", 5) != 5;
}
`})
	for races, want := range map[string]bool{racesEvents: true, racesTurns: false} {
		cmd := recordCommand(t, "--races="+races, "--all", "--output", "recordings", "--", exe)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		names := recordings(t, cmd)
		if len(names) != 1 {
			t.Fatalf("recordings %q, want one", names)
		}
		dir := filepath.Join(cmd.Dir, "recordings", names[0])
		divergeAtWrite(t, dir)
		for _, more := range []string{"--no-search", "--budget=1s"} {
			got := diagnose(t, nil, "replay", dir, more)
			if got.status != exitNotReplayed || strings.Contains(got.stdout, namesTurns) != want {
				t.Errorf("--races=%s %s: status %d\n%s%s", races, more, got.status, got.stdout, got.stderr)
			}
		}
	}
}
