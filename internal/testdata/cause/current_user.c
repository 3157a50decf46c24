// A file server that keeps in a global variable on whose behalf it works. A second
// request changes it before the first one is checked.
// CAUSE kind=atomicity-violation variable=current_user pattern=WWR
// FAILS signal=SIGABRT says="may read"
// RUNS fail: 5 25
// RUNS pass: 5 150
// RUNS pass: 150 5
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

static int may_read(const struct request *r)
{
	int allowed = current_user == ROOT || current_user == r->file->owner; // BUG 3

	__atomic_add_fetch(&checks, 1, __ATOMIC_RELAXED);
	if (allowed && r->user != r->file->owner) {
		fprintf(stderr, "user %d may read %s\n", r->user, r->file->name);
		abort();
	}
	return allowed;
}

static void *serve(void *arg)
{
	struct request *r = arg;

	usleep((useconds_t)r->at * 1000);
	open_session(r->user);
	audit(r->file);
	r->allowed = may_read(r);
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
	return checks != 2 || requests[0].allowed || !requests[1].allowed;
}
