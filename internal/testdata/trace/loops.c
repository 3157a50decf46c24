// Loops over arrays and lists, through pointers and by functions of libc.
// WATCH: table 8, table+64 4, node+8 8, total 8
// LEAST: 300
// ENDS: exit 0
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct node {
	struct node *next;
	uint64_t value;
};

struct node node, tail = { NULL, 3 };
uint32_t table[32] __attribute__((aligned(64)));
volatile uint64_t total;

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

__attribute__((noinline)) static void sum(const struct node *list)
{
	for (; list; list = list->next)
		total += list->value;
}

int main(void)
{
	node.next = &tail;
	for (uint32_t i = 0; i < 32; i++)
		table[i] = (i * 7 + 3) % 32;
	for (int round = 0; round < 40; round++) {
		node.value += (uint64_t)round;
		sum(&node);
	}
	qsort(table, 32, sizeof(table[0]), compare);
	memmove(table + 1, table, 20 * sizeof(table[0]));
	for (uint32_t *p = table; p < table + 32; p++)
		total += *p;
	return memcmp(table, table + 1, 4) > 1;
}
