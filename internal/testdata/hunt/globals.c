// Threads that access global variables, between operations that order nothing: with
// flags that are used after an access, a red zone, vectors, and pointers.
// ENDS: exit 0
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 40

struct item {
	long number, twice;
};

static volatile long total, sum, rounds;
static volatile int flag;
static struct item *volatile current;
static double average;
static char text[32];
static long indexed[4];

/* The carry of an addition is used after accesses of a global, and below the stack
 * pointer there is a value. */
static __attribute__((noinline)) long carries(unsigned long a, unsigned long b)
{
	long result;

	__asm__ volatile("movq %1, -16(%%rsp)\n\t"
			 "addq %3, %1\n\t"
			 "movq %2, %0\n\t"
			 "movq %0, %2\n\t"
			 "movl $0, %%eax\n\t"
			 "adcq $0, %%rax\n\t"
			 "addq -16(%%rsp), %%rax\n\t"
			 "movq %%rax, %0"
			 : "=&r"(result), "+r"(a), "+m"(rounds)
			 : "r"(b)
			 : "rax", "cc", "memory");
	return result;
}

static void *work(void *arg)
{
	long me = (long)arg;

	for (long i = 0; i < ROUNDS; i++) {
		struct item *mine = malloc(sizeof(*mine)), *seen;

		mine->number = i;
		mine->twice = 2 * i;
		if (carries(UINT64_MAX, 1) != 0 || carries(3, 4) != 3)
			abort();
		current = mine;
		seen = current;
		if (seen->twice != 2 * seen->number)
			abort();
		total++;
		average = average * 0.5 + (double)i;
		text[i % 31] = (char)('a' + i % 26);
		indexed[me]++;
		if (!flag)
			flag = (int)me;
		sum += i;
	}
	return NULL;
}

int main(void)
{
	pthread_t t[3];

	for (long i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, work, (void *)(i + 1));
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	for (int i = 1; i < 4; i++)
		if (indexed[i] != ROUNDS)
			abort();
	return total < ROUNDS || total > 3 * ROUNDS || !flag || !text[0] || average < 0;
}
