// A number in words of a code, the most significant first: one word too many for
// the largest numbers.
// CAUSE kind=stack-smashing
// FAILS signal=SIGABRT says="stack smashing"
// RUNS fail: 255 65535 281474976710656 18446744073709551615
// RUNS pass: 255 65535 281474976710656
// FLAGS: -fstack-protector-strong
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 8, BITS = 7 };

static unsigned long total;

struct code {
	unsigned long words[WORDS];
};

static void append(unsigned char *out, size_t *used, unsigned long word)
{
	for (int i = 0; i < 8; i++)
		out[(*used)++ & 127] = (unsigned char)(word >> 8 * i);
}

__attribute__((noinline)) static size_t encode(unsigned long number, unsigned char *out)
{
	struct code c;
	size_t used = 0;
	int n = 0;

	do {
		c.words[n] = (number & ((1 << BITS) - 1)) | 0x80; // BUG
		n++;
		number >>= BITS;
#ifdef FIXED
	} while (number && n < WORDS);
#else
	} while (number);
#endif
	for (int i = n < WORDS ? n - 1 : WORDS - 1; i >= 0; i--)
		append(out, &used, c.words[i]);
	return used;
}

int main(int argc, char **argv)
{
	unsigned char out[128];

	for (int i = 1; i < argc; i++) {
		size_t n = encode(strtoul(argv[i], NULL, 10), out);

		for (size_t k = 0; k < n && k < sizeof(out); k++)
			total += out[k];
	}
	printf("%lu\n", total);
	return 0;
}
