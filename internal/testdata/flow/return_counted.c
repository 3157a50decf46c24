/* A loop of the program's own stores numbers over the return address of the function that called it. */
// FLAGS: -fno-stack-protector
// ENDS: SIGSEGV
// WAY: overwrote in number
#include <alloca.h>
#include <stdio.h>

__attribute__((noinline)) static void number(long *to, long from, long count)
{
	for (long i = 0; i < count; i++) {
		to[i] = from + 3 * i;
		__asm__ volatile("" ::: "memory");
	}
}

__attribute__((noinline)) static long table(long size, long count)
{
	long *list = alloca(size * sizeof *list);

	number(list, 0x4141414141410000, count);
	return list[1];
}

int main(int argc, char **argv)
{
	(void)argv;
	printf("%ld\n", table(4, argc > 1 ? 4 : 24));
	return 0;
}
