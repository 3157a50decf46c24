// Loops that a single thread cannot leave, and loops that it can. It traps before the
// one that its argument names, and leaves with status 7 where that ends.
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int taken = 1;
static volatile unsigned count;
static volatile int *shared;
static __attribute__((aligned(16))) uint32_t ones[4] = {1, 1, 1, 1};

#define TURNS 40

/* ---- without an end ---- */

static void load(void)
{
	while (__atomic_load_n(&taken, __ATOMIC_RELAXED))
		;
}

static void exchange(void)
{
	while (__atomic_exchange_n(&taken, 1, __ATOMIC_ACQUIRE))
		;
}

static void compare_exchange(void)
{
	int free = 0;

	while (!__atomic_compare_exchange_n(&taken, &free, 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		free = 0;
		__builtin_ia32_pause();
	}
}

static void both(void)
{
	while (__atomic_exchange_n(&taken, 1, __ATOMIC_ACQUIRE))
		while (__atomic_load_n(&taken, __ATOMIC_RELAXED))
			__builtin_ia32_pause();
}

static __attribute__((noinline)) int is_taken(volatile int *lock, int depth)
{
	volatile int arguments[4] = {depth, depth, depth, depth};

	return depth ? is_taken(lock, depth - 1) : *lock + arguments[0];
}

static void calls(void)
{
	while (is_taken(&taken, 5))
		;
}

/* Longer than what it writes is: a counter that starts again. */
static void backs_off(void)
{
	while (__atomic_load_n(&taken, __ATOMIC_RELAXED))
		for (volatile int i = 0; i < 20; i++)
			__builtin_ia32_pause();
}

/* ---- with one, or with an end that its own state does not tell ---- */

static void counter(void)
{
	for (unsigned i = 0; i < 1u << 20; i++)
		__asm__ volatile("pause" : : "r"(i));
}

static void few(void)
{
	for (unsigned i = 0; i < TURNS; i++)
		__asm__ volatile("pause" : : "r"(i));
}

static void memory(void)
{
	while (++count < 1u << 20)
		;
}

/* The registers that count are those of the vector unit alone. */
static void vectors(void)
{
	__asm__ volatile("pxor %%xmm0, %%xmm0\n"
			 "0: paddd %0, %%xmm0\n"
			 "ptest %1, %%xmm0\n"
			 "jz 0b\n"
			 : : "m"(ones), "m"((uint32_t[4]){1 << 16}) : "xmm0", "cc");
}

static void string(void)
{
	static char from[1 << 16], to[sizeof from];
	void *source = from, *target = to;
	unsigned long length = sizeof from;

	__asm__ volatile("rep movsb" : "+S"(source), "+D"(target), "+c"(length) : : "memory");
}

static void clock_counts(void)
{
	uint64_t begin = __builtin_ia32_rdtsc();

	while (__builtin_ia32_rdtsc() - begin < 1 << 20)
		;
}

static void kernel(void)
{
	for (unsigned i = 0; i < TURNS; i++)
		getppid();
}

static void flags(void)
{
	for (unsigned i = 0; i < TURNS; i++)
		__asm__ volatile("sub $128, %%rsp; pushf; pop %%rax; add $128, %%rsp; test $0x100, %%eax; jz 0f; ud2; 0:" : : : "rax", "cc", "memory");
}

static void with_others(void)
{
	while (*shared)
		;
}

static void fails(void)
{
	*(volatile int *)16;
	for (;;)
		;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*loop)(void);
	} loops[] = {
		{"load", load}, {"exchange", exchange}, {"compare_exchange", compare_exchange}, {"both", both}, {"calls", calls},
		{"backs_off", backs_off}, {"counter", counter}, {"few", few}, {"memory", memory}, {"vectors", vectors}, {"string", string},
		{"clock", clock_counts}, {"kernel", kernel}, {"flags", flags}, {"with_others", with_others}, {"fails", fails},
	};

	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	*shared = 1;
	for (unsigned i = 0; argc == 2 && i < sizeof loops / sizeof *loops; i++)
		if (!strcmp(argv[1], loops[i].name)) {
			__asm__ volatile("int3");
			loops[i].loop();
			return 7;
		}
	return 1;
}
