// Threads compute in code that the program has written. Its loop adds to a counter that the
// threads share, without a lock, so its end tells when each of them was preempted.
//
// The argument "before": the code is written before the threads start, into memory that stays
// writable. "after": each thread writes its own, after its last event, and calls it.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define THREADS 3
#define ROUNDS 20000000u

typedef void code(unsigned long *counter, unsigned long rounds);

static const uint8_t loop[] = {
	0x48, 0x8b, 0x87, 0x80, 0, 0, 0,       /* mov 0x80(%rdi),%rax */
	0x48, 0x8d, 0x44, 0x40, 0x01,          /* lea 1(%rax,%rax,2),%rax */
	0x48, 0x01, 0xf0,                      /* add %rsi,%rax */
	0x48, 0x89, 0x87, 0x80, 0, 0, 0,       /* mov %rax,0x80(%rdi) */
	0x48, 0xff, 0xce,                      /* dec %rsi */
	0x75, 0xe5,                            /* jne to the start */
	0xc3,                                  /* ret */
};

static unsigned long counter[32];
static code *written;
static uint8_t *room;

static void *work(void *number)
{
	uint8_t *mine = room + 4096 * (uintptr_t)number;

	if (!written)
		memcpy(mine, loop, sizeof(loop));
	(written ? written : (code *)mine)(counter, ROUNDS);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	room = mmap(NULL, THREADS * 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED || argc < 2)
		return 1;
	if (!strcmp(argv[1], "before")) {
		memcpy(room, loop, sizeof(loop));
		written = (code *)room;
	}
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%lu\n", counter[16]);
	abort();
}
