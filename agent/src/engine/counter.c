/* rdtsc and rdtscp. Where code is known they are patched, as system calls are. If
 * there may be any that are not, they trap (PR_SET_TSC), and the tracer sends the
 * thread to dg_entry_tsc. They do not trap without need: where writing the
 * processor's cr4 is a hypervisor's business, each switch between threads that
 * differ in that costs 15 us, and so does a read of the counter by the engine
 * itself, which would have to switch it on and off. So while it traps, what the
 * program is told is reckoned from a clock.
 *
 * Without a tracer, one that was killed, the next of these that traps kills the
 * program: the engine is not entered at it. */
#include "engine/engine.h"
#include "engine/free.h"
#include "hunt/hunt.h"
#include "syscall.h"

#include <time.h>

#define DG_RATE_AFTER 50000000ull /* ns from which on the counter's rate is known well enough */
#define DG_RATE_SHIFT 20
#define DG_ELAPSED_BITS 43

/* After the instruction in a stub, and a jump over it. */
struct dg_counter_stub {
	uint64_t go;     /* where the program continues */
	uint64_t resume; /* after the instruction in the program's text: the site of events */
};

static uint32_t dg_counter_traps; /* for those threads that know it: dg_rthread.counter_traps */
static uint64_t dg_counter_first, dg_clock_first; /* both when the engine started */
static uint64_t dg_counter_rate; /* ticks in a nanosecond, shifted; 0: not known */
static uint64_t dg_counter_last; /* the last value returned */

static uint64_t dg_clock(void)
{
	struct timespec now = { 0 };

	dg_sys2(SYS_clock_gettime, CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static uint64_t dg_counter(uint32_t *processor)
{
	uint32_t low, high;

	__asm__ volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(*processor));
	return (uint64_t)high << 32 | low;
}

static void dg_counter_follow(void)
{
	dg_me->counter_traps = 1;
	dg_sys2(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV);
}

static void dg_counter_trap(void)
{
	__atomic_store_n(&dg_counter_traps, 1, __ATOMIC_RELEASE);
}

static void dg_counter_start(void)
{
	uint32_t processor;

	dg_clock_first = dg_clock();
	dg_counter_first = dg_counter(&processor);
}

static void dg_counter_learn(uint64_t ticks, uint64_t elapsed)
{
	while (elapsed >> DG_ELAPSED_BITS) {
		elapsed >>= 1;
		ticks >>= 1;
	}
	__atomic_store_n(&dg_counter_rate, ticks / elapsed << DG_RATE_SHIFT | (ticks % elapsed << DG_RATE_SHIFT) / elapsed,
			 __ATOMIC_RELAXED);
}

static uint64_t dg_counter_reckoned(uint32_t *processor)
{
	uint64_t elapsed = dg_clock() - dg_clock_first, rate = __atomic_load_n(&dg_counter_rate, __ATOMIC_RELAXED), counter;
	uint32_t cpu = 0, node = 0;

	if (rate) {
		dg_sys3(SYS_getcpu, &cpu, &node, 0);
		*processor = node << 12 | cpu; /* as Linux sets IA32_TSC_AUX */
		return dg_counter_first + (uint64_t)((unsigned __int128)elapsed * rate >> DG_RATE_SHIFT);
	}
	dg_sys2(SYS_prctl, PR_SET_TSC, PR_TSC_ENABLE);
	counter = dg_counter(processor);
	dg_sys2(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV);
	if (elapsed >= DG_RATE_AFTER && counter > dg_counter_first)
		dg_counter_learn(counter - dg_counter_first, elapsed);
	return counter;
}

/* What the processor does at rdtscp. It never goes back. */
static uint64_t dg_read_counter(uint32_t *processor)
{
	uint64_t last, counter;

	if (dg_hunting() && !dg_by_turns)
		return dg_hunt_counter();
	if (!__atomic_load_n(&dg_counter_traps, __ATOMIC_ACQUIRE))
		return dg_counter(processor);
	counter = dg_counter_reckoned(processor);
	last = __atomic_load_n(&dg_counter_last, __ATOMIC_RELAXED);
	do
		if (counter <= last)
			counter = last + 1;
	while (!__atomic_compare_exchange_n(&dg_counter_last, &last, counter, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return counter;
}

static uint64_t dg_counter_replayed(uint64_t site, uint32_t *processor)
{
	const struct dg_event *e = dg_event_await(DG_EV_TSC, 0);
	uint64_t counter = (uint64_t)e->result;

	if (e->args)
		*processor = (uint32_t)dg_logged_args(e)[0];
	dg_event_take(e, DG_EV_TSC, 0, site, NULL, 0);
	return counter;
}

static uint64_t dg_counter_recorded(uint64_t site, uint32_t *processor)
{
	uint64_t counter = dg_read_counter(processor);
	struct dg_event *e = dg_event_begin(DG_EV_TSC, 0, site, 1, 0);

	if (e) {
		e->result = (int64_t)counter;
		dg_event_args(e)[0] = *processor;
		dg_event_commit(e);
	}
	return counter;
}

/* f->rip: the instruction. */
static void dg_counter_tell(struct dg_frame *f, uint64_t site, bool with_processor)
{
	uint32_t processor = 0;
	uint64_t counter;

	if (dg_counter_traps != dg_me->counter_traps)
		dg_counter_follow();
	counter = dg_mode == DG_MODE_REPLAY ? dg_counter_replayed(site, &processor) : dg_counter_recorded(site, &processor);
	f->rax = (uint32_t)counter;
	f->rdx = counter >> 32;
	if (with_processor)
		f->rcx = processor;
	if (dg_hunting())
		dg_hunt_signalled();
	dg_turn_leave();
}

static bool dg_counter_with_processor(const struct dg_frame *f)
{
	return ((const uint8_t *)f->rip)[1] == 0x01; /* 0f 01 f9, against 0f 31 */
}

/* Called by engine/entry.S. */
void dg_time_stamp(struct dg_frame *f) DG_HIDDEN;
void dg_time_stamp(struct dg_frame *f)
{
	bool with_processor = dg_counter_with_processor(f);

	dg_free_enter(f, dg_time_stamp);
	f->rip += with_processor ? 3 : 2;
	dg_counter_tell(f, f->rip, with_processor);
}

void dg_time_stamp_stub(struct dg_frame *f) DG_HIDDEN;
void dg_time_stamp_stub(struct dg_frame *f)
{
	bool with_processor = dg_counter_with_processor(f);
	struct dg_counter_stub info;

	dg_free_enter(f, dg_time_stamp_stub);
	dg_copy(&info, (const void *)(f->rip + (with_processor ? 5 : 4)), sizeof(info));
	f->rip = info.go;
	dg_counter_tell(f, info.resume, with_processor);
}
