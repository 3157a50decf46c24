// Notes in memory that moves when one is added, of which each source file has one defect:
// who goes over them does not hold their lock.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef TOLD_UNDER_LOCK
#define TOLD_UNDER_LOCK 1
#endif
#ifndef COUNTED_UNDER_LOCK
#define COUNTED_UNDER_LOCK 1
#endif

struct note {
	const char *text;
	int seen;
};

static pthread_mutex_t notes_lock = PTHREAD_MUTEX_INITIALIZER;
static struct note *notes;
static int count, adds_after;

static void add(const char *text)
{
	pthread_mutex_lock(&notes_lock);
	struct note *more = malloc((size_t)(count + 1) * sizeof(*more));

	for (int i = 0; i < count; i++)
		more[i] = notes[i];
	more[count].text = text;
	more[count].seen = 0;
	free(notes);
	notes = more;
	count++;
	pthread_mutex_unlock(&notes_lock);
}

/* A note is shown for a while. (noipa: or gcc reads it where this is called.) */
__attribute__((noipa)) static long show(struct note *n)
{
	char line[60];
	int length = snprintf(line, sizeof(line), "%c...\n", n->text[0]);

	write(1, line, (size_t)length);
	usleep(40000);
	return length;
}

static long tell(void)
{
	long sum = 0;

	if (TOLD_UNDER_LOCK)
		pthread_mutex_lock(&notes_lock);
	struct note *first = notes;

	for (int i = 0; i < 2; i++)
		sum += show(&first[i]);
	if (TOLD_UNDER_LOCK)
		pthread_mutex_unlock(&notes_lock);
	return sum;
}

static long tally(void)
{
	long sum = 0;

	if (COUNTED_UNDER_LOCK)
		pthread_mutex_lock(&notes_lock);
	struct note *first = notes;

	for (int i = 0; i < 2; i++)
		sum += show(&first[i]);
	if (COUNTED_UNDER_LOCK)
		pthread_mutex_unlock(&notes_lock);
	return sum;
}

static void *adder(void *unused)
{
	(void)unused;
	usleep((useconds_t)adds_after * 1000);
	add("three");
	return NULL;
}

int main(int argc, char **argv)
{
	int tells = argc > 1 && argv[1][0] == 't';
	pthread_t thread;

	adds_after = argc > 2 ? atoi(argv[2]) : 150;
	add("one");
	add("two");
	pthread_create(&thread, NULL, adder, NULL);
	long sum = tells ? tell() : tally();
	pthread_join(thread, NULL);
	printf("%ld\n", sum);
	return sum == 0;
}
