// What functions that take the lock of a FILE leave in registers that no code
// reads: a signal after them finds it, and a replay has to come there as well.
// ENDS: SIGABRT
// EVENTS: order 4
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned long left[4][2][8];

/* Calls a function with a FILE, and keeps the registers after it. */
void call(FILE *file, void *function, unsigned long *registers);
__asm__(".text\n"
	".type call, @function\n"
	"call:\n"
	"	pushq %rbx\n"
	"	movq %rdx, %rbx\n"
	"	call *%rsi\n"
	"	movq %rcx, 0(%rbx)\n"
	"	movq %rdx, 8(%rbx)\n"
	"	movq %rsi, 16(%rbx)\n"
	"	movq %rdi, 24(%rbx)\n"
	"	movq %r8, 32(%rbx)\n"
	"	movq %r9, 40(%rbx)\n"
	"	movq %r10, 48(%rbx)\n"
	"	movq %r11, 56(%rbx)\n"
	"	popq %rbx\n"
	"	ret\n"
	".size call, .-call\n");

static void *other(void *arg)
{
	pause();
	return arg;
}

int main(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, other, NULL))
		return 2;
	for (int i = 0; i < 4; i++) { /* the first ones bind names */
		call(stderr, (void *)flockfile, left[i][0]);
		call(stderr, (void *)funlockfile, left[i][1]);
	}
	abort();
}
