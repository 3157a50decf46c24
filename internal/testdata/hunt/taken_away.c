// A pointer to the heap is looked at, and what it leads to is freed before it is used.
// ENDS: exit 0
// CAUSE kind=atomicity-violation variable=session
// RUNS pass:
#include <pthread.h>
#include <stdlib.h>

struct session {
	struct session *peer;
	long requests;
};

static struct session *volatile session;

static void *serve(void *arg)
{
	struct session *s = session;

	if (s && s->peer != s)
		abort();
	return arg;
}

static void *leave(void *arg)
{
	struct session *s = session;

	session = NULL;
	s->peer = NULL;
	free(s);
	return arg;
}

int main(void)
{
	pthread_t t[2];

	session = malloc(sizeof(*session));
	session->peer = session;
	pthread_create(&t[0], NULL, serve, NULL);
	pthread_create(&t[1], NULL, leave, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	return 0;
}
