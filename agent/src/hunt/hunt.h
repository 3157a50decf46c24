/* What a recording does otherwise whose threads run one at a time, in an order of
 * the engine's own: hunt/hunt.c and its parts. In any other recording, and in a
 * replay, dg_hunts is 0, and nothing here is called. */
#ifndef DG_ENGINE_HUNT_H
#define DG_ENGINE_HUNT_H

#include "engine/engine.h"
#include "engine/free.h"

static uint32_t dg_hunts;
/* The recording does not hunt: its threads take turns. hunt/turns.c */
static uint32_t dg_by_turns;

#define DG_HUNT ((struct dg_hunt *)DG_ENGINE_HUNT)

static inline bool dg_hunting(void)
{
	return __builtin_expect(dg_hunts, 0);
}

/* Once, before dg_mode is set; and in a fork's child, which has one thread. */
static void dg_hunt_start(void);
static void dg_hunt_forked(void);

/* A child that borrowed the calling thread's memory (vfork) has ended, or executes another program. */
static void dg_turns_borrowed(void);

/* The calling thread reaches an event, which is made when it returns: others may
 * have run meanwhile. */
static void dg_hunt_arrive(enum dg_kind kind, uint64_t object);
/* No other thread is in the kernel, so no other thread changes the program's memory. */
static bool dg_hunt_alone(void);
/* A new thread's first event. */
static void dg_hunt_begin(void);
/* After a thread's last one: it must not touch anything of the engine's. */
static void dg_hunt_end(void);
/* The calling thread has got a signal, which is an event. */
static void dg_hunt_signalled(void);
/* Whether its signals wait until it enters the engine again, and that they do no more. */
static bool dg_hunt_holds(const struct dg_rthread *me);
static void dg_hunt_holds_no_more(struct dg_rthread *me);
/* Puts points at the instructions that the tracer has told since: hunt/site.c. */
static void dg_point_sites(void);
/* At a point of the code: dg_rthread.points is used up. */
static void dg_hunt_point(struct dg_frame *f);

struct dg_until;
/* As dg_sleep: until the word has another value. -EAGAIN for that. */
static long dg_hunt_sleep(const void *word, uint32_t expected, const struct dg_until *until);
/* As futex's FUTEX_WAIT: until another thread wakes those that wait for the word. */
static long dg_hunt_sleep_until_woken(const void *word, const struct dg_until *until);
/* How many were woken. */
static uint32_t dg_hunt_wake(const void *word, uint32_t most);
static void dg_hunt_requeue(const void *from, const void *to, uint32_t most);
/* The calling thread tries again what it could not have: others go first. */
static void dg_hunt_vain(void);
struct dg_gate;
static bool dg_hunt_gate(struct dg_gate *g, bool patient);
/* As dg_blocking: others run while the thread is in a call that may wait. */
static long dg_hunt_blocking(long nr, const uint64_t args[6], const uint32_t *pending);
static inline long dg_blocking_call(long nr, const uint64_t args[6], const uint32_t *pending)
{
	return dg_hunting() ? dg_hunt_blocking(nr, args, pending) : dg_blocking(nr, args, pending);
}
/* Where threads take turns: a signal was kept for a thread, which may wait. */
static void dg_turns_ring(void);
struct dg_ucontext;
/* The signal of a turn's end has found no tracer. */
static void dg_turns_untraced(struct dg_rthread *me, const struct dg_ucontext *uc);
/* There is one more thread, which the calling one is about to create; and it has been. */
static void dg_turns_more(void);
static void dg_lockstep_created(void);
/* hunt/lockstep.c has what these say. */
static void dg_lockstep_enters(void);
static void dg_lockstep_called(void);
static void dg_lockstep_start(void);
static bool dg_lockstep_on(void);
static bool dg_lockstep_due(void);
static uint64_t dg_lockstep_length(const struct dg_rthread *t);
static uint32_t dg_lockstep_next(const struct dg_rthread *me);
/* From the tracer: the calling thread's turn is over, at any instruction of the program's. */
__attribute__((noreturn)) static void dg_turns_here(uint64_t vectors);
/* A signal was sent to a thread, or to any: until it is there. */
static void dg_hunt_delivered(uint64_t to, uint64_t signal, bool any);
/* For a while, or until the word changes. */
static void dg_hunt_pause(const uint32_t *word, uint64_t ns);
/* The clock's, a little later each time. */
static uint64_t dg_hunt_now(void);
static uint64_t dg_hunt_counter(void);

struct dg_call;
static void dg_hunt_system_call(struct dg_frame *f, struct dg_call *c);
/* False: it is the kernel's to make. */
static bool dg_hunt_futex(struct dg_frame *f, const struct dg_call *c);
/* An operation of dg_call_table. */
static void dg_hunt_operation(struct dg_frame *f);

#endif
