// ENDS: SIGSEGV
// Functions that are called in copies of the process, while other threads hold locks: one gives it back by itself, the other waits for the
// main thread first.
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_mutex_t lent = PTHREAD_MUTEX_INITIALIZER, kept = PTHREAD_MUTEX_INITIALIZER;
static sem_t have[2], done;
static int fds[2];
int total = 7, places;
volatile int forever = 1;
char *text;

int sum(int a, int b, int c, int d, int e, int f) { return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f; }
double scale(double x, double y) { return x * y + total; }
int count(void) { return ++total; }
char *copy_text(const char *from) { return text = strdup(from); }
int fail(int *p) { return *p; }
int spin(void) { while (forever) total++; return 0; }
int leave(void) { exit(3); }
int descend(int n) { volatile char room[4096]; room[0] = (char)n; return descend(n + 1) + room[0]; }

int lock_lent(void)
{
	pthread_mutex_lock(&lent);
	int n = ++total;
	pthread_mutex_unlock(&lent);
	return n;
}

int lock_kept(void)
{
	pthread_mutex_lock(&kept);
	pthread_mutex_unlock(&kept);
	return 0;
}

// What it does must not be seen outside of the copy.
int escape(const char *path)
{
	FILE *f = fopen(path, "w");
	if (f)
		fclose(f);
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	int killed = kill(getppid(), SIGKILL);
	pid_t child = fork();
	if (!child)
		_exit(0);
	write(1, "escaped\n", 8);
	unlink("/proc/self/cwd/kept");
	return (f != 0) | (s >= 0) << 1 | (child > 0) << 2 | (killed == 0) << 3;
}

// A system call in code that the recording library does not know.
int past_the_library(void)
{
	static const unsigned char code[] = { 0xb8, 110, 0, 0, 0, 0x0f, 0x05, 0xc3 }; // getppid
	void *at = mmap(0, sizeof(code), PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(at, code, sizeof(code));
	return ((int (*)(void))at)();
}

static void *lend(void *unused)
{
	pthread_mutex_lock(&lent);
	sem_post(&have[0]);
	for (int i = 0; i < 400; i++) // until place, also on a busy machine
		usleep(1000);
	pthread_mutex_unlock(&lent);
	return unused;
}

static void *keep(void *unused)
{
	pthread_mutex_lock(&kept);
	sem_post(&have[1]);
	while (sem_wait(&done))
		;
	pthread_mutex_unlock(&kept);
	return unused;
}

__attribute__((noinline)) void place(void) { places++; }

// argv[1] is how many megabytes are written.
int main(int argc, char **argv)
{
	pthread_t t[2];
	size_t size = argc > 1 ? strtoul(argv[1], 0, 10) << 20 : 0;
	if (size)
		memset(malloc(size), 1, size);
	pthread_create(&t[0], 0, lend, 0);
	pthread_create(&t[1], 0, keep, 0);
	sem_wait(&have[0]);
	sem_wait(&have[1]);
	place();
	sem_post(&done);
	pthread_join(t[0], 0);
	pthread_join(t[1], 0);
	total = places;
	return fail((int *)(long)(total - 1));
}
