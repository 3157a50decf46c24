// The logging module of Lee et al., ECOOP 2014, figure 1. Both threads have counted
// before one looks, and both find room in the buffer before one has used it.
// FLAGS: -O1
// ENDS: SIGSEGV
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE 4096
#define MESSAGE 20

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile int req_cnt = 14;
static volatile int buf_len = SIZE - MESSAGE;
static char *log_buf;

/* What the requests take at the same time, in code without events. */
static void work(int amount)
{
	for (volatile int i = 0; i < amount * 10000; i++)
		;
}

static void *request(void *argument)
{
	int slow = argument != NULL, len = 0;
	char message[MESSAGE];

	getppid();
	pthread_mutex_lock(&lock);
	req_cnt = req_cnt + 1;
	pthread_mutex_unlock(&lock);
	work(200);
	if (req_cnt % 16 == 0) {
		memset(message, 'x', MESSAGE);
		getuid();
		len = MESSAGE;
	}
	work(200);
	if (buf_len + len <= SIZE) {
		work(slow ? 800 : 200);
		memcpy(log_buf + buf_len, message, (size_t)len);
		buf_len = buf_len + len;
	}
	work(slow ? 0 : 2000);
	getgid();
	return NULL;
}

int main(void)
{
	pthread_t threads[2];
	char *pages = mmap(NULL, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED || mprotect(pages + SIZE, SIZE, PROT_NONE))
		return 1;
	log_buf = pages;
	pthread_create(&threads[0], NULL, request, NULL);
	pthread_create(&threads[1], NULL, request, &lock);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	return 0;
}
