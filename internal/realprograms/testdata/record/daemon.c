/* Daemonises as the books have it, then works with threads and fails; the
 * program itself ends well. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *lines[4000];
static int count;

static void *work(void *argument)
{
	for (int i = 0; i < 1000; i++) {
		char text[40];
		snprintf(text, sizeof text, "%ld: %d", (long)argument, i);
		pthread_mutex_lock(&lock);
		lines[count++] = strdup(text);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(void)
{
	for (int i = 0; i < 2; i++) {
		pid_t pid = fork();
		if (pid < 0)
			return 2;
		if (pid > 0)
			_exit(0);
		if (i == 0)
			setsid();
	}
	umask(0);
	int null = open("/dev/null", O_RDWR);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	FILE *pidfile = fopen("daemon.pid", "w");
	fprintf(pidfile, "%d\n", (int)getpid());
	fclose(pidfile);
	pthread_t threads[4];
	for (long i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	abort();
}
