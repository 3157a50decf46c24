// A scale that one model lacks goes through a division, a bound and a product before
// it is an index. Each of them has one thing that it was made of. Where the setter is
// inlined, its store has the constant.
// CAUSE kind=bad-value
// FAILS signal=SIGSEGV says="fault at 0x"
// RUNS fail: coarse
// RUNS pass: fine
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct model {
	char name[12];
	int scale;
};

struct job {
	struct model *model;
	int share, bound, row;
};

enum { ROWS = 64, COLUMNS = 4096 };

static struct model *models;
static struct job current;
static long *cells;

static void set_model(int number, const char *name, int scale)
{
	snprintf(models[number].name, sizeof(models[number].name), "%s", name);
	models[number].scale = scale; // BUG 1
}

static void load_models(void)
{
	models = calloc(2, sizeof(*models));
	set_model(0, "fine", 64);
#ifdef FIXED
	set_model(1, "coarse", 8);
#else
	set_model(1, "coarse", -1600000000); // BUG
#endif
}

static void choose(const char *name)
{
	for (int i = 0; i < 2; i++)
		if (!strcmp(models[i].name, name))
			current.model = &models[i];
}

static void plan(void)
{
	current.share = current.model->scale / 8; // HOP 1
}

static void limit(void)
{
	current.bound = current.share < ROWS ? current.share : ROWS - 1; // HOP 2
}

static void place(void)
{
	current.row = current.bound * 3; // HOP 3
}

static long look_up(void)
{
	return cells[current.row]; // HOP 4
}

int main(int argc, char **argv)
{
	load_models();
	cells = calloc(ROWS, COLUMNS);
	choose(argc > 1 ? argv[1] : "fine");
	plan();
	limit();
	place();
	printf("%ld\n", look_up());
	return 0;
}
