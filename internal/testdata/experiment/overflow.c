/* A buffer one too short, with a pointer after it that is used later. */
// ENDS: SIGSEGV
// FLAGS: -O0
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct node {
	char *name;
	long count;
};

static struct node *node;
static char *buffer;

static void fill(char *at, int n)
{
	for (int i = 0; i < n; i++)
		at[i] = 'A';
}

static long length(const char *of)
{
	return (long)strlen(of);
}

int main(void)
{
	/* Both of one size class, side by side. */
	getppid();
	buffer = malloc(sizeof(*node));
	node = malloc(sizeof(*node));
	node->name = strdup("node");
	node->count = 0;
	fill(buffer, 40);
	node->count += length(node->name);
	printf("%ld\n", node->count);
	return 0;
}
