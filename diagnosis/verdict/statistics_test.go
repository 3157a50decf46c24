package verdict_test

import (
	"slices"
	"testing"

	"diagnose/diagnosis/driver"
	"diagnose/internal/crashtest"
)

// TestStatistics: a counter that the failing function counts by atomic instructions, and that no check reads, is no cause: the order in which threads count
// follows from the one that matters.
func TestStatistics(t *testing.T) {
	crashtest.TracesAccesses(t)
	const queue = queueHead + `
long handled;
static void *work(void *unused)
{
	for (;;) {
		pthread_mutex_lock(&q->lock);
		if (q->head == q->tail && !q->done)
			pthread_cond_wait(&q->more, &q->lock);
		if (q->done && q->head == q->tail) {
			pthread_mutex_unlock(&q->lock);
			return unused;
		}
		int item = q->items[q->head++ % 64];
		pthread_mutex_unlock(&q->lock);
		if (item == 0)
			abort();
		__atomic_fetch_add(&handled, item, __ATOMIC_SEQ_CST);
	}
}
` + queueMain
	for _, b := range []build{{"queue.c", "gcc", "-O1"}, {"queue.c", "clang", "-O2"}} {
		t.Run(b.compiler+" "+b.level, func(t *testing.T) {
			path := crashtest.Compile(t, crashtest.Program{Source: b.source, Text: queue, Compiler: b.compiler, Flags: []string{b.level, "-pthread"}})
			failing, passing := recordedUntil(t, path, nil, "SIGABRT"), recordedUntil(t, path, nil, "exit 0")
			result, err := driver.Crash(t.Context(), driver.Request{Recordings: []string{failing.Dir}, Passing: []string{passing.Dir}, Replays: 1})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range result.Diagnosis.Causes {
				if c.Variable == "handled" || c.Interleaving != nil && slices.Contains(c.Interleaving.Variables, "handled") {
					t.Errorf("a cause: %s", c.Summary)
				}
			}
		})
	}
}
