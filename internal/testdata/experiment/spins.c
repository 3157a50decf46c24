/* A thread that reads by one instruction, over and over, until a signal ends the
 * process there. */
// ENDS: exit 3
// FLAGS: -O1
#define _GNU_SOURCE
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

void spin(const long *word);
__asm__(".text\n"
	".globl spin\n"
	".type spin, @function\n"
	"spin: mov (%rdi), %rcx\n\t" /* three bytes, and two: room for one jump */
	"jmp spin\n\t"
	"int3\n"
	".size spin, .-spin\n");

static long word;
const long *volatile cell = &word;

static void ends(int signal, siginfo_t *info, void *context)
{
	const ucontext_t *u = context;
	greg_t at = u->uc_mcontext.gregs[REG_RIP] - (greg_t)spin;

	(void)signal;
	(void)info;
	if (at >= 0 && at < 5)
		_exit(3);
}

int main(void)
{
	struct sigaction act = { .sa_sigaction = ends, .sa_flags = SA_SIGINFO };
	struct itimerval soon = { { 0, 20000 }, { 0, 20000 } };

	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	getppid();
	spin(cell);
	return 0;
}
