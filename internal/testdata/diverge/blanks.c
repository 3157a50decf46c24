/* A parser without a check: blanks, written as _, before an operator are not passed over. */
// ENDS: exit 1
// FAILS: 1_+2
// PASSES: 1+2 | 12+30-4 | 7
// REFUSED: 1*2
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static const char *at;

__attribute__((noinline)) static long number(void)
{
	if (!isdigit((unsigned char)*at)) {
		fprintf(stderr, "a number is missing\n");
		exit(1);
	}
	long n = 0;
	while (*at >= '0' && *at <= '9')
		n = 10 * n + (*at++ - '0');
	return n;
}

__attribute__((noinline)) static long sum(void)
{
	long n = number();
	for (;;) {
#ifdef FIXED
		while (*at == '_')
			at++;
#endif
		if (*at == 0)
			return n;
		if (*at == '+') {
			at++;
			n += number();
		} else if (*at == '-') { // DIVERGES
			at++;
			n -= number();
		} else {
			fprintf(stderr, "unexpected: %s\n", at);
			exit(1);
		}
	}
}

int main(int argc, char **argv)
{
	(void)argc;
	at = argv[1];
	printf("%ld\n", sum());
	return 0;
}
