/* Writes one byte past an object: what the harness must not overlook. */
#include <stdlib.h>

int main(void)
{
	volatile char *p = malloc(40);

	for (int i = 0; i < 100; i++)
		free(malloc(i));
	p[40] = 1;
	free((void *)p);
	return 0;
}
