// A picture that is shown to others before its own reference is counted: who looks at
// it and gives it back drops a count that was not taken yet. All counting is atomic, and
// by one function.
// CAUSE kind=order-violation|atomicity-violation variable=*references|shown pattern=RW|WRW
// FAILS signal=SIGABRT says="has no references"
// RUNS fail: 20 80
// RUNS pass: 110 5
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct picture {
	int width, height;
	int references;
};

static struct picture *shown;
static int looks_after, draws_for; /* milliseconds */

static void change(struct picture *p, int by)
{
	int before = __atomic_fetch_add(&p->references, by, __ATOMIC_ACQ_REL); // BUG 1 2

	if (before + by < 0) {
		fprintf(stderr, "the picture %dx%d has no references\n", p->width, p->height);
		abort();
	}
}

static void draw(const struct picture *p)
{
	char line[60];
	int n = snprintf(line, sizeof(line), "drawing %dx%d\n", p->width, p->height);

	write(1, line, (size_t)n);
	usleep((useconds_t)draws_for * 1000);
}

static void *look(void *unused)
{
	struct picture *p;

	(void)unused;
	usleep((useconds_t)looks_after * 1000);
	p = __atomic_load_n(&shown, __ATOMIC_ACQUIRE);
	if (p)
		change(p, -1); /* the reference that whoever shows a picture leaves for him */
	return NULL;
}

static void show(int width, int height)
{
	struct picture *p = calloc(1, sizeof(*p)); // OBJECT

	p->width = width;
	p->height = height;
#ifdef FIXED
	change(p, 1);
#endif
	__atomic_store_n(&shown, p, __ATOMIC_RELEASE); // BUG
	draw(p);
#ifndef FIXED
	change(p, 1);
#endif
}

int main(int argc, char **argv)
{
	pthread_t thread;

	looks_after = argc > 1 ? atoi(argv[1]) : 110;
	draws_for = argc > 2 ? atoi(argv[2]) : 5;
	pthread_create(&thread, NULL, look, NULL);
	show(640, 480);
	pthread_join(thread, NULL);
	printf("%d left\n", shown->references);
	return 0;
}
