// Threads are created while another thread loads an object and removes it again.
// ENDS: SIGABRT
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#define ROUNDS 100

static void *load(void *unused)
{
	void *object;

	(void)unused;
	for (int i = 0; i < ROUNDS; i++) {
		object = dlopen("libm.so.6", RTLD_NOW);
		assert(object && !dlclose(object));
	}
	return NULL;
}

static void *leave(void *unused)
{
	return unused;
}

int main(void)
{
	pthread_t loader, t;

	assert(!pthread_create(&loader, NULL, load, NULL));
	for (int i = 0; i < 2 * ROUNDS; i++)
		assert(!pthread_create(&t, NULL, leave, NULL) && !pthread_join(t, NULL));
	assert(!pthread_join(loader, NULL));
	abort();
}
