/* System calls where threads take turns. All are the kernel's; during those that may wait, others run. */
#include "engine/engine.h"
#include "hunt/hunt.h"
#include "engine/table.h"
#include "syscall.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>

static bool dg_turns_polls(const struct dg_call *c)
{
	switch (c->nr) {
	case SYS_poll: case SYS_ppoll: case SYS_select: case SYS_pselect6: case SYS_epoll_wait: case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
		return true;
	}
	return false;
}

/* A sleep of no time, or sched_yield: a thread that polls with it waits for what others do. */
static bool dg_turns_gives_way(const struct dg_call *c)
{
	uint64_t deadline;

	dg_turns_tick();
	if (c->nr == SYS_nanosleep || (c->nr == SYS_clock_nanosleep && !(c->args[1] & 1)))
		return !dg_hunt_sleep_end(c, &deadline) && deadline <= DG_HUNT->clock;
	return c->nr == SYS_sched_yield;
}

/* The open of a FIFO waits for the other end's, which another thread of the process may have to make: fifo(7). */
static bool dg_turns_opens_fifo(const struct dg_call *c)
{
	bool at = c->nr == SYS_openat || c->nr == SYS_openat2;
	struct stat file;

	if (!at && c->nr != SYS_open && c->nr != SYS_creat)
		return false;
	return !dg_sys4(SYS_newfstatat, at ? c->args[0] : (uint64_t)AT_FDCWD, c->args[at], &file, 0) && S_ISFIFO(file.st_mode);
}

/* Whether others run while the call is made: it may wait. */
static bool dg_turns_leaves(const struct dg_call *c)
{
	short events = dg_hunt_events(c);
	struct dg_probe p;

	if (events) {
		p = dg_probe_of(c, events);
		if (dg_probe_ready(&p))
			return events == POLLOUT && dg_hunt_fills(c) && !dg_hunt_asks_not_to_wait(c);
		if (!dg_hunt_asks_not_to_wait(c))
			return true;
		dg_hunt_vain();
		return false;
	}
	if (dg_turns_polls(c)) {
		dg_turns_tick();
		if (dg_hunt_gives_up(c) != DG_HUNT->clock)
			return true;
		dg_hunt_vain();
		return false;
	}
	switch (c->nr) {
	case SYS_nanosleep: case SYS_clock_nanosleep:
		return !dg_turns_gives_way(c);
	case SYS_wait4:
		return !(c->args[2] & WNOHANG);
	case SYS_waitid:
		return !(c->args[3] & WNOHANG);
	case SYS_fsync: case SYS_fdatasync: case SYS_sync: case SYS_msync: case SYS_syncfs:
		return true;
	case SYS_futex: case DG_FUTEX_WAIT2: /* what the engine does not do itself */
		return true;
	}
	return dg_turns_opens_fifo(c) || dg_hunt_goes_away(c);
}

static long dg_hunt_blocking(long nr, const uint64_t args[6], const uint32_t *pending)
{
	long result;

	if (!dg_hunt_of(dg_me)->leaves)
		return dg_blocking(nr, args, pending);
	dg_hunt_away();
	result = dg_blocking(nr, args, pending);
	dg_hunt_back();
	return result;
}

static void dg_turns_system_call(struct dg_frame *f, const struct dg_call *c)
{
	struct dg_hunt_thread *x = dg_hunt_of(dg_me);

	dg_lockstep_enters();
	if (dg_live > 1 && dg_turns_gives_way(c))
		x->vain = DG_HUNT_VAIN;
	if (dg_hunt_interacts(c))
		dg_turns_arrive(DG_EV_SYSCALL, (uint64_t)c->nr);
	if (dg_turns_pinned && (c->nr == SYS_sched_getaffinity || c->nr == SYS_sched_setaffinity)) {
		dg_hunt_affinity(f, c);
	} else {
		x->leaves = dg_live > 1 && dg_turns_leaves(c);
		x->call = c;
		dg_hunt_make(f, c);
		x->leaves = false;
		x->call = NULL;
	}
	dg_lockstep_called();
	dg_hunt_goes_on(dg_me);
}
