// Threads call what libc keeps one state of.
// ENDS: SIGABRT
// EVENTS: order 1000
#include <assert.h>
#include <dlfcn.h>
#include <locale.h>
#include <pthread.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long sums[4];
static pthread_key_t keys[4];

static void *work(void *number)
{
	long n = (long)number;
	char name[16], value[64];
	time_t now = time(NULL);
	void *library;

	assert(!pthread_key_create(&keys[n], NULL));
	for (int i = 0; i < 100; i++) {
		sums[n] += rand() + lrand48() % 1000;
		if (i % 10 == 0) {
			snprintf(name, sizeof(name), "NAME%ld", n);
			strftime(value, sizeof(value), "%c", localtime(&now));
			setenv(name, value, 1);
			assert(!strcmp(getenv(name), value));
			setlocale(LC_TIME, n % 2 ? "C" : "POSIX");
		}
	}
	library = dlopen("libm.so.6", RTLD_NOW);
	assert(library && dlsym(library, "cos") && !dlclose(library));
	sums[n] += getpwuid(0) != NULL;
	return NULL;
}

int main(void)
{
	pthread_t threads[4];
	char name[16];

	/* Later values take the place of these: localtime looks for TZ in the list itself, which setenv
	 * moves and frees when it grows, in any program. */
	for (long i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "NAME%ld", i);
		setenv(name, "", 1);
	}
	srand(7);
	for (long i = 0; i < 4; i++)
		assert(!pthread_create(&threads[i], NULL, work, (void *)i));
	for (int i = 0; i < 4; i++)
		assert(!pthread_join(threads[i], NULL));
	printf("%ld %ld %ld %ld\n", sums[0], sums[1], sums[2], sums[3]);
	abort();
}
