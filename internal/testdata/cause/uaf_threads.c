// Requests with a time limit: main gives one up and frees it, and the worker, which
// was only slow, writes the answer.
// CAUSE kind=use-after-free|order-violation
// FAILS signal=SIGABRT says="use-after-free"
// RUNS fail: 90 30
// RUNS pass: 10 120
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct request {
	int question;
	int answer;
	char text[48];
};

static pthread_mutex_t done_lock = PTHREAD_MUTEX_INITIALIZER;
static struct request *current;
static int work_ms;
static int answered;

static int think(int question)
{
	usleep((useconds_t)work_ms * 1000);
	return question * 6;
}

static void *work(void *arg)
{
	struct request *r = arg;
	int answer = think(r->question);

#ifdef FIXED
	pthread_mutex_lock(&done_lock);
	if (current == r)
		r->answer = answer;
	pthread_mutex_unlock(&done_lock);
#else
	r->answer = answer; // BUG
#endif
	pthread_mutex_lock(&done_lock);
	answered++;
	pthread_mutex_unlock(&done_lock);
	return NULL;
}

static struct request *submit(int question)
{
	struct request *r = malloc(sizeof(*r)); // OBJECT

	r->question = question;
	r->answer = -1;
	snprintf(r->text, sizeof(r->text), "what is six times %d?", question);
	current = r;
	return r;
}

static int give_up(struct request *r)
{
	int answer;

	pthread_mutex_lock(&done_lock);
	answer = r->answer;
	current = NULL;
	pthread_mutex_unlock(&done_lock);
	printf("%s %d\n", r->text, answer);
	free(r);
	return answer;
}

int main(int argc, char **argv)
{
	struct request *r = submit(7);
	pthread_t thread;

	work_ms = argc > 1 ? atoi(argv[1]) : 10;
	pthread_create(&thread, NULL, work, r);
	usleep((useconds_t)(argc > 2 ? atoi(argv[2]) : 120) * 1000);
	give_up(r);
	pthread_join(thread, NULL);
	return answered != 1;
}
