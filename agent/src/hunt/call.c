/* System calls of a recording that hunts. Clocks and sleeps are the engine's. Of a
 * call that may wait, the kernel is asked first whether it would: so other threads run
 * meanwhile, and where the process itself ends the wait, the same
 * seed has the same answers. Where it cannot be asked, the thread is away until the
 * call returns, whenever that is. */
#include "engine/engine.h"
#include "hunt/hunt.h"
#include "engine/table.h"
#include "engine/sync.h"
#include "syscall.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>

/* ---- which calls others may come before ---- */

/* What the program asks about itself, and its memory, matters to no other thread. */
static bool dg_hunt_interacts(const struct dg_call *c)
{
	switch (c->row->class_) {
	case DG_CALL_MEMORY:
	case DG_CALL_AGAIN:
	case DG_CALL_REFUSE:
		return false;
	case DG_CALL_SIGNAL:
		return c->nr == SYS_pause || c->nr == SYS_rt_sigsuspend || c->nr == SYS_rt_sigtimedwait;
	}
	switch (c->nr) {
	case SYS_clock_gettime: case SYS_gettimeofday: case SYS_time: case SYS_clock_getres: case SYS_times: case SYS_getpid:
	case SYS_gettid: case SYS_getppid: case SYS_getuid: case SYS_geteuid: case SYS_getgid: case SYS_getegid:
	case SYS_getrandom: case SYS_sched_getaffinity: case SYS_sched_setaffinity: case SYS_uname: case SYS_getrusage:
	case SYS_getcpu: case SYS_prctl: case SYS_arch_prctl: case SYS_getrlimit: case SYS_prlimit64: case SYS_membarrier:
	case SYS_sysinfo: case SYS_exit: case SYS_get_robust_list:
		return false;
	}
	return true;
}

/* ---- time ---- */

static struct timespec dg_hunt_spec(uint64_t ns)
{
	return (struct timespec){ (int64_t)(ns / 1000000000u), (int64_t)(ns % 1000000000u) };
}

static void dg_hunt_clock(struct dg_frame *f, const struct dg_call *c)
{
	struct timespec now = dg_hunt_spec(dg_hunt_now());
	uint64_t at = c->args[c->nr == SYS_clock_gettime];
	long result = c->nr == SYS_time ? now.tv_sec : 0;

	/* As often as it looks at the clock, it may wait for a time to come. */
	if (dg_live > 1 && ++dg_hunt_of(dg_me)->looks > DG_HUNT_LOOKS) {
		dg_hunt_of(dg_me)->looks = 0;
		dg_hunt_of(dg_me)->vain = DG_HUNT_VAIN;
		dg_hunt_arrive(DG_EV_SYSCALL, (uint64_t)c->nr);
	}
	if (c->nr == SYS_gettimeofday)
		now.tv_nsec /= 1000;
	if (at && !dg_give(at, &now, c->nr == SYS_time ? 8 : sizeof(now)))
		result = -EFAULT;
	dg_hunt_result(f, c, result);
}

#define DG_HUNT_BRIEF 4u /* one sleep of so many may be over at once */

/* A sleep is at least as long as it says, and so long only if others have nothing
 * else to do. */
static enum dg_waited dg_hunt_sleeps(uint64_t deadline)
{
	bool brief = DG_HUNT->strategy == DG_HUNT_PLAN || !dg_hunt_below(DG_HUNT_BRIEF);

	return dg_hunt_wait((struct dg_wait){ .how = DG_WAIT_INPUT }, deadline, NULL, brief);
}

/* The end of the sleep that nanosleep or clock_nanosleep asks for, on the clock of the hunt; or
 * the call's error. */
static long dg_hunt_sleep_end(const struct dg_call *c, uint64_t *deadline)
{
	bool clock = c->nr == SYS_clock_nanosleep, absolute = clock && c->args[1] & 1 /* TIMER_ABSTIME */;
	uint64_t from = c->args[clock ? 2 : 0];
	struct timespec t;

	if (!dg_readable(from, sizeof(t)))
		return -EFAULT;
	dg_copy(&t, (const void *)from, sizeof(t));
	if (t.tv_nsec < 0 || t.tv_nsec >= 1000000000 || t.tv_sec < 0)
		return -EINVAL;
	*deadline = dg_hunt_ns(&t) + (absolute ? 0 : DG_HUNT->clock);
	return 0;
}

static void dg_hunt_nanosleep(struct dg_frame *f, const struct dg_call *c)
{
	bool clock = c->nr == SYS_clock_nanosleep, absolute = clock && c->args[1] & 1 /* TIMER_ABSTIME */;
	uint64_t remains = c->args[clock ? 3 : 1], deadline;
	long result = dg_hunt_sleep_end(c, &deadline);
	struct timespec t;

	if (result || dg_hunt_sleeps(deadline) != DG_WAIT_SIGNALLED) {
		dg_hunt_result(f, c, result);
		return;
	}
	t = dg_hunt_spec(deadline > DG_HUNT->clock ? deadline - DG_HUNT->clock : 0);
	if (remains && !absolute)
		dg_give(remains, &t, sizeof(t));
	dg_hunt_result(f, c, -EINTR);
}

/* Whether the call only gives the processor away. A sleep of no time does: who polls with
 * it waits for what others do. */
static bool dg_hunt_gives_way(const struct dg_call *c)
{
	uint64_t deadline;

	if (c->nr == SYS_nanosleep || c->nr == SYS_clock_nanosleep)
		return !dg_hunt_sleep_end(c, &deadline) && deadline <= DG_HUNT->clock;
	return c->nr == SYS_sched_yield;
}

/* What the kernel alone ends. */
static bool dg_hunt_goes_away(const struct dg_call *c)
{
	switch (c->nr) {
	case SYS_connect: case SYS_flock: case SYS_semop: case SYS_semtimedop: case SYS_msgrcv: case SYS_msgsnd:
	case SYS_mq_timedsend: case SYS_mq_timedreceive: case SYS_pause: case SYS_rt_sigsuspend: case SYS_rt_sigtimedwait:
	case SYS_splice: case SYS_tee: case SYS_vmsplice: case SYS_sendfile:
		return true;
	case SYS_fcntl:
		return c->args[1] == F_SETLKW || c->args[1] == F_OFD_SETLKW;
	}
	return false;
}

/* ---- other answers of the engine's ---- */

static void dg_hunt_pin(void)
{
	uint64_t processors[DG_TURN_PROCESSORS / 64] = { 0 };
	int32_t n = DG_HUNT->processor;

	if (n < 0 || n >= (int32_t)DG_TURN_PROCESSORS)
		return;
	dg_sys3(SYS_sched_getaffinity, 0, sizeof(dg_hunt_processors), dg_hunt_processors);
	processors[n / 64] = 1ull << n % 64;
	dg_sys3(SYS_sched_setaffinity, 0, sizeof(processors), processors);
}

static void dg_hunt_affinity(struct dg_frame *f, const struct dg_call *c)
{
	uint64_t bytes = dg_least(c->args[1], sizeof(dg_hunt_processors));
	long result = 0;

	if (c->nr == SYS_sched_getaffinity) {
		result = (long)(bytes & ~7ull);
		if (!result)
			result = -EINVAL;
		else if (!dg_give(c->args[2], dg_hunt_processors, (uint64_t)result))
			result = -EFAULT;
	}
	dg_hunt_result(f, c, result);
}

static void dg_hunt_chance(struct dg_frame *f, const struct dg_call *c)
{
	static uint64_t state = 1;
	uint64_t length = dg_least(c->args[1], 1u << 20), at = 0;

	for (; at < length; at += 8) {
		uint64_t word = state = state * 6364136223846793005ull + 1442695040888963407ull;

		word ^= word >> 33;
		if (!dg_give(c->args[0] + at, &word, dg_least(8, length - at)))
			break;
	}
	dg_hunt_result(f, c, at >= length ? (long)length : -EFAULT);
}

#define DG_HUNT_DELIVERY 40000 /* times 50 us of real time; the tracer sees each signal first */

/* A signal that a thread sends to another is there when the call returns, as far as
 * the other can be seen to have it. */
static void dg_hunt_delivered(uint64_t to, uint64_t signal, bool any)
{
	struct timespec some = { 0, 50000 };

	if (!signal || signal > DG_SIGNALS || dg_actions[signal].handler <= (uint64_t)SIG_IGN)
		return;
	for (int i = 0; i < DG_HUNT_DELIVERY; i++) {
		bool possible = false;

		for (uint32_t n = 1; n <= DG_CONTROL->threads; n++) {
			const struct dg_rthread *t = dg_rthread_number(n);

			if (!dg_wait_stands(t) || !(any ? (uint32_t)to == DG_CONTROL->pid : t->tid == to))
				continue;
			if (t->pending)
				return;
			possible |= !(t->mask & DG_BIT(signal)) && t->state != DG_R_STARTING;
		}
		if (!possible)
			return;
		dg_sys2(SYS_nanosleep, &some, 0);
	}
}

static void dg_hunt_sent(const struct dg_call *c)
{
	switch (c->nr) {
	case SYS_kill:
	case SYS_rt_sigqueueinfo:
		dg_hunt_delivered(c->args[0], c->args[1], true);
		break;
	case SYS_tkill:
		dg_hunt_delivered(c->args[0], c->args[1], false);
		break;
	case SYS_tgkill:
	case SYS_rt_tgsigqueueinfo:
		dg_hunt_delivered(c->args[1], c->args[2], false);
		break;
	}
}

/* ---- the way of a call ---- */

static bool dg_hunt_answered(struct dg_frame *f, const struct dg_call *c)
{
	switch (c->nr) {
	case SYS_clock_gettime:
	case SYS_gettimeofday:
	case SYS_time:
		dg_hunt_clock(f, c);
		return true;
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
		dg_hunt_nanosleep(f, c);
		return true;
	case SYS_poll: case SYS_ppoll: case SYS_select: case SYS_pselect6: case SYS_epoll_wait: case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
		if (!dg_hunt_askable(c))
			return false;
		dg_hunt_poll(f, c);
		return true;
	case SYS_wait4:
	case SYS_waitid:
		return dg_hunt_child(f, c);
	case SYS_sched_getaffinity:
	case SYS_sched_setaffinity:
		if (DG_HUNT->processor < 0)
			return false;
		dg_hunt_affinity(f, c);
		return true;
	case SYS_getrandom:
		dg_hunt_chance(f, c);
		return true;
	}
	return false;
}

static void dg_call_rare(struct dg_frame *f, const struct dg_call *c);

static void dg_hunt_make(struct dg_frame *f, const struct dg_call *c)
{
	if (dg_call_way_of(c) == DG_CALL_DEPARTS)
		dg_data_open();
	if (c->row->class_ != DG_CALL_EMULATE)
		dg_call_rare(f, c);
	else if (!dg_simple_record(f, c))
		dg_call_record(f, c);
}

static void dg_turns_system_call(struct dg_frame *f, const struct dg_call *c);

static void dg_hunt_system_call(struct dg_frame *f, struct dg_call *c)
{
	short events;
	bool away = false;

	if (dg_by_turns) {
		dg_hunt_passed(dg_me, false);
		dg_turns_system_call(f, c);
		return;
	}
	events = dg_live > 1 ? dg_hunt_events(c) : 0;
	dg_hunt_passed(dg_me, false);
	if (dg_hunt_gives_way(c))
		dg_hunt_of(dg_me)->vain = DG_HUNT_VAIN;
	if (dg_hunt_interacts(c))
		dg_hunt_arrive(DG_EV_SYSCALL, (uint64_t)c->nr);
	if (!dg_hunt_answered(f, c) && !(events && dg_hunt_descriptor(f, c, events, &away))) {
		away = dg_live > 1 && (away || dg_hunt_goes_away(c));
		if (away)
			dg_hunt_away();
		dg_hunt_make(f, c);
		if (away)
			dg_hunt_back();
		if (dg_live > 1 && (int64_t)f->rax >= 0)
			dg_hunt_sent(c);
	}
	dg_hunt_goes_on(dg_me);
}
