// The limit of one service class stands for "none" in the table of defaults. It goes
// through six hands, the last of which takes it for an index.
// CAUSE kind=bad-value
// FAILS signal=SIGSEGV says="fault at"
// RUNS fail: bulk
// RUNS pass: mail
// SHORT: O0 O2
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct class {
	char name[8];
	long limit;
};

struct service {
	struct class class;
	long burst;
};

struct job {
	long quota;
	struct job *next;
};

struct window {
	long last;
	char **slots;
};

static struct class classes[3];
static struct service service;
static struct job *jobs;
static long granted;
static size_t used;
static pthread_mutex_t jobs_lock = PTHREAD_MUTEX_INITIALIZER;

static void defaults(void)
{
	static const char *const names[3] = { "mail", "web", "bulk" };

	for (int i = 0; i < 3; i++) {
		strcpy(classes[i].name, names[i]);
#ifdef FIXED
		classes[i].limit = i + 1;
#else
		classes[i].limit = i == 2 ? -100000000 : i + 1; // BUG
#endif
	}
}

static void configure(const char *name)
{
	for (int i = 0; i < 3; i++)
		if (!strcmp(classes[i].name, name))
			service.class = classes[i]; // HOP 1
	service.burst = service.class.limit * 2; // HOP 2
}

static void submit(void)
{
	struct job *j = malloc(sizeof(*j));

	j->quota = service.burst - 1; // HOP 3
	pthread_mutex_lock(&jobs_lock);
	j->next = jobs;
	jobs = j;
	pthread_mutex_unlock(&jobs_lock);
}

static void grant(void)
{
	struct job *j;

	pthread_mutex_lock(&jobs_lock);
	j = jobs;
	jobs = j->next;
	pthread_mutex_unlock(&jobs_lock);
	granted = j->quota; // HOP 4
	free(j);
}

static void open_window(struct window *w)
{
	w->slots = calloc(8, sizeof(*w->slots));
	for (int i = 0; i < 8; i++)
		w->slots[i] = "slot";
	w->last = granted & ~1L; // HOP 5
}

static void *work(void *unused)
{
	struct window *w = malloc(sizeof(*w));

	(void)unused;
	grant();
	open_window(w);
	used = strlen(w->slots[w->last]); // HOP 6
	free(w->slots);
	free(w);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	defaults();
	configure(argc > 1 ? argv[1] : "mail");
	submit();
	pthread_create(&thread, NULL, work, NULL);
	pthread_join(thread, NULL);
	printf("%zu\n", used);
	return used != 4;
}
