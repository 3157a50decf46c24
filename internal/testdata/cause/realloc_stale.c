// A list of words with a mark on the longest one. The list grows, moves, and the
// mark stays where it was; the longest word then gets an asterisk for its first letter.
// CAUSE kind=use-after-free
// FAILS signal=SIGABRT says="use-after-free"
// RUNS fail: a bee elephants cow dog fox gnu hen ibis
// RUNS pass: a bee elephants cow
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct word {
	char text[12];
	int length;
};

struct list {
	struct word *words;
	int count, room;
	struct word *longest;
	int longest_length;
};

static void grow(struct list *l)
{
	struct word *words = malloc((size_t)l->room * 2 * sizeof(*words)); // OBJECT

	memcpy(words, l->words, (size_t)l->count * sizeof(*words));
#ifdef FIXED
	if (l->longest)
		l->longest = words + (l->longest - l->words);
#endif
	free(l->words);
	l->words = words;
	l->room *= 2;
}

static void add(struct list *l, const char *text)
{
	struct word *w;

	if (l->count == l->room)
		grow(l);
	w = &l->words[l->count++];
	snprintf(w->text, sizeof(w->text), "%s", text);
	w->length = (int)strlen(w->text);
	if (w->length > l->longest_length) {
		l->longest = w;
		l->longest_length = w->length;
	}
}

static void emphasise(struct list *l)
{
	l->longest->text[0] = '*'; // BUG
}

int main(int argc, char **argv)
{
	struct list l = { .room = 4 };

	l.words = malloc((size_t)l.room * sizeof(*l.words));
	for (int i = 1; i < argc; i++)
		add(&l, argv[i]);
	emphasise(&l);
	for (int i = 0; i < l.count; i++)
		printf("%s\n", l.words[i].text);
	free(l.words);
	return 0;
}
