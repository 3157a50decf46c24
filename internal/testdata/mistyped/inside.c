/* A store through a pointer to a struct is inside of that struct, whatever its first member is. */
// ENDS: SIGSEGV
#include <stdio.h>
#include <string.h>

struct settings {
	struct {
		void *(*allocate)(unsigned long);
	} memory;
	long limit;
	char *start;
};

__attribute__((noinline)) static int first(char **text)
{
	return **text;
}

__attribute__((noinline)) static int match(char *subject, int count)
{
	struct settings block;
	struct settings *s = &block;

	memset(s, 0, sizeof *s);
	s->limit = count;
	s->start = count > 3 ? subject : NULL; /* CAUSE */
	printf("%ld\n", s->limit);
	return first(&block.start);
}

int main(int argc, char **argv)
{
	return match(argv[0], argc);
}
