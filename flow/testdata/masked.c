// Stores under masks of AVX-512 that a general register gave: five bytes of an object of five, the second and third of four words.
//
// FLAGS: -O1
// ENDS: SIGABRT
#include <stdlib.h>
#include <string.h>
char *object;
int words[4] = { 1, 2, 3, 4 };
__attribute__((noinline)) static void clear(char *to, unsigned long mask)
{
	__asm__ volatile("kmovd %k1, %%k1\n\t"
			 "vpxor %%xmm1, %%xmm1, %%xmm1\n\t"
			 "vmovdqu8 %%xmm1, (%0)%{%%k1%}"
			 :: "r"(to), "r"(mask) : "xmm1", "memory");
}
__attribute__((noinline)) static void some(int *to, unsigned long mask)
{
	__asm__ volatile("kmovd %k1, %%k2\n\t"
			 "vpbroadcastd %k1, %%xmm2\n\t"
			 "vmovdqu32 %%xmm2, (%0)%{%%k2%}"
			 :: "r"(to), "r"(mask) : "xmm2", "memory");
}
int main(int argc, char **argv)
{
	(void)argv;
	object = malloc(5);
	memcpy(object, "12345", 5);
	clear(object, (1ul << (argc + 4)) - 1);
	some(words, 6ul * argc);
	abort();
}
