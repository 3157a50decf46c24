// A document and its length: a shorter one is put in place first, its
// length afterwards, each under the lock, and a reader comes in between.
// CAUSE kind=atomicity-violation variable=document.bytes,document.length pattern="two variables"
// FAILS signal=SIGABRT says="but ends with"
// RUNS fail: 5 20
// RUNS pass: 5 130
// RUNS pass: 130 5
// COMPILERS: gcc clang
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
	pthread_mutex_t lock;
	const char *bytes;
	size_t length;
} document = { .lock = PTHREAD_MUTEX_INITIALIZER };

static size_t sent;

static void set_bytes(const char *bytes)
{
	pthread_mutex_lock(&document.lock);
	document.bytes = bytes; // BUG 1
	pthread_mutex_unlock(&document.lock);
}

static void set_length(size_t length)
{
	pthread_mutex_lock(&document.lock);
	document.length = length; // BUG 3
	pthread_mutex_unlock(&document.lock);
}

/* A document is followed by zeros, so that readers of whole blocks find an end. */
static const char *load(const char *text)
{
	char *bytes = calloc(1, 256);

	memcpy(bytes, text, strlen(text));
	return bytes;
}

static void announce(const char *what)
{
	write(1, what, strlen(what));
	usleep(50000);
}

static void replace(const char *text)
{
	const char *bytes = load(text);

#ifdef FIXED
	announce("replaced\n");
	pthread_mutex_lock(&document.lock);
	document.bytes = bytes;
	document.length = strlen(text);
	pthread_mutex_unlock(&document.lock);
#else
	set_bytes(bytes);
	announce("replaced\n");
	set_length(strlen(text));
#endif
}

static void send_document(void)
{
	const char *bytes;
	size_t length;

	pthread_mutex_lock(&document.lock);
	bytes = document.bytes;
	length = document.length; // BUG 2
	pthread_mutex_unlock(&document.lock);
	if (bytes[length - 1] != '.') {
		fprintf(stderr, "a document of %zu bytes, but ends with %d\n", length, bytes[length - 1]);
		usleep(80000); /* until that has arrived where it is looked at */
		abort();
	}
	sent += length;
}

static void *editor(void *arg)
{
	usleep((useconds_t) * (int *)arg * 1000);
	replace("Short.");
	return NULL;
}

static void *reader(void *arg)
{
	usleep((useconds_t) * (int *)arg * 1000);
	send_document();
	return NULL;
}

int main(int argc, char **argv)
{
	int edits = argc > 1 ? atoi(argv[1]) : 5, reads = argc > 2 ? atoi(argv[2]) : 130;
	pthread_t threads[2];

	replace("A document that is somewhat longer.");
	pthread_create(&threads[0], NULL, editor, &edits);
	pthread_create(&threads[1], NULL, reader, &reads);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%zu bytes\n", sent);
	return 0;
}
