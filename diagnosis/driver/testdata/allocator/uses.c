/* Wrong uses of the heap, by name, and the same without them ("fixed"), which a signal ends. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct name {
	char text[24];
};

struct session {
	long id;
	struct name *name;
	long more[4];
};

/* A larger object with a pointer in the middle. */
struct large {
	char text[20000];
	struct name *name;
	char rest[20000];
};

struct huge {
	char text[3 << 20];
	struct name *name;
	char rest[1 << 20];
};

/* Keeps the stores before free, which compilers leave out. */
#define KEEP() __asm__ volatile("" ::: "memory")

static int fixed;
volatile char sink;
struct session *sessions[8];
struct large *larges[4];
struct huge *the_huge;
static struct name *const closed = (struct name *)0x5a5a5a5a5a5a5a5a;

static struct session *open_session(long id)
{
	struct session *s = malloc(sizeof *s);
	memset(s, 0, sizeof *s);
	s->id = id;
	s->name = malloc(sizeof *s->name);
	strcpy(s->name->text, "name");
	return s;
}

static void close_session(struct session *s)
{
	free(s->name);
	s->name = closed;
	s->id = -1;
	KEEP();
	free(s);
}

__attribute__((noinline)) static void use(struct session *s) { sink = s->name->text[3]; }

/* The object is in the cache of the thread that freed it. */
static void stale_small(void)
{
	for (int i = 0; i < 8; i++)
		sessions[i] = open_session(i);
	if (!fixed)
		close_session(sessions[5]);
	use(sessions[5]);
}

/* A thread has a cache once it has called malloc. */
static void *closing(void *freed)
{
	sessions[7] = open_session(9);
	if (!fixed)
		close_session(sessions[3]);
	pthread_barrier_wait(freed);
	pthread_barrier_wait(freed);
	return 0;
}

static void stale_other_thread(void)
{
	pthread_t t;
	pthread_barrier_t freed;
	pthread_barrier_init(&freed, 0, 2);
	for (int i = 0; i < 8; i++)
		sessions[i] = open_session(i);
	pthread_create(&t, 0, closing, &freed);
	pthread_barrier_wait(&freed);
	use(sessions[3]);
}

__attribute__((noinline)) static void use_large(struct large *l) { sink = l->name->text[0]; }

static void stale_large(void)
{
	for (int i = 0; i < 4; i++) {
		larges[i] = malloc(sizeof **larges);
		larges[i]->name = malloc(sizeof(struct name));
	}
	if (!fixed) {
		larges[2]->name = closed;
		KEEP();
		free(larges[2]);
	}
	use_large(larges[2]);
}

__attribute__((noinline)) static void use_huge(struct huge *h) { sink = h->name->text[0]; }

static void stale_huge(void)
{
	the_huge = malloc(sizeof *the_huge);
	the_huge->name = malloc(sizeof(struct name));
	if (!fixed) {
		the_huge->name = closed;
		KEEP();
		free(the_huge);
	}
	use_huge(the_huge);
}

/* All objects have the same size class, and are next to each other. */
struct label {
	char text[64];
};
struct entry {
	struct name *name;
	long numbers[7];
};
struct label *labels[64];
struct entry *entries[64];

__attribute__((noinline)) static void use_entry(struct entry *e) { sink = e->name->text[0]; }

static void over_text(void)
{
	for (int i = 0; i < 64; i++) {
		labels[i] = calloc(1, sizeof **labels);
		entries[i] = calloc(1, sizeof **entries);
		entries[i]->name = malloc(sizeof(struct name));
	}
	for (int i = 0; i < 64; i++)
		for (int k = 0; k < 64; k++)
			if ((char *)labels[i] + 64 == (char *)entries[k]) {
				memset(labels[i]->text, 'A', fixed ? 64 : 64 + 8);
				use_entry(entries[k]);
				return;
			}
}

/* A live object has a bad pointer that its own code has put there. */
static void live(void)
{
	sessions[0] = open_session(0);
	if (!fixed)
		sessions[0]->name = closed;
	KEEP();
	use(sessions[0]);
}

static void free_stack(void)
{
	long local[4] = {1, 2, 3, 4};
	void *volatile p = fixed ? malloc(16) : local;
	free(p);
}

static void free_global(void)
{
	void *volatile p = fixed ? malloc(16) : (void *)&sessions;
	free(p);
}

static const struct {
	const char *name;
	void (*run)(void);
} uses[] = {{"stale_small", stale_small}, {"stale_other_thread", stale_other_thread}, {"stale_large", stale_large},
	{"stale_huge", stale_huge}, {"over_text", over_text}, {"live", live}, {"free_stack", free_stack}, {"free_global", free_global}};

int main(int argc, char **argv)
{
	fixed = argc > 2;
	for (unsigned i = 0; i < sizeof uses / sizeof *uses; i++)
		if (argc > 1 && !strcmp(argv[1], uses[i].name))
			uses[i].run();
	raise(SIGSEGV);
	return 0;
}
