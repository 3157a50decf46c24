// A reader takes what a box has under the lock, and uses it after that; whoever empties
// the box meanwhile spoils it. Threads reach everything through pointers, so no
// instruction names a variable.
// ENDS: exit 0
// CAUSE kind=atomicity-violation variable=value
// RUNS pass:
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

struct item {
	int value;
};

struct box {
	pthread_mutex_t lock;
	struct item *item;
};

static void *empty(void *arg)
{
	struct box *b = arg;
	struct item *item;

	pthread_mutex_lock(&b->lock);
	item = b->item;
	b->item = NULL;
	pthread_mutex_unlock(&b->lock);
	item->value = 0;
	return NULL;
}

int main(void)
{
	struct item item = { .value = 1 };
	struct box b = { .lock = PTHREAD_MUTEX_INITIALIZER, .item = &item };
	struct item *mine;
	pthread_t t;

	pthread_create(&t, NULL, empty, &b);
	pthread_mutex_lock(&b.lock);
	mine = b.item;
	pthread_mutex_unlock(&b.lock);
	if (mine)
		assert(mine->value == 1);
	pthread_join(t, NULL);
	return 0;
}
