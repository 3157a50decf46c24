// A notebook that looks once at a note that it has closed, and then finds its pages wrong. The
// look is a use after free, but the pages are wrong for another reason. Where the note is not
// freed, the program takes another way and ends by its stricter check.
// CAUSE kind=bad-value variable=book.pages
// FAILS signal=SIGABRT says="Assertion"
// RUNS fail: tear
// RUNS pass: keep
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct note {
	unsigned long level;
	char text[56];
};

static struct {
	struct note *note;
	int pages;
} book = { NULL, 12 };

static volatile unsigned long level;

__attribute__((noinline)) static void close_note(void)
{
	free(book.note);
}

__attribute__((noinline)) static void tear(void)
{
#ifndef FIXED
	book.pages = -8; // BUG
#endif
}

__attribute__((noinline)) static void strictly(void)
{
	assert(book.pages == 12);
}

__attribute__((noinline)) static void count(void)
{
	struct note *note = book.note;

	close_note();
	level = note->level;
	if (level == 7)
		strictly();
	assert(book.pages >= 0);
}

int main(int argc, char **argv)
{
	book.note = malloc(sizeof *book.note);
	book.note->level = 7;
	strcpy(book.note->text, "closed");
	if (argc > 1 && !strcmp(argv[1], "tear"))
		tear();
	count();
	puts("well");
	return 0;
}
