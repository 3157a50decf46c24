/* A store past the end of an array comes before the read past its end whose value fails. */
// FLAGS: -O2
// ENDS: SIGSEGV
// WAY: outside in mark
#include <cstdio>
#include <cstdlib>

struct Slot {
	const char *name;
	long uses;
};

__attribute__((noinline)) static void mark(Slot *slots, long count)
{
	for (long i = 0; i <= count; i++) {
		slots[i].uses = i;
		__asm__ volatile("" ::: "memory");
	}
}

__attribute__((noinline)) static char initial(const Slot *slots, long of) { return slots[of].name[0]; }

int main(int argc, char **argv)
{
	long count = 3 + argc;
	auto *slots = static_cast<Slot *>(std::malloc(count * sizeof(Slot)));

	for (long i = 0; i < count; i++)
		slots[i] = {argv[0], 0};
	mark(slots, count);
	std::printf("%c\n", initial(slots, count));
	return 0;
}
