// The time-stamp counter, read by instructions that are replaced, by ones that
// cannot be (a jump leads past them), by code that is made while the program
// runs, and in a thread that was there before. It never goes back, and it
// has its own rate.
// ENDS: SIGABRT
// EVENTS: tsc 3080
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <x86intrin.h>

static uint64_t last, sum;
static pthread_barrier_t made;

static void see(uint64_t counter)
{
	assert(counter >= last);
	last = counter;
	sum = sum * 31 + counter;
}

static uint64_t cramped(void)
{
	uint32_t low, high;

	__asm__ volatile("jmp 1f\n2: jmp 3f\n1: rdtsc\njmp 2b\n3:" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

static uint64_t (*make(void))(void)
{
	/* rdtsc; shl $32, %rdx; or %rdx, %rax; ret */
	static const uint8_t code[] = { 0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0, 0xc3 };
	uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert(page != MAP_FAILED);
	memcpy(page, code, sizeof(code));
	assert(!mprotect(page, 4096, PROT_READ | PROT_EXEC));
	return (uint64_t(*)(void))page;
}

static uint64_t (*volatile generated)(void);

static void *other(void *unused)
{
	pthread_barrier_wait(&made); /* it exists */
	pthread_barrier_wait(&made); /* there is code */
	for (int i = 0; i < 10; i++)
		see(generated());
	return unused;
}

int main(void)
{
	pthread_t thread;
	unsigned processor;
	uint64_t from, short_way, long_way;

	for (int i = 0; i < 1000; i++) {
		see(__rdtsc());
		see(__rdtscp(&processor));
		sum += processor;
		see(cramped());
	}
	assert(!pthread_barrier_init(&made, NULL, 2) && !pthread_create(&thread, NULL, other, NULL));
	pthread_barrier_wait(&made);
	generated = make();
	pthread_barrier_wait(&made);
	assert(!pthread_join(thread, NULL));
	usleep(60000);
	for (int i = 0; i < 70; i++)
		see(generated());
	from = generated();
	usleep(1000);
	short_way = generated() - from;
	from = generated();
	usleep(100000);
	long_way = generated() - from;
	assert(long_way > short_way);
	printf("%lu\n", (unsigned long)(sum + last));
	abort();
}
