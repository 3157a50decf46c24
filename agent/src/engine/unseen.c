/* Calls that returned early because of a signal that the program does not see.
 *
 * The kernel drops a signal that is ignored before it wakes anybody, unless its
 * receiver is traced (sig_ignored, kernel/signal.c): then the tracer is asked first,
 * and the call that the receiver was in ends meanwhile: with part of what it was to
 * write, or with EINTR where the kernel does not start it again by itself. Alone the
 * program would see neither, so the call is continued. A signal with a handler is
 * dg_interrupted by now, and a call that it broke off stays so. */
#include "engine/engine.h"
#include "syscall.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* Writes that end when all is written, or nothing can be, but for a signal. */
static bool dg_writes_all(const struct dg_call *c)
{
	struct timeval limit = { 0, 0 };
	uint32_t length = sizeof(limit);
	struct stat file;

	if (dg_sys3(SYS_fcntl, c->args[0], F_GETFL, 0) & O_NONBLOCK || dg_sys2(SYS_fstat, c->args[0], &file))
		return false;
	if (S_ISFIFO(file.st_mode) || S_ISCHR(file.st_mode))
		return true;
	return S_ISSOCK(file.st_mode) && !(c->nr == SYS_sendto && c->args[3] & MSG_DONTWAIT) &&
	       !dg_sys5(SYS_getsockopt, c->args[0], SOL_SOCKET, SO_SNDTIMEO, &limit, &length) && !limit.tv_sec && !limit.tv_usec;
}

/* Those that the kernel ends with EINTR for any signal, and that have no time limit,
 * of which part would have passed. */
static bool dg_waits_on(const struct dg_call *c)
{
	switch (c->nr) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		return (int32_t)c->args[3] < 0;
	case SYS_epoll_pwait2:
		return !c->args[3];
	case SYS_semop:
		return true;
	case SYS_semtimedop:
		return !c->args[3];
	}
	return false;
}

static inline bool dg_wrote_part(const struct dg_call *c, long result)
{
	return (c->nr == SYS_write || c->nr == SYS_sendto) && result > 0 && (uint64_t)result < c->args[2];
}

/* The rest of a write. What went wrong with it is told to the next one, as ever. */
static long dg_write_rest(const struct dg_call *c, long written)
{
	uint64_t args[6];
	long result;

	dg_copy(args, c->args, sizeof(args));
	while ((uint64_t)written < c->args[2]) {
		args[1] = c->args[1] + (uint64_t)written;
		args[2] = c->args[2] - (uint64_t)written;
		result = dg_blocking_call(c->nr, args, &dg_me->pending);
		if (result <= 0)
			break;
		written += result;
	}
	return written;
}

static __attribute__((noinline)) long dg_go_on(const struct dg_call *c, long result)
{
	if (dg_wrote_part(c, result))
		return dg_writes_all(c) && !dg_interrupted() ? dg_write_rest(c, result) : result;
	while (result == -EINTR && dg_waits_on(c) && !dg_interrupted())
		result = dg_blocking_call(c->nr, c->args, &dg_me->pending);
	return result;
}
