package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"diagnose/internal/crashtest"
	"diagnose/reports"
)

// A thread has one number in every report of a failure: with the recording, and of its
// core alone, whose first thread is the failing one. A thread that ended is counted.
func TestThreadNumbersOfOneFailure(t *testing.T) {
	const text = `#include <pthread.h>
#include <unistd.h>
static int *volatile nowhere;
static void *brief(void *arg) { return arg; }
static void *idle(void *arg) { for (;;) pause(); return arg; }
static void *failing(void *arg) { *nowhere = 1; return arg; }
int main(void)
{
	pthread_t t;
	pthread_create(&t, NULL, brief, NULL);
	pthread_join(t, NULL);
	pthread_create(&t, NULL, idle, NULL);
	pthread_create(&t, NULL, failing, NULL);
	pthread_join(t, NULL);
	return 0;
}
`
	cmd := recordCommand(t, "--", crashtest.Compile(t, crashtest.Program{Source: "numbers.c", Text: text, Flags: []string{"-O1", "-pthread"}}))
	ended(t, cmd)
	dir := filepath.Join(cmd.Dir, "recordings", "numbers-0001-SIGSEGV")
	for name, args := range map[string][]string{"recording": {"--recording", dir}, "core": {"--core", filepath.Join(dir, "core")}} {
		got := diagnose(t, nil, append([]string{"crash", "--format", "json"}, args...)...)
		var doc reports.Document
		if err := json.Unmarshal([]byte(got.stdout), &doc); err != nil || got.status != exitOK {
			t.Fatalf("%s: status %d, %v\n%s", name, got.status, err, got.stderr)
		}
		var threads []string
		for _, g := range doc.Case.Stacks {
			for _, x := range g.Threads {
				threads = append(threads, fmt.Sprintf("%d %s", x.Number, x.Start))
			}
		}
		slices.Sort(threads)
		if text := strings.Join(threads, ", "); text != "1 main, 3 idle, 4 failing" || doc.Case.Failure.Thread.Number != 4 {
			t.Errorf("%s: threads %s; thread %d failed", name, text, doc.Case.Failure.Thread.Number)
		}
	}
}
