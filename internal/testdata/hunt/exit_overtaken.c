// main returns while its thread fails. If main's exit is in the log when the signal comes, the
// signal is still the end.
// ENDS: SIGABRT
#include <assert.h>
#include <pthread.h>

static int right;

static void *check(void *arg)
{
	assert(right);
	return arg;
}

int main(void)
{
	pthread_t t;

	pthread_create(&t, NULL, check, NULL);
	return 0;
}
