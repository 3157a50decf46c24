#ifndef DG_HOT_H
#define DG_HOT_H

#include "agent.h"

/* The compiler's own judgement leaves calls, and structs in memory, in the
 * paths that every allocation takes. */
#define DG_HOT inline __attribute__((always_inline))

/* What the fast paths read, on one cache line: copies of what the root says. */
static struct {
	uint64_t objects;       /* start of the objects' window */
	uint64_t bytes;         /* of it that is in use */
	struct dg_span *spans;
	uint64_t canary;        /* the secret of the guards */
	uint64_t fill;          /* options.fill_bytes */
	struct dg_heap *shared; /* heap 0 */
	uint64_t fast;          /* objects up to this size are served by the fast paths: 0 if dg_fresh_byte is set */
} dg_hot __attribute__((aligned(64)));

/* What memory is filled with that malloc, realloc and new hand out; 0: it is not filled. */
static uint32_t dg_fresh_byte;

#endif
