/* Compares the agent's stacks with those of libgcc's unwinder. Included by a C
 * and by a C++ program. */
#include <stdio.h>
#include <stdlib.h>
#include <unwind.h>

#include "support_probe.h"

#define LIMIT 32
#define UNUSED __attribute__((unused))
#define NOINLINE __attribute__((noinline))
/* Keeps the frame of a call that would be a tail call otherwise. */
#define STAY() __asm__ volatile("" ::: "memory")

static unsigned checks;

struct reference {
	uint64_t pc[LIMIT];
	unsigned n;
};

static _Unwind_Reason_Code reference_frame(struct _Unwind_Context *context, void *arg)
{
	struct reference *r = (struct reference *)arg;
	uint64_t pc = _Unwind_GetIP(context);

	/* libgcc ends with an address of 0 after the outermost frame. */
	if (pc && r->n < LIMIT)
		r->pc[r->n++] = pc;
	return _URC_NO_REASON;
}

/* The first addresses differ, as they are those of two calls in here. */
static NOINLINE void check(const char *name, unsigned least)
{
	struct reference reference = { { 0 }, 0 };
	uint64_t ours[LIMIT];
	unsigned n = support_stack(ours, LIMIT), i;

	_Unwind_Backtrace(reference_frame, &reference);
	if (reference.n < least) {
		printf("%s: libgcc has only %u frames\n", name, reference.n);
		exit(1);
	}
	for (i = 1; i < n || i < reference.n; i++) {
		uint64_t a = i < n ? ours[i] : 0, b = i < reference.n ? reference.pc[i] : 0;

		if (a == b)
			continue;
		printf("%s: frame %u of %u and %u: ours %#lx, libgcc's %#lx\n", name, i, n, reference.n,
		       (unsigned long)a, (unsigned long)b);
		exit(1);
	}
	checks++;
}
