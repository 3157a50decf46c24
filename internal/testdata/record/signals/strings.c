// Signals within instructions that repeat: copies, fills and a search.
// ENDS: exit 3
// EVENTS: signal 20
#include <signal.h>
#include <stddef.h>
#include <sys/time.h>

#define SIZE (4 << 20)

static unsigned char from[SIZE], to[SIZE];
static volatile unsigned long handled, seen;

static void on_timer(int signal)
{
	(void)signal;
	/* How far the copy is. */
	for (size_t i = 0; i < SIZE; i += 4096)
		seen = seen * 31 + to[i];
	handled++;
}

static void copy(size_t n)
{
	void *d = to;
	const void *s = from;

	__asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
}

static void fill(size_t n, unsigned long with)
{
	void *d = from;

	n /= 8;
	__asm__ volatile("rep stosq" : "+D"(d), "+c"(n) : "a"(with) : "memory");
}

static size_t search(size_t n, unsigned char what)
{
	const void *d = to;

	__asm__ volatile("repne scasb" : "+D"(d), "+c"(n) : "a"(what) : "memory", "cc");
	return n;
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_timer };
	struct itimerval often = { { 0, 3000 }, { 0, 3000 } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (unsigned long i = 1; handled < 20; i++) {
		fill(SIZE, i * 0x0101010101010101);
		copy(SIZE);
		seen += search(SIZE / 8, (unsigned char)(i - 1));
	}
	return 3;
}
