// A shared image whose references are counted without a lock: one is lost, and
// the image is gone while another thread still draws it.
// CAUSE kind=atomicity-violation variable=picture.references pattern=RWW
// FAILS signal=SIGSEGV says="fault at no address"
// RUNS fail: 5 15
// RUNS pass: 5 100
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pixels {
	int width, height;
	unsigned char *rows[4];
};

static struct {
	int references;
	struct pixels *pixels;
} picture;

static int trace_ms = 30;

struct view {
	int at, closes;
	int sum;
};

static void trace(const char *what, int references)
{
	char line[60];
	int n = snprintf(line, sizeof(line), "%s: %d\n", what, references);

	write(1, line, (size_t)n);
	usleep((useconds_t)trace_ms * 1000);
}

static struct pixels *acquire(void)
{
#ifdef FIXED
	trace("acquire", __atomic_add_fetch(&picture.references, 1, __ATOMIC_ACQ_REL));
#else
	int references = picture.references + 1; // BUG 1

	trace("acquire", references);
	picture.references = references; // BUG 2 3
#endif
	return picture.pixels;
}

static void release(void)
{
	struct pixels *p = picture.pixels;

	if (__atomic_sub_fetch(&picture.references, 1, __ATOMIC_ACQ_REL))
		return;
	for (int i = 0; i < 4; i++)
		free(p->rows[i]);
	free(p);
}

static int draw(const struct pixels *p)
{
	int sum = 0;

	for (int y = 0; y < 4; y++)
		sum += p->rows[y][0];
	return sum;
}

static void *show(void *arg)
{
	struct view *v = arg;
	struct pixels *p;

	usleep((useconds_t)v->at * 1000);
	p = acquire();
	usleep((useconds_t)v->closes * 1000);
	v->sum = draw(p);
	release();
	return NULL;
}

int main(int argc, char **argv)
{
	struct view views[] = { { argc > 1 ? atoi(argv[1]) : 5, 60, 0 }, { argc > 2 ? atoi(argv[2]) : 100, 180, 0 } };
	pthread_t threads[2];

	picture.pixels = malloc(sizeof(*picture.pixels)); // OBJECT
	picture.references = 1;
	for (int i = 0; i < 4; i++) {
		picture.pixels->rows[i] = malloc(16);
		memset(picture.pixels->rows[i], i, 16);
	}
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, show, &views[i]);
	usleep(140000);
	release(); /* the window's own reference */
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return views[0].sum + views[1].sum != 12;
}
