/* The agent that is loaded into this test program, seen through its layout. A
 * program without it fails: it would prove nothing. */
#ifndef SUPPORT_AGENT_H
#define SUPPORT_AGENT_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
#define _Static_assert static_assert
#endif
#include "layout.h"

static inline struct dg_root *agent_root(void)
{
	uint64_t *address = (uint64_t *)dlsym(RTLD_DEFAULT, "diagnose_agent_root");
	struct dg_root *root = address ? (struct dg_root *)*address : NULL;

	if (!root || root->magic != DG_MAGIC || !root->ready) {
		fprintf(stderr, "the agent is not loaded\n");
		_Exit(3);
	}
	return root;
}

static inline struct dg_heap *agent_heap(unsigned i)
{
	return (struct dg_heap *)agent_root()->heaps.start + i;
}

static inline struct dg_thread *agent_thread(unsigned i)
{
	return (struct dg_thread *)agent_root()->threads.start + i;
}

/* How many heaps are in a state. */
static inline unsigned agent_heaps(unsigned state)
{
	unsigned n = 0;

	for (unsigned i = 1; i < agent_root()->heaps.used; i++)
		n += agent_heap(i)->state == state;
	return n;
}

#define CHECK(condition)                                                                    \
	do {                                                                                \
		if (!(condition)) {                                                         \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			_Exit(1);                                                           \
		}                                                                           \
	} while (0)

#endif
