// What the programs here share. Each runs several threads through one kind of
// synchronisation, checks what must hold, and ends by abort(), so that there is
// a core; a check that fails ends it by exit(3). `trace` depends on the order in
// which the threads came: a replay that has it right had the order right.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x)                                                                     \
	do {                                                                         \
		if (!(x)) {                                                          \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x);      \
			exit(3);                                                     \
		}                                                                    \
	} while (0)

extern uint64_t trace[3];
uint64_t trace[3];

// Called by whoever has the lock; each lock has a trace of its own.
static inline void came_to(int lock, uint64_t who)
{
	trace[lock] = (trace[lock] ^ 14695981039346656037u ^ who) * 1099511628211u;
}

static inline void came(uint64_t who)
{
	came_to(0, who);
}

static inline void finish(const char *what)
{
	printf("%s %016llx\n", what, (unsigned long long)(trace[0] + 3 * trace[1] + 5 * trace[2]));
	fflush(stdout);
	abort();
}
