// A table that is made when it is first needed, by two threads at once: what the
// first one put into its own is lost.
// CAUSE kind=atomicity-violation variable=sessions pattern=RWW
// FAILS signal=SIGABRT says="is unknown"
// RUNS fail: 5 15
// RUNS fail: 15 5
// RUNS pass: 5 130
// RUNS pass: 130 5
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOTS = 16 };

struct table {
	char names[SLOTS][12];
	int used;
};

static struct table *sessions;
static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t make_lock = PTHREAD_MUTEX_INITIALIZER;

struct login {
	int at;
	const char *name;
};

__attribute__((noinline)) static struct table *make_table(const char *why)
{
	struct table *t = calloc(1, sizeof(*t));
	char line[60];
	int n = snprintf(line, sizeof(line), "a table for %s\n", why);

	write(1, line, (size_t)n);
	usleep(40000); /* the limits of this host */
	return t;
}

static struct table *get_sessions(const char *why)
{
#ifdef FIXED
	pthread_mutex_lock(&make_lock);
#endif
	if (!sessions) // BUG 1
		sessions = make_table(why); // BUG 2 3
#ifdef FIXED
	pthread_mutex_unlock(&make_lock);
#endif
	return sessions;
}

static void add(const char *name)
{
	struct table *t = get_sessions(name);

	pthread_mutex_lock(&names_lock);
	strcpy(t->names[t->used++], name);
	pthread_mutex_unlock(&names_lock);
}

static void require(const char *name)
{
	for (int i = 0; i < sessions->used; i++)
		if (!strcmp(sessions->names[i], name))
			return;
	fprintf(stderr, "%s is unknown\n", name);
	abort();
}

static void *log_in(void *arg)
{
	const struct login *l = arg;

	usleep((useconds_t)l->at * 1000);
	add(l->name);
	return NULL;
}

int main(int argc, char **argv)
{
	struct login logins[] = { { argc > 1 ? atoi(argv[1]) : 5, "ann" }, { argc > 2 ? atoi(argv[2]) : 130, "bob" } };
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, log_in, &logins[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 2; i++)
		require(logins[i].name);
	return 0;
}
