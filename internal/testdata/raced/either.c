// A consumer that was woken does not look again: another one may have taken the element. The flag done, which only main's end sets, would have let the assertion pass.
// NOT: done
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static int count, done, letters[64];

static void pause_for(int turns)
{
	for (volatile int i = 0; i < turns; i++)
		;
}

static int get(void)
{
	int letter = -1;
	pthread_mutex_lock(&lock);
	if (count == 0 && !done) // BUG
		pthread_cond_wait(&more, &lock);
	assert(count > 0 || done); // BUG
	if (count > 0)
		letter = letters[--count]; // BUG
	pthread_mutex_unlock(&lock);
	return letter;
}

static void *consume(void *sum)
{
	for (int letter; (letter = get()) >= 0; *(long *)sum += letter)
		pause_for(2500);
	return NULL;
}

static void put(int letter)
{
	pthread_mutex_lock(&lock);
	letters[count++] = letter; // BUG
	pthread_cond_broadcast(&more);
	pthread_mutex_unlock(&lock);
	pause_for(7000);
}

int main(void)
{
	pthread_t t[3];
	long sum[3] = {0};
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, consume, &sum[i]);
	for (int i = 0; i < 30; i++)
		put(i);
	pthread_mutex_lock(&lock);
	done = 1;
	pthread_cond_broadcast(&more);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	printf("%ld\n", sum[0] + sum[1] + sum[2]);
	return 0;
}
