// A hall with two doors counts who is inside: who comes in is counted with the lock
// held, who leaves without. In the end the number is wrong, and main returns 1.
// CAUSE kind=atomicity-violation variable=hall.inside pattern=RWW missing=gate
// FAILS exit=1 says="still inside"
// RUNS fail: 5 25
// RUNS pass: 5 150
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct {
	const char *name;
	int inside;
} hall = { "the great hall", 1 };

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static int in_after = 5, out_after = 150; /* milliseconds */

/* The board above the door is slow. */
static void show(int number)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%d inside\n", number);

	write(1, text, (size_t)n);
	usleep(60000);
}

static void *come_in(void *arg)
{
	int number;

	usleep((useconds_t)in_after * 1000);
	pthread_mutex_lock(&gate);
	number = hall.inside + 1; // BUG 1
	show(number);
	hall.inside = number; // BUG 3
	pthread_mutex_unlock(&gate);
	return arg;
}

static void *leave(void *arg)
{
	usleep((useconds_t)out_after * 1000);
#ifdef FIXED
	pthread_mutex_lock(&gate);
#endif
	hall.inside--; // BUG 2
#ifdef FIXED
	pthread_mutex_unlock(&gate);
#endif
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t in, out;

	if (argc > 2) {
		in_after = atoi(argv[1]);
		out_after = atoi(argv[2]);
	}
	pthread_create(&in, NULL, come_in, NULL);
	pthread_create(&out, NULL, leave, NULL);
	pthread_join(in, NULL);
	pthread_join(out, NULL);
	if (hall.inside != 1) {
		fprintf(stderr, "%s: %d still inside, and there is 1\n", hall.name, hall.inside);
		return 1;
	}
	return 0;
}
