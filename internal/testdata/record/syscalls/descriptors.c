// Descriptors that are no files: eventfd, timerfd, signalfd, inotify, memfd, pidfd.
// ENDS: SIGABRT
// EVENTS: syscall 35
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "check.h"

static int counter;

static void *adds(void *unused)
{
	(void)unused;
	for (int i = 0; i < 10; i++)
		check(eventfd_write(counter, 3));
	return NULL;
}

static void events(void)
{
	pthread_t t;
	eventfd_t value, sum = 0;

	counter = check(eventfd(0, EFD_CLOEXEC));
	must(!pthread_create(&t, NULL, adds, NULL));
	while (sum < 30) {
		check(eventfd_read(counter, &value));
		fold_in(&value, sizeof(value));
		sum += value;
	}
	must(!pthread_join(t, NULL));
}

static void timers(void)
{
	struct itimerspec some = { { 0, 1000000 }, { 0, 2000000 } }, old;
	int fd = check(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
	uint64_t times, all = 0;

	check(timerfd_settime(fd, 0, &some, NULL));
	while (all < 5) {
		must(check(read(fd, &times, sizeof(times))) == 8);
		fold_in(&times, sizeof(times));
		all += times;
	}
	check(timerfd_gettime(fd, &old));
	fold_in(&old, sizeof(old));
	some = (struct itimerspec){ { 0, 0 }, { 0, 0 } };
	check(timerfd_settime(fd, 0, &some, &old));
	must(old.it_interval.tv_nsec == 1000000);
}

static void signals(void)
{
	struct signalfd_siginfo info;
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	check(sigprocmask(SIG_BLOCK, &set, NULL));
	fd = check(signalfd(-1, &set, SFD_CLOEXEC));
	check(kill(getpid(), SIGUSR1));
	must(check(read(fd, &info, sizeof(info))) == sizeof(info));
	must(info.ssi_signo == SIGUSR1 && info.ssi_pid == (uint32_t)getpid());
	fold_in(&info, sizeof(info));
}

static void watches(void)
{
	char path[] = "/tmp/dgwatchXXXXXX", text[4096] __attribute__((aligned(8)));
	int fd = check(inotify_init1(IN_CLOEXEC)), file;
	struct pollfd p = { fd, POLLIN, 0 };

	must(mkdtemp(path) != NULL);
	check(inotify_add_watch(fd, path, IN_CREATE | IN_DELETE));
	check(chdir(path));
	file = check(open("born", O_CREAT | O_WRONLY, 0600));
	check(close(file));
	check(unlink("born"));
	must(check(poll(&p, 1, 10000)) == 1);
	fold_in(text, (unsigned long)check(read(fd, text, sizeof(text))));
	must(strcmp(((struct inotify_event *)text)->name, "born") == 0);
	check(chdir("/"));
	check(rmdir(path));
}

/* Two mappings of one file in memory are the same bytes. */
static void memory(void)
{
	int fd = check(memfd_create("two", MFD_CLOEXEC));
	char *one, *other;

	check(ftruncate(fd, 8192));
	check(pwrite(fd, "first", 5, 0));
	one = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	other = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	must(one != MAP_FAILED && other != MAP_FAILED && !strcmp(one, "first"));
	one[0] = 'F';
	must(!strcmp(other, "First"));
	fold_in(other, 6);
}

int main(void)
{
	int fd;

	events();
	timers();
	signals();
	watches();
	memory();
	fd = syscall(SYS_pidfd_open, getpid(), 0);
	if (fd >= 0)
		check(close(fd));
	abort();
}
