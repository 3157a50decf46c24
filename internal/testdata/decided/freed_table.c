/* A parser reads its table's size after it has freed the table, and gives up because the size is wrong. The error goes through
 * three functions. */
// ENDS: exit 2
// DECIDED: freed in drop_table
#include <stdio.h>
#include <stdlib.h>

struct table {
	unsigned count;
	unsigned char *colours;
};
struct image {
	struct table *table;
	int error;
};

__attribute__((noinline)) static void drop_table(struct table *t)
{
	free(t);
}

__attribute__((noinline)) static struct table *new_table(unsigned count)
{
	if (count > 256)
		return NULL;
	struct table *t = malloc(sizeof *t);
	if (t)
		t->count = count;
	return t;
}

__attribute__((noinline)) static int header(struct image *i)
{
	if (i->table)
		drop_table(i->table);
	struct table *copy = new_table(i->table->count);
	if (!copy) {
		i->error = 109;
		return 0;
	}
	i->table = copy;
	return 1;
}

__attribute__((noinline)) static int decode(struct image *i)
{
	for (int n = 0; n < 3; n++)
		if (!header(i))
			return -1;
	return 0;
}

int main(void)
{
	struct image i = { new_table(16), 0 };
	if (decode(&i) < 0) {
		fprintf(stderr, "error %d\n", i.error);
		exit(2);
	}
	return 0;
}
