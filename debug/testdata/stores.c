/* Two threads store to words in turn, by instructions and by read(), with events between them; then the main thread fails. */
#include <pthread.h>
#include <unistd.h>

int got, stored;
static int ends[2];

__attribute__((noinline)) void place(int i) { __asm__ volatile("" ::"r"(i) : "memory"); }

static void *turn(void *p)
{
	stored = (int)(long)p;
	place(stored);
	return p;
}

int main(void)
{
	if (pipe(ends))
		return 1;
	for (int i = 1; i <= 6; i++) {
		pthread_t t;

		if (write(ends[1], &i, sizeof i) != sizeof i)
			return 1;
		if (read(ends[0], &got, sizeof got) != sizeof got)
			return 1;
		place(got);
		pthread_create(&t, 0, turn, (void *)(long)(100 * i));
		pthread_join(t, 0);
		stored = i;
	}
	*(volatile int *)8 = stored;
	return 0;
}
