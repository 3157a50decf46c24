/* A copy runs past an array into the pointer after it. That the copy's store is skipped cures the
 * run; that the text was filled does not become the cause by that. */
// ENDS: SIGSEGV
// FLAGS: -O0
#include <stdio.h>
#include <string.h>

static void fill(char *s, int n)
{
	for (int i = 0; i < n; i++)
		s[i] = 'E';
}

static void put(char *to, const char *from, int n)
{
	for (int i = 0; i < n; i++)
		to[i] = from[i]; // WANT
}

static size_t work(const char *text, int n)
{
	struct {
		char buf[16];
		const char *name;
	} w;

	w.name = "name";
	put(w.buf, text, n);
	return strlen(w.name);
}

int main(void)
{
	char text[40] = "";

	fill(text, 39);
	printf("%zu\n", work(text, 24));
	return 0;
}
