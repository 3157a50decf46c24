// Text is compressed by references to what came before, and expanded again.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 1 << 16, HASHES = 1 << 12 };
static unsigned char text[SIZE], packed[2 * SIZE], back[SIZE];
static int last[HASHES];

static int pack(void)
{
	int to = 0;

	memset(last, -1, sizeof last);
	for (int at = 0; at < SIZE;) {
		int n = 0, from = -1;

		if (at + 4 <= SIZE) {
			unsigned word;

			memcpy(&word, text + at, 4);
			word = word * 2654435761u >> 20;
			from = last[word];
			last[word] = at;
		}
		if (from >= 0 && at - from < 65536)
			while (n < 255 && at + n < SIZE && text[from + n] == text[at + n])
				n++;
		if (n >= 4) {
			packed[to++] = n;
			packed[to++] = (at - from) & 255;
			packed[to++] = (at - from) >> 8;
			at += n;
		} else {
			packed[to++] = 0;
			packed[to++] = text[at++];
		}
	}
	return to;
}

static void unpack(int size)
{
	int to = 0;

	for (int at = 0; at < size;) {
		int n = packed[at++];

		if (n == 0) {
			back[to++] = packed[at++];
			continue;
		}
		int by = packed[at] | packed[at + 1] << 8;

		at += 2;
		for (; n > 0; n--, to++)
			back[to] = back[to - by];
	}
}

int main(int argc, char **argv)
{
	long rounds = atol(argv[argc - 1]), sum = 0;

	for (long i = 0; i < rounds; i++) {
		for (int k = 0; k < SIZE; k++)
			text[k] = "the quick brown fox jumps"[(k * 7 + k / 29 + i) % 25];
		int size = pack();

		unpack(size);
		sum += size + memcmp(text, back, SIZE);
	}
	printf("%ld\n", sum);
	return 0;
}
