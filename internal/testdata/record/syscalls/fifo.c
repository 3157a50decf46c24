// Two threads open both ends of a FIFO: each open waits for the other thread's.
// ENDS: SIGABRT
// EVENTS: syscall 60
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

#define ROUNDS 10

static char path[] = "/tmp/diagnose-fifo-XXXXXX", name[sizeof(path) + 5];
static pthread_barrier_t over;

static void *writes(void *argument)
{
	for (int i = 0; i < ROUNDS; i++) {
		int fd = (int)check(open(name, O_WRONLY | O_CLOEXEC));

		check(write(fd, &i, sizeof(i)));
		check(close(fd));
		pthread_barrier_wait(&over);
	}
	return argument;
}

int main(void)
{
	pthread_t writer;

	must(mkdtemp(path));
	snprintf(name, sizeof(name), "%s/fifo", path);
	check(mkfifo(name, 0600));
	pthread_barrier_init(&over, NULL, 2);
	must(pthread_create(&writer, NULL, writes, NULL) == 0);
	for (int i = 0; i < ROUNDS; i++) {
		int fd = (int)check(open(name, O_RDONLY | O_CLOEXEC)), got = -1;

		must(check(read(fd, &got, sizeof(got))) == sizeof(got) && got == i);
		must(check(read(fd, &got, sizeof(got))) == 0);
		check(close(fd));
		pthread_barrier_wait(&over);
	}
	pthread_join(writer, NULL);
	check(unlink(name));
	check(rmdir(path));
	abort();
}
