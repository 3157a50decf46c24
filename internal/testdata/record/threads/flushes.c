// Threads flush all streams while others write to theirs: which thread writes which text is in
// the order of the recording, though libc's lock of their list is asked for
// without an event.
// ENDS: SIGABRT
// EVENTS: order 4000
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *work(void *number)
{
	char *text;
	size_t length;
	FILE *file, *memory;

	for (int i = 0; i < 100; i++) {
		file = fopen("/dev/null", "w");
		memory = open_memstream(&text, &length);
		assert(file && memory);
		fprintf(memory, "%ld:%d", (long)number, i);
		fprintf(file, "%ld:%d", (long)number, i);
		assert(!fflush(NULL));
		fputs("rest", file);
		fclose(memory);
		fclose(file);
		free(text);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[4];

	for (long i = 0; i < 4; i++)
		assert(!pthread_create(&threads[i], NULL, work, (void *)i));
	for (int i = 0; i < 4; i++)
		assert(!pthread_join(threads[i], NULL));
	abort();
}
