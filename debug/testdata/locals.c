/* Thread-local variables: of the program, of a library that is linked (-DLINKED), and of one that is loaded, used and unloaded (-DLOADED; the
 * program's first argument is its path). */
#if defined LINKED
__thread int at_start = 11;
int *start_at(void) { return &at_start; }
#elif defined LOADED
__thread int before[9];
__thread int in_loaded = 21;
int *loaded_at(void) { return &in_loaded; }
#else
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

int *start_at(void);
static __thread int own = 1;
static int *(*loaded_at)(void);
static pthread_barrier_t barrier;

__attribute__((noinline)) void place(void) { __asm__ volatile("" ::: "memory"); }

static void *work(void *p)
{
	own = 2;
	*start_at() = 12;
	errno = 7;
	place();
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return p;
}

int main(int argc, char **argv)
{
	pthread_t t;

	pthread_barrier_init(&barrier, 0, 2);
	pthread_create(&t, 0, work, 0);
	pthread_barrier_wait(&barrier);
	void *handle = dlopen(argv[argc - 1], RTLD_NOW);
	loaded_at = (int *(*)(void))dlsym(handle, "loaded_at");
	place();
	*loaded_at() = 22;
	own = 3;
	errno = 9;
	place();
	dlclose(handle);
	place();
	*(volatile int *)8 = own;
	return 0;
}
#endif
