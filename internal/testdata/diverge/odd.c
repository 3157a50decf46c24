/* A checksum whose last step has its arguments swapped; it is only made of texts of odd length. */
// ENDS: exit 4
// FAILS: abc
// PASSES: ab | abcd | zyxw12
// REFUSED: abcd 77
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static unsigned mix(unsigned sum, unsigned word)
{
	return (sum << 5 | sum >> 27) - 3 * word;
}

__attribute__((noinline)) static unsigned checksum(const char *text, size_t n)
{
	unsigned sum = 1;
	size_t i = 0;
	for (; i + 1 < n; i += 2)
		sum = mix(sum, (unsigned char)text[i] | (unsigned char)text[i + 1] << 8);
	if (i < n) // DIVERGES
#ifdef FIXED
		sum = mix(sum, (unsigned char)text[i]);
#else
		sum = mix((unsigned char)text[i], sum);
#endif
	return sum;
}

__attribute__((noinline)) static unsigned reference(const char *text, size_t n)
{
	unsigned sum = 1, half = 0;
	for (size_t i = 0; i < n; i++) {
		half |= (unsigned)(unsigned char)text[i] << (i % 2 * 8);
		if (i % 2 == 1 || i + 1 == n) {
			sum = (sum << 5 | sum >> 27) - 3 * half;
			half = 0;
		}
	}
	return sum;
}

int main(int argc, char **argv)
{
	size_t n = strlen(argv[1]);
	unsigned want = argc > 2 ? (unsigned)atoi(argv[2]) : reference(argv[1], n);
	if (checksum(argv[1], n) != want) {
		fprintf(stderr, "bad checksum\n");
		return 4;
	}
	puts("good");
	return 0;
}
