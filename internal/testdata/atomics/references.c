// Objects with counts of references, exchanged between threads: the thread that drops the last one frees the object.
// ENDS: SIGABRT
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { THREADS = 3, TURNS = 4000, SLOTS = 8 };

struct object {
	atomic_int references;
	long made_by;
};

static _Atomic(struct object *) slots[SLOTS];
static long sums[THREADS];

static void drop(struct object *o)
{
	if (o && atomic_fetch_sub(&o->references, 1) == 1)
		free(o);
}

static void *work(void *arg)
{
	long me = (long)arg;
	unsigned random = (unsigned)me * 7 + 1;

	for (int i = 0; i < TURNS; i++) {
		struct object *o;

		random = random * 1103515245 + 12345;
		o = atomic_exchange(&slots[random >> 16 & 7], NULL);
		if (!o) {
			o = malloc(sizeof(*o));
			atomic_init(&o->references, 1);
			o->made_by = me;
		}
		sums[me] = sums[me] * 31 + o->made_by;
		atomic_fetch_add(&o->references, 1);
		drop(atomic_exchange(&slots[random >> 20 & 7], o));
		drop(o);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (long i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	abort();
}
