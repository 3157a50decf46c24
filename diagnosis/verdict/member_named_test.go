package verdict_test

import (
	"strings"
	"testing"

	"diagnose/internal/crashtest"
)

// countedParts loses counts of one member of an array's elements, and looks at another one at its end.
const countedParts = `
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
enum { PARTS = 6, THREADS = 3 };
static struct part { int users, number; char *text; } parts[PARTS];
static int dropped;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void leave(struct part *p)
{
	int left = p->users - 1;
	if (write(1, "", 0) < 0)
		_exit(1);
	usleep(10);
	p->users = left;
	if (left == 0) {
		pthread_mutex_lock(&lock);
		free(p->text);
		p->text = NULL;
		dropped++;
		pthread_mutex_unlock(&lock);
	}
}
static void *use(void *unused)
{
	for (int i = 0; i < PARTS; i++) {
		usleep(50);
		leave(&parts[i]);
	}
	return unused;
}
int main(void)
{
	pthread_t t[THREADS];
	for (int i = 0; i < PARTS; i++) {
		parts[i].users = THREADS;
		parts[i].number = i;
		parts[i].text = malloc(20);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, use, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < PARTS; i++)
		assert(parts[i].text == NULL);
	return 0;
}
`

// TestMemberNamed: a whole array is watched because of one member, and the accesses that interleaved were to another one.
func TestMemberNamed(t *testing.T) {
	crashtest.TracesAccesses(t)
	for _, level := range []string{"-O0", "-O2"} {
		d := diagnosed(t, crashtest.Program{Source: "parts.c", Text: countedParts, Flags: []string{level, "-pthread"}}, nil, "SIGABRT").Diagnosis
		seen := 0
		for _, c := range append(d.Causes, d.Leads...) {
			if c.Interleaving == nil || !strings.HasPrefix(c.Interleaving.Variables[0], "parts[") {
				continue
			}
			for _, a := range c.Interleaving.Failing {
				text := a.Address%16 == 8 // else it is users, with the number in the same word
				if seen++; strings.HasSuffix(c.Interleaving.Variables[0], ".text") != text || !text && !strings.HasSuffix(c.Interleaving.Variables[0], ".users") {
					t.Errorf("%s: %s, %s; accesses %+v", level, c.Kind, c.Summary, c.Interleaving.Failing)
				}
			}
		}
		if seen == 0 {
			t.Errorf("%s: no order of the parts' members; causes %+v, leads %+v", level, d.Causes, d.Leads)
		}
	}
}
