/* A state machine with a wrong increment: an escape takes one character and not two. */
// ENDS: exit 1
// FAILS: "a\"b"
// PASSES: "abc" | "" | "a.b.c"
// REFUSED: "a
#include <stdio.h>
#include <stdlib.h>

enum state { before, inside, after };

#ifdef FIXED
enum { escaped = 2 };
#else
enum { escaped = 1 };
#endif

__attribute__((noinline)) static enum state scan(const char *s)
{
	enum state state = before;
	while (*s) {
		switch (state) {
		case before:
			if (*s != '"')
				return before;
			state = inside;
			s++;
			break;
		case inside:
			if (*s == '\\' && s[1]) { // DIVERGES
				s += escaped;
				break;
			}
			if (*s++ == '"')
				state = after;
			break;
		case after:
			return inside;
		}
	}
	return state;
}

int main(int argc, char **argv)
{
	(void)argc;
	if (scan(argv[1]) != after) {
		fprintf(stderr, "no string: %s\n", argv[1]);
		exit(1);
	}
	puts("a string");
	return 0;
}
