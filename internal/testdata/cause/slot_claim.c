// Places on a ferry: who finds one free writes the ticket first and his name into
// the place afterwards.
// CAUSE kind=atomicity-violation variable=places[3].owner pattern=RWW
// FAILS signal=SIGABRT says="sold twice"
// RUNS fail: 5 15
// RUNS fail: 15 5
// RUNS pass: 5 130
// RUNS pass: 130 5
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLACES = 8 };

struct place {
	int owner;
	int deck;
};

static struct place places[PLACES];
static pthread_mutex_t places_lock = PTHREAD_MUTEX_INITIALIZER;

struct passenger {
	int id, arrives, deck, place;
};

static void print_ticket(int id, int place)
{
	char line[60];
	int n = snprintf(line, sizeof(line), "place %d for %d\n", place, id);

	write(1, line, (size_t)n);
	usleep(40000); /* it is an old printer */
}

static int claim(int id, int deck)
{
	int found = -1;

#ifdef FIXED
	pthread_mutex_lock(&places_lock);
#endif
	for (int i = 0; i < PLACES && found < 0; i++)
		if (places[i].deck == deck && !places[i].owner) // BUG 1
			found = i;
	if (found >= 0) {
		print_ticket(id, found);
		places[found].owner = id; // BUG 2 3
	}
#ifdef FIXED
	pthread_mutex_unlock(&places_lock);
#endif
	return found;
}

static void *board(void *arg)
{
	struct passenger *p = arg;

	usleep((useconds_t)p->arrives * 1000);
	p->place = claim(p->id, p->deck);
	return NULL;
}

int main(int argc, char **argv)
{
	struct passenger both[] = { { 11, argc > 1 ? atoi(argv[1]) : 5, 1, -1 }, { 12, argc > 2 ? atoi(argv[2]) : 130, 1, -1 } };
	pthread_t threads[2];

	for (int i = 0; i < PLACES; i++)
		places[i].deck = i / 3;
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, board, &both[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 2; i++)
		if (both[i].place >= 0 && places[both[i].place].owner != both[i].id) {
			fprintf(stderr, "place %d was sold twice\n", both[i].place);
			abort();
		}
	return 0;
}
