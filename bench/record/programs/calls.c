/* calls read|clock|pipe|putc|putc-threads COUNT: system calls and calls of the C
 * library that cost little by themselves. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long count;

static int small_reads(void)
{
	int fd = open("/dev/zero", O_RDONLY);
	char byte[16];

	for (long i = 0; i < count; i++)
		if (read(fd, byte, sizeof(byte)) != sizeof(byte))
			return 1;
	return 0;
}

static int clocks(void)
{
	struct timespec t, last = { 0, 0 };

	for (long i = 0; i < count; i++) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		if (t.tv_sec < last.tv_sec)
			return 1;
		last = t;
	}
	return 0;
}

static int ping[2], pong[2];

static void *echo(void *unused)
{
	char byte;

	for (long i = 0; i < count; i++)
		if (read(ping[0], &byte, 1) != 1 || write(pong[1], &byte, 1) != 1)
			exit(1);
	return unused;
}

static int ping_pong(void)
{
	pthread_t other;
	char byte = 1;

	if (pipe(ping) || pipe(pong) || pthread_create(&other, NULL, echo, NULL))
		return 1;
	for (long i = 0; i < count; i++)
		if (write(ping[1], &byte, 1) != 1 || read(pong[0], &byte, 1) != 1)
			return 1;
	return pthread_join(other, NULL);
}

static void *characters(void *file)
{
	for (long i = 0; i < count; i++)
		putc((int)(i & 63) + ' ', file);
	return NULL;
}

static int put(int threads)
{
	FILE *file = fopen("/dev/null", "w");
	pthread_t t[4];

	if (!file)
		return 1;
	for (int i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, characters, file))
			return 1;
	if (!threads)
		characters(file);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	return fclose(file);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	count = atol(argv[2]);
	if (!strcmp(argv[1], "read"))
		return small_reads();
	if (!strcmp(argv[1], "clock"))
		return clocks();
	if (!strcmp(argv[1], "pipe"))
		return ping_pong();
	if (!strcmp(argv[1], "putc"))
		return put(0);
	return put(4);
}
