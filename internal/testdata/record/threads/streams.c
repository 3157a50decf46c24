// Threads share streams: the text written, and what each reads, is in the
// order of the recording.
// ENDS: SIGABRT
// EVENTS: order 2000
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE *shared;
static char *text;
static size_t length;
static int lines[4];
static FILE *source;

static void *work(void *number)
{
	long n = (long)number;
	char line[64];
	FILE *own;

	for (int i = 0; i < 150; i++) {
		fprintf(shared, "%ld:%d\n", n, i);
		fputs("x", shared);
		putc('y', shared);
		fwrite("zz\n", 1, 3, shared);
		flockfile(shared);
		fputc('(', shared);
		fputc(')', shared);
		funlockfile(shared);
		if (fgets(line, sizeof(line), source))
			lines[n] += atoi(line);
		if (i % 50 == 0) {
			own = fopen("/dev/null", "w");
			assert(own);
			fprintf(own, "%d", i);
			fclose(own);
		}
		if (i % 32 == 0)
			fflush(NULL);
	}
	printf("%ld is done\n", n);
	return NULL;
}

int main(void)
{
	pthread_t threads[4];
	int sum = 0;

	shared = open_memstream(&text, &length);
	source = tmpfile();
	assert(shared && source);
	for (int i = 0; i < 400; i++)
		fprintf(source, "%d\n", i);
	rewind(source);
	for (long i = 0; i < 4; i++)
		assert(!pthread_create(&threads[i], NULL, work, (void *)i));
	for (int i = 0; i < 4; i++) {
		assert(!pthread_join(threads[i], NULL));
		sum += lines[i];
	}
	fclose(shared);
	assert(sum == 400 * 399 / 2 && length > 600 * 10);
	printf("%d %d %d %d\n", lines[0], lines[1], lines[2], lines[3]);
	abort();
}
