package verdict_test

import (
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// clearedObjects clear an object by a call whose size is none of a vector's: the C library's memset may do so by a store with a mask. The
// program gives up because of another value.
var clearedObjects = map[string]string{
	"counted.c": `#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tally { unsigned votes, spoiled; int seats; };

static struct tally tally;

__attribute__((noinline)) static void count(struct tally *t, unsigned votes)
{
    for (unsigned i = 0; i < votes; i++)
        t->seats += 48;
}

int main(int argc, char **argv)
{
    (void)argv;
    count(&tally, argc + 5);
    int seats = tally.seats;
    int from[6];
    int to[6];
    memset(from, 0, sizeof from);
    from[3] = seats;
    memcpy(to, from, sizeof to);
    if ((unsigned)to[3] > 63) {
        fputs("too many\n", stderr);
        abort();
    }
    return 0;
}
`,
	"basket.c": `#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct basket { int before, after; long weights[2]; };

static int total;

__attribute__((noinline)) static void weigh(int n)
{
    while (n-- > 0)
        total += 31;
}

__attribute__((noinline)) static void pass(struct basket *b)
{
    b->after = b->before;
}

int main(int argc, char **argv)
{
    struct basket basket, kept;

    (void)argv;
    weigh(argc + 5);
    memset(&basket, 0, sizeof basket);
    basket.before = total;
    memcpy(&kept, &basket, sizeof kept);
    pass(&kept);
    if ((unsigned)kept.after > 63) {
        fputs("too heavy\n", stderr);
        abort();
    }
    return 0;
}
`,
}

// TestCleared: a store with a mask is not outside of an object because its operand ends after it.
func TestCleared(t *testing.T) {
	crashtest.TracesAccesses(t)
	for name, text := range clearedObjects {
		t.Run(name, func(t *testing.T) {
			d := diagnosed(t, crashtest.Program{Source: name, Text: text, Flags: []string{"-O0"}}, nil, "SIGABRT").Diagnosis
			for _, c := range append(d.Causes, d.Leads...) {
				if c.Kind == evidence.CauseOverwritten {
					t.Errorf("%q", c.Summary)
				}
			}
			if len(d.Causes)+len(d.Leads) == 0 {
				t.Error("the value was not followed")
			}
		})
	}
}
