/* A call that must succeed, with what it answered if it does not. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline long check_at(long result, const char *what, int line)
{
	if (result != -1)
		return result;
	fprintf(stderr, "line %d: %s: %s\n", line, what, strerror(errno));
	_Exit(90);
}

static inline void must_at(int truth, const char *what, int line)
{
	if (truth)
		return;
	fprintf(stderr, "line %d: not so: %s\n", line, what);
	_Exit(91);
}

#define check(call) check_at((long)(call), #call, __LINE__)
#define must(truth) must_at((truth) != 0, #truth, __LINE__)

/* What came from outside is folded into one word, which the core has. */
static unsigned long fold;

static inline void fold_in(const void *bytes, unsigned long length)
{
	const unsigned char *p = bytes;

	while (length--)
		fold = fold * 1099511628211ul + *p++;
}

#endif
