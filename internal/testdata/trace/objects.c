// Objects of one line, after as many of another as the argument says: their addresses
// depend on it. With two arguments there is one fewer.
// ENDS: exit 0
#include <stdlib.h>

struct item {
	long number, state;
};

struct item *items[3];
void *others[8];

static struct item *make(long number)
{
	struct item *item = malloc(sizeof(*item));

	item->number = number;
	item->state = 0;
	return item;
}

int main(int argc, char **argv)
{
	int before = argc > 1 ? atoi(argv[1]) : 0;

	for (int i = 0; i < before && i < 8; i++)
		others[i] = malloc(sizeof(struct item));
	for (int i = 0; i < (argc > 2 ? 2 : 3); i++)
		items[i] = make(i);
	return 0;
}
