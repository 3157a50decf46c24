#include <stdlib.h>
#include <string.h>
struct node { struct node *next, *other; long n; char text[]; };
struct node *heads[1024];
/* Two million objects of 24 to 1,024 bytes in lists, of which some are lost. */
int main(void)
{
	unsigned long x = 88172645463325252ul;
	struct node *last = 0;
	for (int i = 0; i < 2000000; i++) {
		x ^= x << 13; x ^= x >> 7; x ^= x << 17;
		size_t size = 24 + x % 1000;
		struct node *p = malloc(size);
		memset(p, 0x11, size);
		p->next = heads[x >> 20 & 1023]; p->other = last; p->n = i;
		heads[x >> 20 & 1023] = p;
		if (i % 3 == 0) last = p;
	}
	for (int i = 0; i < 100; i++) heads[i] = 0;
	abort();
}
