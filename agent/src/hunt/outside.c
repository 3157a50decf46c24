/* A recording that hunts: calls that may wait for something outside of the process, or
 * for what another thread does by way of the kernel. It is asked first whether
 * they would. */
#include "engine/engine.h"
#include "hunt/hunt.h"
#include "engine/table.h"
#include "engine/wait.h"
#include "engine/sync.h"
#include "syscall.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* ---- what the kernel can be asked ---- */

/* What a thread waits for; a call that would not wait any more returns at once. */
struct dg_probe {
	long nr;
	uint64_t args[6];
	short events; /* of the descriptor args[0], for calls about one */
};

#define DG_HUNT_SET 1024u /* bytes of a set of descriptors */

static long dg_probe_select(const struct dg_probe *p, bool keep)
{
	uint8_t sets[3][DG_HUNT_SET];
	uint64_t bytes = ((p->args[0] + 63) & ~63ull) / 8, none[2] = { 0, 0 };
	long result;

	for (uint32_t i = 0; i < 3; i++)
		if (p->args[i + 1])
			dg_copy(sets[i], (const void *)p->args[i + 1], bytes);
	result = dg_sys5(SYS_select, p->args[0], p->args[1], p->args[2], p->args[3], none);
	for (uint32_t i = 0; (!keep || !result) && i < 3; i++)
		if (p->args[i + 1] && (!keep || !result))
			dg_copy((void *)p->args[i + 1], sets[i], bytes);
	return result;
}

/* The call's result if it does not wait; 0: it would. */
static long dg_probe_ask(const struct dg_probe *p)
{
	struct pollfd one = { (int)p->args[0], p->events, 0 };
	uint64_t none[2] = { 0, 0 };
	siginfo_t info;

	switch (p->nr) {
	case SYS_poll:
	case SYS_ppoll:
		return dg_sys3(SYS_poll, p->args[0], p->args[1], 0);
	case SYS_select:
	case SYS_pselect6:
		return dg_probe_select(p, false);
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
		/* The epoll's own descriptor: to take the events is to lose some. */
		one.events = POLLIN;
		return dg_sys3(SYS_poll, &one, 1, 0);
	case SYS_wait4:
	case SYS_waitid:
		memset(&info, 0, sizeof(info));
		if (p->nr == SYS_waitid)
			return dg_sys5(SYS_waitid, p->args[0], p->args[1], &info, p->args[3] | WNOHANG | WNOWAIT, 0) || info.si_pid;
		return dg_sys5(SYS_waitid, (int32_t)p->args[0] > 0 ? P_PID : P_ALL, p->args[0], &info, WEXITED | WNOHANG | WNOWAIT, 0) ||
		       info.si_pid;
	default:
		return dg_sys4(SYS_ppoll, &one, 1, none, 0);
	}
}

static bool dg_probe_ready(const struct dg_probe *p)
{
	return dg_probe_ask(p) != 0;
}

static struct dg_probe dg_probe_of(const struct dg_call *c, short events)
{
	struct dg_probe p = { .nr = c->nr, .events = events };

	dg_copy(p.args, c->args, sizeof(p.args));
	return p;
}

/* ---- the ends of calls that the engine makes ---- */

static void dg_hunt_result(struct dg_frame *f, const struct dg_call *c, long result)
{
	struct dg_pieces s;

	dg_pieces_before(&s, f, c);
	dg_call_made(f, c, &s, result);
}

/* A signal's handler runs first. What the kernel starts again (signal(7)) is made
 * again after it. */
static void dg_hunt_interrupted(struct dg_frame *f, const struct dg_call *c, bool restarts)
{
	if (restarts && dg_hunt_restarts())
		dg_call_interrupted(f, c, 0);
	else
		dg_hunt_result(f, c, -EINTR);
}

static enum dg_waited dg_hunt_wait_outside(const struct dg_probe *p, uint64_t deadline)
{
	return dg_hunt_wait((struct dg_wait){ .how = DG_WAIT_INPUT }, deadline, p, false);
}

/* ---- calls that wait for several things ---- */

/* When it gives up. The kernel reports wrong arguments. */
static uint64_t dg_hunt_gives_up(const struct dg_call *c)
{
	struct timespec t;
	uint64_t at = 0;
	int64_t ms = -1;

	switch (c->nr) {
	case SYS_poll:
		ms = (int32_t)c->args[2];
		break;
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		ms = (int32_t)c->args[3];
		break;
	case SYS_ppoll:
		at = c->args[2];
		break;
	case SYS_epoll_pwait2:
		at = c->args[3];
		break;
	default:
		at = c->args[4];
	}
	if (at && dg_readable(at, sizeof(t))) {
		dg_copy(&t, (const void *)at, sizeof(t));
		if (c->nr == SYS_select)
			t.tv_nsec *= 1000;
		return DG_HUNT->clock + dg_hunt_ns(&t);
	}
	return ms < 0 ? DG_HUNT_NEVER : DG_HUNT->clock + (uint64_t)ms * 1000000u;
}

static long dg_hunt_poll_result(const struct dg_call *c, const struct dg_probe *p)
{
	switch (c->nr) {
	case SYS_poll:
	case SYS_ppoll:
		return dg_probe_ask(p);
	case SYS_select:
	case SYS_pselect6:
		return dg_probe_select(p, true);
	default:
		return dg_sys5(SYS_epoll_pwait, c->args[0], c->args[1], c->args[2], 0, 0);
	}
}

/* A set may be as large as the descriptors' table, and its memory wrong. */
static bool dg_hunt_askable(const struct dg_call *c)
{
	if (c->nr != SYS_select && c->nr != SYS_pselect6)
		return true;
	for (uint32_t i = 1; i < 4; i++)
		if (c->args[i] && !dg_readable(c->args[i], (c->args[0] + 7) / 8))
			return false;
	return c->args[0] <= DG_HUNT_SET * 8;
}

static void dg_hunt_poll(struct dg_frame *f, const struct dg_call *c)
{
	struct dg_probe p = dg_probe_of(c, 0);
	uint64_t deadline = dg_hunt_gives_up(c);
	enum dg_waited how = DG_WAITED;
	long result = 0;

	if (!dg_probe_ask(&p)) {
		if (deadline == DG_HUNT->clock)
			dg_hunt_vain();
		else
			how = dg_hunt_wait_outside(&p, deadline);
	}
	if (how == DG_WAIT_SIGNALLED)
		result = -EINTR;
	else
		result = dg_hunt_poll_result(c, &p);
	dg_hunt_result(f, c, result);
}

/* ---- calls about one descriptor ---- */

static short dg_hunt_events(const struct dg_call *c)
{
	switch (c->nr) {
	case SYS_read: case SYS_readv: case SYS_recvfrom: case SYS_recvmsg: case SYS_recvmmsg: case SYS_accept: case SYS_accept4:
		return POLLIN;
	case SYS_write: case SYS_writev: case SYS_sendto: case SYS_sendmsg: case SYS_sendmmsg:
		return POLLOUT;
	}
	return 0;
}

static bool dg_hunt_asks_not_to_wait(const struct dg_call *c)
{
	uint64_t flags = 0;

	if (dg_sys3(SYS_fcntl, c->args[0], F_GETFL, 0) & O_NONBLOCK)
		return true;
	if (c->nr == SYS_recvfrom || c->nr == SYS_sendto || c->nr == SYS_recvmmsg || c->nr == SYS_sendmmsg)
		flags = c->args[3];
	else if (c->nr == SYS_recvmsg || c->nr == SYS_sendmsg)
		flags = c->args[2];
	return flags & 0x40; /* MSG_DONTWAIT */
}

/* More than fits at once makes the kernel wait in the middle. */
static bool dg_hunt_fills(const struct dg_call *c)
{
	const uint64_t fits = 4096; /* PIPE_BUF */
	struct stat file;

	if (c->nr == SYS_write || c->nr == SYS_sendto ? c->args[2] <= fits : c->nr == SYS_sendmmsg)
		return false;
	if (dg_sys2(SYS_fstat, c->args[0], &file))
		return false;
	return S_ISFIFO(file.st_mode) || S_ISSOCK(file.st_mode) || S_ISCHR(file.st_mode);
}

/* False: the call is to be made as in any recording. */
static bool dg_hunt_descriptor(struct dg_frame *f, const struct dg_call *c, short events, bool *away)
{
	struct dg_probe p = dg_probe_of(c, events);

	if (dg_probe_ready(&p)) {
		*away = events == POLLOUT && dg_hunt_fills(c) && !dg_hunt_asks_not_to_wait(c);
		return false;
	}
	if (dg_hunt_asks_not_to_wait(c)) {
		dg_hunt_vain();
		return false;
	}
	if (dg_hunt_wait_outside(&p, DG_HUNT_NEVER) != DG_WAIT_SIGNALLED)
		return false;
	dg_hunt_interrupted(f, c, true);
	return true;
}

static bool dg_hunt_child(struct dg_frame *f, const struct dg_call *c)
{
	struct dg_probe p = dg_probe_of(c, 0);

	if (c->args[c->nr == SYS_wait4 ? 2 : 3] & WNOHANG || dg_probe_ready(&p))
		return false;
	if (dg_hunt_wait_outside(&p, DG_HUNT_NEVER) != DG_WAIT_SIGNALLED)
		return false;
	dg_hunt_interrupted(f, c, true);
	return true;
}
