// Initialisation that is looked at twice, once without the lock: the flag is set
// before the table that it stands for is read in.
// CAUSE kind=order-violation|atomicity-violation variable=words pattern="RW|two variables" missing=setup_lock
// FAILS signal=SIGSEGV says="fault at 0x"
// RUNS fail: 5 25
// RUNS pass: 5 150
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS = 4 };

static pthread_mutex_t setup_lock = PTHREAD_MUTEX_INITIALIZER;
static int is_set_up;
static const char **words;
static int answers;

struct question {
	int at, word;
};

static const char **read_words(void)
{
	static const char *const given[WORDS] = { "one", "two", "three", "four" };
	const char **list = malloc(WORDS * sizeof(*list));
	char head[64];
	int fd = open("/proc/self/exe", O_RDONLY);

	if (fd >= 0) {
		(void)!read(fd, head, sizeof(head));
		close(fd);
	}
	usleep(60000); /* a slow file system */
	for (int i = 0; i < WORDS; i++)
		list[i] = given[i];
	return list;
}

static void set_up(void)
{
	if (__atomic_load_n(&is_set_up, __ATOMIC_ACQUIRE))
		return;
	pthread_mutex_lock(&setup_lock);
	if (!is_set_up) {
#ifdef FIXED
		words = read_words();
		__atomic_store_n(&is_set_up, 1, __ATOMIC_RELEASE);
#else
		__atomic_store_n(&is_set_up, 1, __ATOMIC_RELEASE);
		words = read_words(); // BUG 2
#endif
	}
	pthread_mutex_unlock(&setup_lock);
}

static size_t answer(int word)
{
	set_up();
	return strlen(words[word]); // BUG 1
}

static void *ask(void *arg)
{
	const struct question *q = arg;
	size_t n;

	usleep((useconds_t)q->at * 1000);
	n = answer(q->word);
	__atomic_add_fetch(&answers, (int)n, __ATOMIC_RELAXED);
	return NULL;
}

int main(int argc, char **argv)
{
	struct question questions[] = { { argc > 1 ? atoi(argv[1]) : 5, 1 }, { argc > 2 ? atoi(argv[2]) : 150, 2 } };
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, ask, &questions[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return answers != 8;
}
