// What differs from run to run by its nature: clocks, random bytes, numbers of
// the process and the machine.
// ENDS: SIGABRT
// EVENTS: syscall 40
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static struct timespec stamps[16];
static unsigned char random_bytes[300];

int main(void)
{
	struct timeval tv;
	struct timespec some = { 0, 2000000 }, until;
	struct rusage usage;
	struct sysinfo info;
	struct utsname name;
	struct rlimit limit;
	struct tms tms;
	cpu_set_t set;
	unsigned cpu, node;
	time_t now;

	for (int i = 0; i < 16; i++)
		check(clock_gettime(i & 1 ? CLOCK_MONOTONIC : CLOCK_REALTIME, &stamps[i]));
	check(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &until));
	fold_in(&until, sizeof(until));
	check(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &until));
	check(clock_getres(CLOCK_MONOTONIC, &until));
	check(gettimeofday(&tv, NULL));
	fold_in(&tv, sizeof(tv));
	now = time(NULL);
	fold_in(&now, sizeof(now));
	check(nanosleep(&some, NULL));
	check(clock_gettime(CLOCK_MONOTONIC, &until));
	until.tv_nsec = (until.tv_nsec + 1000000) % 1000000000;
	must(!clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL));
	must(check(getrandom(random_bytes, sizeof(random_bytes), 0)) == sizeof(random_bytes));
	must(!getentropy(random_bytes, 16));
	check(getrusage(RUSAGE_SELF, &usage));
	fold_in(&usage, sizeof(usage));
	check(sysinfo(&info));
	fold_in(&info, sizeof(info));
	check(uname(&name));
	check(getrlimit(RLIMIT_NOFILE, &limit));
	check(times(&tms));
	check(sched_getaffinity(0, sizeof(set), &set));
	check(getcpu(&cpu, &node));
	fold_in(&cpu, sizeof(cpu));
	fold += (unsigned long)getpid() + (unsigned long)gettid() + (unsigned long)getppid() + getuid();
	must(getpid() == gettid());
	for (int i = 0; i < 3; i++)
		check(sched_yield());
	printf("%lx %ld\n", fold, (long)stamps[15].tv_nsec);
	fflush(stdout);
	abort();
}
