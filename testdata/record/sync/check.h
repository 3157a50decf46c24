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

extern uint64_t trace;
uint64_t trace = 14695981039346656037u;

// Called by whoever has the lock.
static inline void came(uint64_t who)
{
	trace = (trace ^ who) * 1099511628211u;
}

static inline void finish(const char *what)
{
	printf("%s %016llx\n", what, (unsigned long long)trace);
	fflush(stdout);
	abort();
}
