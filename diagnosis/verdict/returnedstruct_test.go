package verdict_test

import (
	"testing"

	"diagnose/evidence"
	"diagnose/internal/crashtest"
)

// returnedStructs have a function that returns a struct through the address that its caller hands over, and stores the members one by
// one. A member other than the first gets null.
var returnedStructs = map[string]string{
	"ticket.c": `#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct seat {
    int number;
    struct seat *next;
    char name[8];
};

struct ticket {
    int number;
    struct seat *seat;
    long price;
};

static struct seat *rows[8];
static unsigned char wire[64];

static void add(int number)
{
    struct seat *s = calloc(1, sizeof *s);

    s->number = number;
    s->next = rows[number % 8];
    rows[number % 8] = s;
    snprintf(s->name, sizeof s->name, "s%d", number);
}

static struct seat *find(int number)
{
    struct seat *s = rows[number % 8];

    while (s && s->number != number)
        s = s->next;
    return s;
}

static __attribute__((noinline)) struct ticket issue(struct seat *seat, int number)
{
    struct ticket t;

    t.number = number;
    t.seat = seat;
    t.price = number * 3L;
    return t;
}

int main(int argc, char **argv)
{
    (void)argv;
    for (int i = 0; i < 9; i++)
        add(36 + 3 * i);
    struct seat *found = find(63 + argc), *received;
    for (size_t i = 0; i < sizeof found; i++)
        wire[8 + i] = ((unsigned char *)&found)[i];
    memcpy(&received, wire + 8, sizeof received);
    struct ticket sold = issue(received, 4), kept;
    kept = sold;
    puts("sold");
    printf("%zu\n", strlen(kept.seat->name));
    return 0;
}
`,
	"match.c": `#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word { struct word *after; const char *text; };
struct match { struct { short line, column; } at; struct word *word; int flags[6]; };

static struct word *words;
static char moved[3][sizeof(struct word *)];

static void add(const char *text)
{
    struct word *w = calloc(1, sizeof *w);

    w->text = text;
    w->after = words;
    words = w;
}

static struct word *search(char first)
{
    struct word *w = words;

    while (w && w->text[0] != first)
        w = w->after;
    return w;
}

static __attribute__((noinline)) struct match match(struct word *w, int line)
{
    struct match m;

    m.at.line = (short)line;
    m.at.column = 1;
    m.word = w;
    for (int i = 0; i < 6; i++)
        m.flags[i] = line;
    return m;
}

int main(int argc, char **argv)
{
    (void)argv;
    add("one");
    add("two");
    struct word *w = search((char)('w' + argc)), *back;
    for (size_t i = 0; i < sizeof w; i++)
        moved[1][i] = ((char *)&w)[i];
    memcpy(&back, moved[1], sizeof back);
    struct match m = match(back, argc);
    puts("matched");
    printf("%zu %d\n", strlen((char *)m.word), m.flags[2]);
    return 0;
}
`,
}

// TestReturnedStruct: the stores to the members of a struct that is returned are no overflow of its first member.
func TestReturnedStruct(t *testing.T) {
	crashtest.TracesAccesses(t)
	for name, text := range returnedStructs {
		for _, compiler := range []string{"gcc", "clang"} {
			t.Run(name+compiler, func(t *testing.T) {
				d := diagnosed(t, crashtest.Program{Source: name, Text: text, Compiler: compiler, Flags: []string{"-O1"}}, nil, "SIGSEGV").Diagnosis
				for _, c := range d.Causes {
					if c.Kind == evidence.CauseOverwritten {
						t.Errorf("%q", c.Summary)
					}
				}
				if len(d.Causes)+len(d.Leads) == 0 {
					t.Error("the null pointer was not followed")
				}
			})
		}
	}
}
