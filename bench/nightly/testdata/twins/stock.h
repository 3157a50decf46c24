// A stock of goods, of which each source file has one defect: they are much alike, and
// most of what the failing runs do is equal.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GOODS = 4, SHELVES = 16 };

struct good {
	char name[12];
	int shelf;
};

struct label {
	int number;
	char text[20];
};

#ifndef BOLTS
#define BOLTS 5
#endif
#ifndef RED
#define RED 7
#endif
#ifndef UNLISTED_SHELF
#define UNLISTED_SHELF(good) !(good)
#endif
#ifndef UNLISTED_LENGTH
#define UNLISTED_LENGTH(good) !(good)
#endif
#ifndef FRONT_SIZE
#define FRONT_SIZE(text) (sizeof(int) + strlen(text) + 1)
#endif
#ifndef BACK_SIZE
#define BACK_SIZE(text) (sizeof(int) + strlen(text) + 1)
#endif

static struct good *goods;
static long *shelves;
static struct good *chosen;

/* The setter of which each caller may hand over a bad value. */
static void set_shelf(int number, const char *name, int shelf)
{
	snprintf(goods[number].name, sizeof(goods[number].name), "%s", name);
	goods[number].shelf = shelf;
}

static void load_tools(void)
{
	strcpy(goods[0].name, "nails");
	set_shelf(1, "bolts", BOLTS);
}

static void load_paints(void)
{
	set_shelf(2, "red", RED);
	strcpy(goods[3].name, "blue");
}

__attribute__((noinline)) static struct good *lookup(const char *name)
{
	for (int i = 0; i < GOODS; i++)
		if (strcmp(goods[i].name, name) == 0)
			return &goods[i];
	return NULL;
}

__attribute__((noinline)) static long count(const char *name)
{
	chosen = lookup(name);
	if (!chosen)
		return 0;
	return shelves[chosen->shelf];
}

/* Two callers that do not ask whether there is such a good. */
__attribute__((noinline)) static int shelf_of(const char *name)
{
	struct good *g = lookup(name);

	if (UNLISTED_SHELF(g))
		return 0;
	return g->shelf;
}

__attribute__((noinline)) static int length_of(const char *name)
{
	struct good *g = lookup(name);

	if (UNLISTED_LENGTH(g))
		return 0;
	return (int)strlen(g->name);
}

/* One place that stores past the end of what two others allocated. */
__attribute__((noinline)) static void fill(struct label *l, int number, const char *text)
{
	l->number = number;
	strcpy(l->text, text);
}

__attribute__((noinline)) static int print_front(const char *text)
{
	struct label *l = malloc(FRONT_SIZE(text));

	fill(l, 1, text);
	int n = printf("front %d: %s\n", l->number, l->text);
	free(l);
	return n;
}

__attribute__((noinline)) static int print_back(const char *text)
{
	struct label *l = malloc(BACK_SIZE(text));

	fill(l, 2, text);
	int n = printf("back %d: %s\n", l->number, l->text);
	free(l);
	return n;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "count", *which = argc > 2 ? argv[2] : "nails";

	goods = calloc(GOODS, sizeof(*goods));
	shelves = calloc(SHELVES, sizeof(*shelves));
	load_tools();
	load_paints();
	if (!strcmp(what, "count"))
		printf("%ld\n", count(which));
	else if (!strcmp(what, "shelf"))
		printf("%d\n", shelf_of(which));
	else if (!strcmp(what, "length"))
		printf("%d\n", length_of(which));
	else if (!strcmp(what, "front"))
		print_front(which);
	else
		print_back(which);
	return 0;
}
