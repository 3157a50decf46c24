package verdict_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/evidence"
	"diagnose/internal/crashtest"
	"diagnose/internal/recordtest"
)

// handling begins programs that leave the handlers of their faults by a jump.
const handling = `
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
static sigjmp_buf top;
static void caught(int sig) { siglongjmp(top, sig); }
__attribute__((noinline)) static void stop(int status) { fprintf(stderr, "stops\n"); exit(status); }
`

// probing tries memory by faults, as programs do that find out what can be read.
const probing = handling + `
__attribute__((noinline)) static int readable(const char *p)
{
	if (sigsetjmp(top, 1))
		return 0;
	return *(const volatile char *)p, 1;
}
`

// handledPrograms end with a status after a handler of a fault, or in one.
var handledPrograms = []struct {
	name, source string
	failure      evidence.FailureKind
	// finding is in the summary of the finding on the fault; empty: there is none.
	finding string
	// proved is the variable of the proved cause; empty: nothing is proved. undecided is in what
	// the experiments say that decide nothing.
	proved, undecided string
	// replayed is the variable of the first cause where an experiment cures the run, but no passing run is there to compare with.
	replayed string
}{
	{name: "probe", failure: evidence.ExitStatus, finding: "without the fault the replays ended in the same way", replayed: "total", source: probing + `
static int total = 4;
__attribute__((noinline)) static void adjust(void) { total = 7; }
int main(int argc, char **argv)
{
	signal(SIGSEGV, caught);
	printf("%d %d\n", readable((char *)&total), readable((char *)16));
	adjust();
	if (total != 4)
		return 1;
	return 0;
}`},
	{name: "probes", failure: evidence.ExitStatus, finding: "without the fault the replays ended in the same way", replayed: "books.open", source: probing + `
static struct { int open, closed; } books = { 3, 3 };
__attribute__((noinline)) static void lend(void) { books.open = 9; }
int main(int argc, char **argv)
{
	signal(SIGSEGV, caught);
	for (volatile long i = 1; i < 9; i++)
		printf("%d", readable((char *)(i * 4096 - 1)));
	lend();
	if (books.open != 3)
		return 1;
	return 0;
}`},
	{name: "jump", failure: evidence.NullPointer, finding: "the process ended with status 4 after that", proved: "account", source: handling + `
struct account { long a, b; };
static struct account one = { 1, 2 }, *account = &one;
__attribute__((noinline)) static void logout(void) { account = NULL; }
__attribute__((noinline)) static long sum(volatile struct account *p) { return p->a + p->b; }
int main(int argc, char **argv)
{
	signal(SIGSEGV, caught);
	if (sigsetjmp(top, 1))
		stop(4);
	logout();
	printf("%ld\n", sum(account));
	return 0;
}`},
	// Without the store another fault is handled, by the same jump, and the status is 0.
	{name: "another fault and status 0", failure: evidence.NullPointer, finding: "the process ended with status 3 after that", undecided: "a fault at", source: handling + `
static int one = 1, *first = &one, *second = NULL;
static volatile int at;
__attribute__((noinline)) static void reset(void) { first = NULL; }
__attribute__((noinline)) static int one_of(volatile int *p) { return *p; }
__attribute__((noinline)) static int two_of(volatile int *p) { return *p + 1; }
int main(int argc, char **argv)
{
	signal(SIGSEGV, caught);
	if (sigsetjmp(top, 1)) {
		if (at == 1)
			stop(3);
		return 0;
	}
	reset();
	at = 1;
	printf("%d\n", one_of(first));
	at = 2;
	printf("%d\n", two_of(second));
	return 0;
}`},
	// Without the store another fault is handled, and the program ends as it did.
	{name: "another fault and the same end", failure: evidence.NullPointer, undecided: "after another signal was handled", source: handling + `
static int one = 1, *first = &one, *second = NULL;
static void died(int sig) { _Exit(3); }
__attribute__((noinline)) static void reset(void) { first = NULL; }
__attribute__((noinline)) static int one_of(volatile int *p) { return *p; }
__attribute__((noinline)) static int two_of(volatile int *p) { return *p + 1; }
int main(int argc, char **argv)
{
	signal(SIGSEGV, died);
	reset();
	printf("%d\n", one_of(first));
	printf("%d\n", two_of(second));
	return 0;
}`},
	// Without the store another function aborts, with the same handler.
	{name: "another abort", failure: evidence.AssertionFailure, undecided: "after another signal was handled", source: `
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
static int first = 1, second = 2;
static void died(int sig) { _Exit(3); }
__attribute__((noinline)) static void reset(void) { first = 5; }
__attribute__((noinline)) static void check_first(void) { assert(first == 1); }
__attribute__((noinline)) static void check_second(void) { assert(second == 1); }
int main(int argc, char **argv)
{
	signal(SIGABRT, died);
	reset();
	check_first();
	check_second();
	return 0;
}`},
}

// TestHandledFaults: a fault whose handler was left by a jump is the failure only if the run
// passes without it, and a run in which another signal was handled is neither the recorded
// failure nor one that passes.
func TestHandledFaults(t *testing.T) {
	for _, x := range handledPrograms {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			source, path := filepath.Join(dir, "program.c"), filepath.Join(dir, "program")
			if err := os.WriteFile(source, []byte(x.source), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("gcc", "-g", "-O1", "-o", path, source).CombinedOutput(); err != nil {
				t.Fatalf("gcc: %v\n%s", err, out)
			}
			r := recordtest.RecordProgram(t, path, nil, "", "")
			result, err := driver.Crash(t.Context(), driver.Request{Recordings: []string{r.Dir}, Replays: 1})
			if err != nil {
				t.Fatal(err)
			}
			if err := result.Check(); err != nil {
				t.Error(err)
			}
			if result.Failure.Kind != x.failure {
				t.Errorf("the failure is %s (%s), not %s", result.Failure.Kind, result.Failure.Sentence, x.failure)
			}
			checkHandledFinding(t, result, x.finding)
			checkHandledCause(t, result.Diagnosis, x.proved, x.undecided)
			if x.replayed != "" {
				if list := result.Diagnosis.Causes; len(list) == 0 || list[0].Variable != x.replayed || list[0].Proof != evidence.Replayed {
					t.Errorf("%s is not the first cause: %+v", x.replayed, list)
				}
			}
		})
	}
}

func checkHandledFinding(t *testing.T, result *evidence.Case, want string) {
	t.Helper()
	for _, f := range result.Findings {
		if f.Kind != evidence.FindingHandledFault {
			continue
		}
		if want == "" || !strings.Contains(f.Summary, want) || f.Proof != evidence.Replayed {
			t.Errorf("the finding is %q %s %v, want %q", f.Summary, f.Proof, f.Facts, want)
		}
		return
	}
	if want != "" {
		t.Errorf("there is no finding on the fault")
	}
}

func checkHandledCause(t *testing.T, d *evidence.Diagnosis, proved, undecided string) {
	t.Helper()
	said := false
	for i := range d.Causes {
		c := &d.Causes[i]
		if c.Proof == evidence.Proved && (i > 0 || c.Variable != proved) {
			t.Errorf("proved is %s", c.Summary)
		}
		for _, e := range c.Experiments {
			said = said || strings.Contains(e.Outcome+" "+e.Undecided, undecided) && e.Undecided != "" && !e.Expect && e.Failed == 0
		}
		t.Logf("%s [%s] %+v", c.Summary, c.Proof, c.Experiments)
	}
	if proved != "" && (len(d.Causes) == 0 || d.Causes[0].Proof != evidence.Proved) {
		t.Errorf("no cause is proved")
	}
	if undecided != "" && !said {
		t.Errorf("no experiment is undecided because of %q", undecided)
	}
}

// A signal that another process sent, and whose handler aborts, ends a replay as it ended the run:
// the handler's own place is where it ended, while the report is headed by what was interrupted.
func TestHandledFromOutside(t *testing.T) {
	crashtest.TracesAccesses(t)
	exe := crashtest.Compile(t, crashtest.Program{Source: "waits.c", Text: `#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static char alternative[65536];
static void given_up(int number, siginfo_t *info, void *context)
{
	(void)info, (void)context;
	fprintf(stderr, "got %d\n", number);
	abort();
}
int main(void)
{
	stack_t stack = { .ss_sp = alternative, .ss_size = sizeof alternative };
	struct sigaction action = { .sa_sigaction = given_up, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &action, NULL);
	if (!fork()) {
		kill(getppid(), SIGSEGV);
		_exit(0);
	}
	puts("ready");
	sleep(20);
	return 0;
}
`})
	r := recordtest.RecordProgram(t, exe, nil, "", "SIGABRT")
	result, err := driver.Crash(t.Context(), driver.Request{Recordings: []string{r.Dir}, Replays: 1})
	if err != nil {
		t.Fatal(err)
	}
	if site := result.Failure.Site; site == nil || site.Function != "main" {
		t.Fatalf("the failure is in %+v", site)
	}
	for _, l := range result.Diagnosis.Coverage.Limits {
		if l.Code == evidence.LimitNeverReplayed {
			t.Error(l.Text)
		}
	}
}
