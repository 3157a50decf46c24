/* What a thread waits for, of a process whose threads run one at a time: a free
 * replay, and a recording that hunts. */
#ifndef DG_ENGINE_WAIT_H
#define DG_ENGINE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

enum dg_wait_for {
	DG_WAIT_NOTHING = 0,
	DG_WAIT_CHANGE, /* the word is not the value any more */
	DG_WAIT_WAKE,   /* until a thread is woken that waits for the word */
	DG_WAIT_INPUT,  /* for something outside of the process */
};

enum dg_waited { DG_WAITED = 0, DG_WAITED_TOO_LONG, DG_WAIT_SIGNALLED };

struct dg_wait {
	uint32_t how; /* enum dg_wait_for */
	uint32_t value;
	uint64_t word;
	bool timed, expired, woken;
};

#endif
