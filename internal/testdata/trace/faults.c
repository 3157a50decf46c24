// Instructions that access watched memory and also raise signals: once it is there
// for them to do again, once its handler goes elsewhere, and at last for good.
// WATCH: page+8 8, word 4, page+16 8
// LEAST: 50
// ENDS: SIGSEGV
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

uint64_t page[512] __attribute__((aligned(4096)));
volatile uint32_t word;
static sigjmp_buf back;
static volatile int again = 1;

static void handler(int number)
{
	word += (uint32_t)number;
	if (!again)
		siglongjmp(back, 1);
	if (mprotect(page, sizeof(page), PROT_READ | PROT_WRITE))
		abort();
}

__attribute__((noinline)) static void put(uint64_t *at, uint64_t value)
{
	*at = value;
	word++;
}

__attribute__((noinline)) static uint64_t get(const uint64_t *at)
{
	uint64_t sum = word;

	return sum + *at;
}

__attribute__((noinline)) static void copy(void *to, const void *from, uint64_t count)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
}

int main(void)
{
	static uint64_t elsewhere[64];
	struct sigaction a;

	memset(&a, 0, sizeof(a));
	a.sa_handler = handler;
	if (sigaction(SIGSEGV, &a, NULL))
		return 1;
	for (int i = 0; i < 3; i++) {
		if (mprotect(page, sizeof(page), PROT_NONE))
			return 2;
		put(&page[1], (uint64_t)i + 7);
		mprotect(page, sizeof(page), PROT_NONE);
		put(&elsewhere[i], get(&page[1]));
		mprotect(page, sizeof(page), PROT_READ);
		copy(page, elsewhere, 12);
		copy(elsewhere, page, 20);
	}
	again = 0;
	for (int i = 0; i < 3; i++)
		if (!sigsetjmp(back, 1))
			put((uint64_t *)(uintptr_t)(16 + i), 1);
	signal(SIGSEGV, SIG_DFL);
	copy(elsewhere, NULL, get(&page[1]) & 15);
	put((uint64_t *)8, word);
	return 0;
}
