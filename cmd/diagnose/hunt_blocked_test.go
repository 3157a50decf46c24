package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/internal/crashtest"
)

// A reader waits for news on main's stack that no thread brings, and main waits for the reader.
const noNews = `
#include <condition_variable>
#include <mutex>
#include <thread>

struct board {
	std::mutex lock;
	std::condition_variable there;
	bool news = false;

	void read()
	{
		std::unique_lock<std::mutex> held(lock);
		there.wait(held, [this] { return news; });
	}
};

int main()
{
	board notes;
	std::thread reader([&] { notes.read(); });
	reader.join();
}
`

// TestHuntBlocked: if every thread waits in the recording of a hunt, the report begins with what
// each thread waits for.
func TestHuntBlocked(t *testing.T) {
	exe := crashtest.Compile(t, crashtest.Program{Source: "board.cc", Text: noNews, Flags: []string{"-O0", "-pthread"}})
	output := filepath.Join(t.TempDir(), "recordings")
	o := diagnose(t, nil, "hunt", "--seeds", "2", "--output", output, "--", exe)
	if o.status == exitInput {
		t.Skip(o.stderr)
	}
	if o.status != exitFailingSchedule {
		t.Fatalf("status %d: %s%s", o.status, o.stdout, o.stderr)
	}
	found, err := filepath.Glob(filepath.Join(output, "*-deadlock"))
	if err != nil || len(found) != 1 {
		t.Fatalf("recordings %v, %v: %s", found, err, o.stdout)
	}
	o = diagnose(t, nil, "crash", "--format", "json", "--recording", found[0])
	var report struct {
		Case struct {
			Failure struct{ Kind, Sentence, Proof string }
		}
	}
	if err := json.Unmarshal([]byte(o.stdout), &report); err != nil {
		t.Fatalf("status %d, %v: %s", o.status, err, o.stderr)
	}
	f := report.Case.Failure
	const want = "thread 1 waits for the end of thread 2, thread 2 waits for condition variable `main's notes.there`; no thread is left to end that"
	if f.Kind != "deadlock" || f.Proof != "from core" || !strings.Contains(f.Sentence, want) {
		t.Errorf("kind %s [%s]: %s", f.Kind, f.Proof, f.Sentence)
	}
}

// The run that passes has the same accesses in the same order, as the wait precedes them. The cause
// is found without that run.
func TestHuntBlockedCause(t *testing.T) {
	text, err := os.ReadFile("../../internal/testdata/hunt/lost_signal.c")
	if err != nil {
		t.Fatal(err)
	}
	exe := crashtest.Compile(t, crashtest.Program{Source: "lost_signal.c", Text: string(text), Flags: []string{"-O1", "-pthread"}})
	o := diagnose(t, nil, "hunt", "--diagnose", "--output", filepath.Join(t.TempDir(), "recordings"), "--", exe)
	if o.status == exitInput {
		t.Skip(o.stderr)
	}
	for _, want := range []string{"deadlock in", "main's p.stop", "[proved]", "missing lock  main's p.lock"} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("status %d, %q is missing:\n%s%s", o.status, want, o.stdout, o.stderr)
		}
	}
}
