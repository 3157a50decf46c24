// A database that shows what its threads do, after MySQL's bug 3596: the text is
// looked at, and shown when the thread has done with it.
// CAUSE kind=atomicity-violation variable=workers[1].info pattern=RWR
// FAILS signal=SIGSEGV says="fault at 0x0"
// RUNS fail: 5 25
// RUNS pass: 5 150
// COMPILERS: gcc clang
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORKERS = 2 };

struct worker {
	int number;
	const char *info;
	int rows;
};

static struct worker workers[WORKERS];
static pthread_mutex_t out_lock = PTHREAD_MUTEX_INITIALIZER;
static size_t shown;

static void print_head(const struct worker *w)
{
	char line[60];
	int n = snprintf(line, sizeof(line), "worker %d, %d rows: ", w->number, w->rows);

	pthread_mutex_lock(&out_lock);
	write(1, line, (size_t)n);
	pthread_mutex_unlock(&out_lock);
	usleep(50000);
}

static void print_info(const char *info)
{
	size_t n = strlen(info);

	pthread_mutex_lock(&out_lock);
	shown += n;
	write(1, info, n);
	write(1, "\n", 1);
	pthread_mutex_unlock(&out_lock);
}

static void show_processes(void)
{
	for (int i = 0; i < WORKERS; i++) {
		struct worker *w = &workers[i];
#ifdef FIXED
		const char *info = __atomic_load_n(&w->info, __ATOMIC_ACQUIRE);

		if (info) {
			print_head(w);
			print_info(info);
		}
#else
		if (w->info) { // BUG 1
			print_head(w);
			print_info(w->info); // BUG 3
		}
#endif
	}
}

static void *work(void *arg)
{
	usleep((useconds_t) * (int *)arg * 1000);
	workers[1].rows = 12;
	__atomic_store_n(&workers[1].info, NULL, __ATOMIC_RELEASE); // BUG 2
	write(1, "worker 1 is done\n", 17);
	return NULL;
}

int main(int argc, char **argv)
{
	int shows = argc > 1 ? atoi(argv[1]) : 5, ends = argc > 2 ? atoi(argv[2]) : 150;
	pthread_t thread;

	for (int i = 0; i < WORKERS; i++)
		workers[i].number = i;
	workers[1].info = "sorting the index";
	pthread_create(&thread, NULL, work, &ends);
	usleep((useconds_t)shows * 1000);
	show_processes();
	pthread_join(thread, NULL);
	return shown == 0;
}
