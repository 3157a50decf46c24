// A file server that keeps in a global variable on whose behalf it works. A second
// request changes it before the first one is checked.
// CAUSE kind=atomicity-violation variable=current_user pattern=WWR
// FAILS signal=SIGABRT says="may read"
// RUNS fail: 5 25
// RUNS pass: 5 150
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROOT, ANN, BOB };

struct file {
	const char *name;
	int owner;
};

struct request {
	int user, at;
	const struct file *file;
	int allowed;
};

#ifdef FIXED
static __thread int current_user;
#else
static int current_user;
#endif

static int checks;

static void open_session(int user)
{
	current_user = user; // BUG 1 2
}

static void audit(const struct file *f)
{
	char line[60];
	int n = snprintf(line, sizeof(line), "%s is asked for\n", f->name);

	write(1, line, (size_t)n);
	usleep(50000);
}

static int may_read(const struct file *f)
{
	__atomic_add_fetch(&checks, 1, __ATOMIC_RELAXED);
	return current_user == ROOT || current_user == f->owner; // BUG 3
}

static void *serve(void *arg)
{
	struct request *r = arg;

	usleep((useconds_t)r->at * 1000);
	open_session(r->user);
	audit(r->file);
	r->allowed = may_read(r->file);
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct file diary = { "diary", BOB };
	struct request requests[] = { { ANN, argc > 1 ? atoi(argv[1]) : 5, &diary, 0 }, { BOB, argc > 2 ? atoi(argv[2]) : 150, &diary, 0 } };
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, serve, &requests[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 2; i++)
		if (requests[i].allowed != (requests[i].user == diary.owner)) {
			fprintf(stderr, "user %d may read %s: %d\n", requests[i].user, diary.name, requests[i].allowed);
			abort();
		}
	return checks != 2;
}
