package probe_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"diagnose/probe"
	"diagnose/probe/sandbox"
	"diagnose/replay/record"
)

const copiedSource = testPrograms + "copied.c"

// eachCopied runs a test with the recordings of copied.c. at is its place.
func eachCopied(t *testing.T, run func(t *testing.T, rec *record.Recording, at string)) {
	data, err := os.ReadFile(copiedSource)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(data), "/* PLACE */")
	at := fmt.Sprintf("copied.c:%d", strings.Count(before, "\n")+1)
	for _, b := range builds {
		t.Run(b.compiler+b.level, func(t *testing.T) { run(t, recorded(t, copiedSource, "SIGABRT", b.compiler, b.level), at) })
	}
}

// TestCodeCalls: arguments and results of all kinds; effects are seen until the end of the hit, by later calls and by the code, and not at the
// next hit. The replay ends as recorded.
func TestCodeCalls(t *testing.T) {
	eachCopied(t, func(t *testing.T, rec *record.Recording, at string) {
		log := ask(t, rec, probe.Question{Code: code(t, "calls.c", `
static int hits;
at `+at+` {
	struct pair p = swapped((struct pair){3, 4});
	struct mixed m = raised((struct mixed){1.5, 40});
	struct big b = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
	b = twice(twice(b));
	printf("%d %d", ++hits, total);
	printf(" %d", count());
	printf(" %d", count());
	printf(" %ld %g %Lg", add(1, 2, 3, 4, 5, 6, 7, 8), scale(1.5, 4), longer(5, 2));
	printf(" %ld %ld %g %ld %ld %ld %d\n", p.a, p.b, m.x, m.n, b.n[0], b.n[11], total);
}`)})
		var want strings.Builder
		for hit := range 3 {
			fmt.Fprintf(&want, "%d %d %d %d 204 %d 2.5 4 3 2.5 42 4 48 %d\n", hit+1, 7+hit, 8+hit, 9+hit, 6+9+hit, 9+hit)
		}
		if got := printed(log); got != want.String() {
			t.Errorf("got  %s\nwant %s %+v", got, want.String(), log.Code[0].First)
		}
	})
}

// TestCodeCallsMemory: memory of the code is the function's, too: literals, its stack, its heap, of several pages; and functions of the
// program are called through pointers, of the program's and by the C library of the code.
func TestCodeCallsMemory(t *testing.T) {
	eachCopied(t, func(t *testing.T, rec *record.Recording, at string) {
		log := ask(t, rec, probe.Question{Code: code(t, "memory.c", `
static char mine[] = "kept";
at `+at+` {
	char text[] = "loud";
	size_t size = 100000;
	char *large = malloc(size);
	memset(large, 1, size);
	large[size - 1] = 42;
	struct item own, *made = make(7, "from the code");
	fill(&own, 9);
	printf("%zu %d %s %d %s %ld\n", measure("four") - total, shout(text), text, shout(mine), mine, sum(large, size));
	printf("%d %g %s %d, %s %d\n", made->key, made->weight, made->name, made->next->key, items->name, items == made);
	printf("%d %s %d %d\n", own.key, own.name, own.next == items, chosen(&own) + chosen(made));
	struct item list[4] = {{.key = 4}, {.key = 2}, {.key = 3}, {.key = 1}};
	qsort(list, 4, sizeof *list, by_key);
	printf("%d %d %d %d\n", list[0].key, list[1].key, list[2].key, list[3].key);
	mine[0] = 'k';
	free(large);
}`)})
		want := "4 4 LOUD 4 KEPT 100041\n7 3.5 from the code 1, from the code 1\n9 filled 1 16\n1 2 3 4\n"
		want += strings.ReplaceAll(want, "LOUD 4", "LOUD 1") + strings.ReplaceAll(want, "LOUD 4", "LOUD 1")
		if got := printed(log); got != want {
			t.Errorf("got  %s\nwant %s %+v", got, want, log.Code[0].First)
		}
	})
}

// TestCodeCallsLocks: a lock that another thread gives back, and emulated system calls.
func TestCodeCallsLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "escaped")
	eachCopied(t, func(t *testing.T, rec *record.Recording, at string) {
		log := ask(t, rec, probe.Question{Code: code(t, "locks.c", `
at `+at+` {
	int before = total, first = lock_lent(), second = lock_lent();
	save("`+path+`", "text");
	char *large = calloc(25, 4000);
	printf("%d %d %d %ld\n", first - before, second - before, total != second, put(large, 100000));
	free(large);
}`)})
		if got := printed(log); got != strings.Repeat("1 2 1 100000\n", 3) {
			t.Errorf("%s %+v", got, log.Code[0].First)
		}
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a function in a copy made a file: %v", err)
		}
	})
}

// TestCodeCallsThreads: each of three threads calls, while it has a lock and without it, and changes the queue of its copy alone.
func TestCodeCallsThreads(t *testing.T) {
	eachBuild(t, func(t *testing.T, rec *record.Recording) {
		log := ask(t, rec, probe.Question{Code: code(t, "threads.c", `
static int hits, wrong;
at `+marked(t, "PUSHED")+` {
	if (++hits % 3 == 0)
		wrong += weigh(item->key, 2) != 2 * item->key || q->head != item;
}
at queue.c:93 {
	struct item mine = {.key = -7};
	if (++hits % 3 == 0) {
		unsigned long before = pushed;
		push(&jobs, &mine); /* others may push and pop until it gets the lock */
		wrong += pushed <= before || mine.next == &mine;
	}
	if (hits == 1800)
		printf("%d wrong\n", wrong);
}`)})
		if got := printed(log); got != "0 wrong\n" || log.Code[0].Runs != items || log.Code[1].Runs != items {
			t.Errorf("%.500s %+v", got, log.Code)
		}
	})
}

// TestCodeCallsStuck: while the other threads of a copy run, and make threads, the one that calls waits for a lock that it has itself.
func TestCodeCallsStuck(t *testing.T) {
	rec := recorded(t, source, "SIGABRT", "gcc", "-O2")
	log := ask(t, rec, probe.Question{Code: code(t, "stuck.c", `
static int hits;
at `+marked(t, "PUSHED")+` {
	struct item mine = {.key = 7};
	if (++hits <= 10)
		push(q, &mine);
}`)})
	c := log.Code[0]
	if c.Failed != 10 || c.Runs != items-10 {
		t.Errorf("%+v", c)
	}
	for i := range log.Rows {
		if f := log.Rows[i].Failure; f.Kind != sandbox.Called || f.Name != "push" || f.Line != 6 || !strings.Contains(f.Text, "waits for mutex") {
			t.Errorf("%+v", f)
		}
	}
}

// TestCodeCallsFail: a call that does not return ends the hit with its line and the reason; the next hit runs.
func TestCodeCallsFail(t *testing.T) {
	eachCopied(t, func(t *testing.T, rec *record.Recording, at string) {
		for _, x := range []struct{ call, name, why string }{
			{"fail((int *)16);", "fail", "SIGSEGV; thread 1 was at fail copied.c:"},
			{"leave();", "leave", "with the status 3"},
			{"lock_kept();", "lock_kept", "it cannot continue"},
			{"spin();", "spin", "it has used its time"},
			{"apply(doubled, 2);", "apply", "SIGSEGV"}, // a function of the code
			{"through();", "leave", "with the status 3"},
		} {
			limit := time.Minute
			if x.name == "spin" {
				limit = time.Second
			}
			log := ask(t, rec, probe.Question{CodeLimits: sandbox.Limits{Time: limit}, Code: code(t, "fails.c", `
static int doubled(int n) { return 2 * n; }
at `+at+` {
	void (*through)(void) = (void (*)(void))leave;
	puts("before");
	`+x.call+`
	puts("after");
}`)})
			c := log.Code[0]
			if c.First == nil || c.First.Kind != sandbox.Called || c.First.Line != 6 || c.First.Name != x.name || c.First.Over || !strings.Contains(c.First.Text, x.why) {
				t.Errorf("%s: %+v", x.call, c.First)
			}
			if c.Failed != 3 || strings.Contains(printed(log), "after") {
				t.Errorf("%s: %+v", x.call, c)
			}
		}
	})
}
