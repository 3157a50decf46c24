// abort while another thread is between two repetitions of a string instruction: no
// breakpoint stops a replay there. A jump leads to the next instruction, so a probe at the
// string instruction has no room for a jump, and stops the thread.
//
// ENDS: SIGABRT
// EVENTS: create 1
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { BYTES = 1 << 20 };

static void *fills(void *arg)
{
	for (long passes = 0;; passes++) {
		char *to = arg;
		unsigned long left = BYTES - passes % 1024;
		int turns = 1;

		__asm__ volatile("rep stosb\n1:\tsub $1, %2\n\tjns 1b"
				 : "+D"(to), "+c"(left), "+r"(turns) : "a"((int)passes) : "memory", "cc");
	}
	return NULL;
}

int main(void)
{
	pthread_t t;

	pthread_create(&t, NULL, fills, malloc(BYTES));
	usleep(3000);
	abort();
}
