/* A table is sorted, which takes a million instructions, after one of its pointers was set to a number. */
// FLAGS: -O1
// ENDS: SIGSEGV
// WAY: constant in mark
#include <cstdio>
#include <cstdlib>

struct Entry {
	unsigned key;
	const long *value;
};

static long one = 1;
static Entry table[600];

__attribute__((noinline)) static void mark(Entry *e) { e->value = reinterpret_cast<const long *>(8); }

__attribute__((noinline)) static void sort(Entry *e, int n)
{
	for (int i = 1; i < n; i++)
		for (int k = i; k > 0 && e[k].key < e[k - 1].key; k--) {
			Entry x = e[k];
			e[k] = e[k - 1];
			e[k - 1] = x;
		}
}

__attribute__((noinline)) static long total(const Entry *e, int n)
{
	long sum = 0;
	for (int i = 0; i < n; i++)
		sum += *e[i].value;
	return sum;
}

int main(int argc, char **)
{
	for (int i = 0; i < 600; i++)
		table[i] = {static_cast<unsigned>(i) * 2654435761u * argc, &one};
	mark(&table[77]);
	sort(table, 600);
	std::printf("%ld\n", total(table, 600));
	return 0;
}
