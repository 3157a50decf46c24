/* What a replay that may diverge from the recording does otherwise: engine/free.c
 * and its parts. Each function does nothing, and says so, in a recording and in a
 * replay that may not. */
#ifndef DG_ENGINE_FREE_H
#define DG_ENGINE_FREE_H

#include "engine/engine.h"

typedef void dg_operation(struct dg_frame *);

/* Whether the process has diverged from the recording. */
static inline bool dg_free(void)
{
	return DG_CONTROL->free == DG_FREE_IS;
}

/* At every entry of the engine that may be made again from its start: run. */
static void dg_free_entered(struct dg_frame *f, dg_operation *run);
static inline void dg_free_enter(struct dg_frame *f, dg_operation *run)
{
	if (dg_mode == DG_MODE_REPLAY && DG_CONTROL->free)
		dg_free_entered(f, run);
}

/* The operation is over; what follows is not made again. */
static void dg_free_left(void);
/* Instead of a divergence; returns if this one ends the replay. */
static void dg_free_diverges(enum dg_reason reason, const struct dg_event *expected, uint64_t place, uint64_t want, uint64_t got,
			     const struct dg_event *event);
/* A thread that waited has got the right to run. */
static void dg_free_resume(void);
/* The right is given away; false: as in any other replay. */
static bool dg_free_pass(void);
/* Every thread rests, and the controller wants them to continue. */
static void dg_free_finish(void);
/* A thread without an event was given the right. */
static void dg_free_past(void);
static void dg_free_park(void);
/* NULL: as in any other replay. */
static const struct dg_event *dg_free_await(enum dg_kind kind, uint64_t object);
/* True: it was taken. */
static bool dg_free_take(const struct dg_event *logged, const struct dg_event *came, const uint64_t *args, uint32_t count);
/* What an operation is called instead; NULL: itself. */
static dg_operation *dg_free_operation(uint64_t op);

struct dg_call;
struct dg_delivery;
struct dg_ucontext;
struct dg_gate;
static void dg_free_system_call(struct dg_frame *f, const struct dg_call *c);
/* Until no other thread has it. */
static void dg_free_gate(const struct dg_gate *g);
/* The index of the thread that is about to be made, whose slot is there. */
static uint32_t dg_free_index(void);
/* What the log says of a thread that waits, or tries, follows from the recorded
 * order: that others had come, had signalled, had the lock. In another it may not
 * be so, and the operation is made as the variable says. */
static void dg_free_expect(bool so, const struct dg_event *e);
/* What a condition variable had before the mutex was released. */
static void dg_free_waits(uint32_t sequence);
static bool dg_free_signalled(uint32_t sequence);
/* True: the log, or what sent the signal, has said what there is to say of it. */
static bool dg_free_signal(struct dg_delivery *d, const struct dg_ucontext *uc);
static bool dg_free_deliver(struct dg_rthread *me, struct dg_ucontext *uc, uint64_t blocked);
static bool dg_free_upcoming(void);

#endif
