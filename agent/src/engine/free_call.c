/* System calls of a free process: from the log if that has one which fits, done
 * here if they change the process alone, and made up from a small table if
 * neither is so. Nothing that leaves the process is made. */
#include "engine/free.h"
#include "engine/table.h"
#include "syscall.h"

#include <asm/prctl.h>
#include <errno.h>
#include <poll.h>
#include <sys/prctl.h>

/* ---- which events fit ---- */

/* Calls whose first argument says what they are about: a descriptor, a clock. */
static bool dg_free_first_counts(long nr)
{
	switch (nr) {
	case SYS_read: case SYS_write: case SYS_close: case SYS_fstat: case SYS_lseek: case SYS_ioctl: case SYS_pread64:
	case SYS_pwrite64: case SYS_readv: case SYS_writev: case SYS_dup: case SYS_dup2: case SYS_dup3: case SYS_fcntl:
	case SYS_flock: case SYS_fsync: case SYS_fdatasync: case SYS_ftruncate: case SYS_getdents: case SYS_getdents64:
	case SYS_fchdir: case SYS_fstatfs: case SYS_epoll_wait: case SYS_epoll_pwait: case SYS_epoll_ctl:
	case SYS_timerfd_settime: case SYS_timerfd_gettime: case SYS_connect: case SYS_accept: case SYS_accept4:
	case SYS_sendto: case SYS_recvfrom: case SYS_sendmsg: case SYS_recvmsg: case SYS_recvmmsg: case SYS_sendmmsg:
	case SYS_shutdown: case SYS_bind: case SYS_listen: case SYS_getsockname: case SYS_getpeername: case SYS_setsockopt:
	case SYS_getsockopt: case SYS_preadv: case SYS_pwritev: case SYS_preadv2: case SYS_pwritev2: case SYS_clock_gettime:
	case SYS_clock_getres: case SYS_prctl: case SYS_timer_settime: case SYS_timer_gettime: case SYS_timer_delete:
		return true;
	}
	return false;
}

/* The path that the log has of such a call. */
static bool dg_free_text_fits(const struct dg_event *e, const struct dg_call *c)
{
	const struct dg_payload *p;
	uint64_t text = 0;

	for (const struct dg_part *part = c->row->parts; part < c->row->parts + DG_PARTS && part->how && !text; part++)
		if (part->how == DG_IN_TEXT)
			text = c->args[part->arg];
	for (uint32_t i = 0; text && (p = dg_logged_payload(e, i)); i++)
		if (p->kind == DG_PAYLOAD_TEXT)
			return dg_readable(text, p->length) &&
			       dg_digest((const void *)text, p->length, 0) == dg_digest(dg_payload_bytes(p), p->length, 0);
	return true;
}

static bool dg_free_call_fits(const struct dg_event *e, const struct dg_call *c)
{
	const uint64_t *args = dg_logged_args(e);

	if (c->row->class_ == DG_CALL_MEMORY)
		return e->args >= 2 && (c->nr == SYS_brk || args[1] == c->args[1]);
	if (dg_free_first_counts(c->nr) && (!e->args || (uint32_t)args[0] != (uint32_t)c->args[0]))
		return false;
	if ((c->nr == SYS_ioctl || c->nr == SYS_fcntl || c->nr == SYS_lseek) && (e->args < 2 || args[1] != c->args[1]))
		return false;
	return dg_free_text_fits(e, c);
}

/* Whether the call brings something in that is worth looking for. */
static bool dg_free_is_input(const struct dg_call *c)
{
	const struct dg_part *p = c->row->parts;

	if (c->row->paper == DG_PAPER_RECORDABLE || c->row->paper == DG_PAPER_REVOCABLE)
		return true;
	return p->how && p->how < DG_IN;
}

static const struct dg_event *dg_free_call_event(const struct dg_call *c, bool input)
{
	return dg_free_event(&(struct dg_free_want){
		.kind = DG_EV_SYSCALL, .object = (uint64_t)c->nr, .site = c->site, .call = c, .far = input,
	});
}

/* ---- what the log has, into the program's memory ---- */

/* A byte of each page is written as it is. */
static bool dg_free_writable(uint64_t to, uint64_t length)
{
	long pid = dg_sys0(SYS_getpid);
	uint8_t byte;

	for (uint64_t at = to; at < to + length; at = (at & ~(DG_PAGE_BYTES - 1)) + DG_PAGE_BYTES) {
		struct iovec here = { &byte, 1 }, there = { (void *)at, 1 };

		if (dg_sys(SYS_process_vm_readv, pid, (long)&here, 1, (long)&there, 1, 0) != 1 ||
		    dg_sys(SYS_process_vm_writev, pid, (long)&here, 1, (long)&there, 1, 0) != 1)
			return false;
	}
	return true;
}

/* The copy is made here, for the kernel's writes are seen by no watch. */
static bool dg_free_give(uint64_t to, const void *from, uint64_t length)
{
	if (to + length < to || (to < DG_ENGINE_STACKS && to + length > DG_ENGINE_BASE) || !dg_free_writable(to, length))
		return false;
	dg_copy((void *)to, from, length);
	return true;
}

static bool dg_free_same_args(const struct dg_call *c, const struct dg_event *e)
{
	for (uint32_t i = 0; i < c->row->args && i < e->args; i++)
		if (dg_logged_args(e)[i] != c->args[i])
			return false;
	return true;
}

/* Where the program has its buffers, which is not where it had them. */
static bool dg_free_pieces(const struct dg_call *c, const struct dg_event *e, long result)
{
	struct dg_pieces s = { .count = 0, .out = true };
	const struct dg_payload *p;
	uint32_t piece = 0;

	dg_pieces_of(&s, c, result);
	for (uint32_t i = 0; (p = dg_logged_payload(e, i)) && piece < s.count; i++) {
		if (p->kind != DG_PAYLOAD_OUT)
			continue;
		if (!dg_free_give(s.list[piece].address, dg_payload_bytes(p), dg_least(p->length, s.list[piece].length)))
			return false;
		piece++;
	}
	return true;
}

static long dg_free_results(const struct dg_call *c, const struct dg_event *e)
{
	const struct dg_part *part = c->row->parts;
	const struct dg_payload *p;
	long result = (long)e->result;

	if (!dg_free_same_args(c, e)) {
		if (part->how == DG_OUT_RESULT && result > 0)
			result = (long)dg_least((uint64_t)result, c->args[part->count]);
		return dg_free_pieces(c, e, result) ? result : -EFAULT;
	}
	for (uint32_t i = 0; (p = dg_logged_payload(e, i)); i++)
		if (p->kind == DG_PAYLOAD_OUT && !dg_free_give(p->address, dg_payload_bytes(p), p->length))
			return -EFAULT;
	return result;
}

/* ---- the table ---- */

#define DG_FREE_LATER 1000u /* ns */

static uint64_t dg_free_clocks[16]; /* the last time returned, in ns */

static void dg_free_clock_told(const struct dg_call *c, long result)
{
	struct timespec t;

	if (c->nr != SYS_clock_gettime || result || c->args[0] >= 16 || !dg_readable(c->args[1], sizeof(t)))
		return;
	dg_copy(&t, (const void *)c->args[1], sizeof(t));
	dg_free_clocks[c->args[0]] = (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static long dg_free_clock(const struct dg_call *c)
{
	uint64_t now = dg_free_clocks[c->nr == SYS_clock_gettime ? c->args[0] & 15 : 0] += DG_FREE_LATER;
	uint64_t t[2] = { now / 1000000000, now % 1000000000 };

	if (c->nr == SYS_time)
		return (long)t[0];
	if (c->nr == SYS_gettimeofday)
		t[1] /= 1000;
	return dg_free_give(c->args[c->nr == SYS_clock_gettime], t, sizeof(t)) ? 0 : -EFAULT;
}

static long dg_free_random(const struct dg_call *c)
{
	static uint64_t state = 0x9e3779b97f4a7c15ull;
	uint64_t length = dg_least(c->args[1], 4096);

	for (uint64_t at = 0; at < length; at++) {
		uint8_t byte;

		state = state * 6364136223846793005ull + 1442695040888963407ull;
		byte = (uint8_t)(state >> 56);
		if (!dg_free_give(c->args[0] + at, &byte, 1))
			return -EFAULT;
	}
	return (long)length;
}

static long dg_free_vector(const struct dg_call *c)
{
	struct dg_pieces s = { .count = 0, .in = true };
	uint64_t bytes = 0;

	if (!dg_readable(c->args[1], dg_least(c->args[2], 1024) * 16))
		return -EFAULT;
	dg_vector(&s, DG_PAYLOAD_DIGEST, c->args[1], dg_least(c->args[2], 1024), INT64_MAX);
	for (uint32_t i = 0; i < s.count; i++)
		bytes += s.list[i].length;
	return (long)bytes;
}

/* What waits for something that never comes, unless a signal does. */
static long dg_free_for_ever(const struct dg_call *c)
{
	dg_free_at(DG_EV_SYSCALL, (uint64_t)c->nr);
	if (dg_free_wait(DG_WAIT_INPUT, NULL, 0, false) == DG_WAIT_SIGNALLED)
		return -EINTR;
	return -EAGAIN;
}

static bool dg_free_untimed(const struct dg_call *c)
{
	switch (c->nr) {
	case SYS_poll:
		return (int32_t)c->args[2] < 0;
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
		return (int32_t)c->args[3] < 0;
	case SYS_ppoll:
		return !c->args[2];
	case SYS_epoll_pwait2:
		return !c->args[3];
	case SYS_select:
	case SYS_pselect6:
		return !c->args[4];
	case SYS_rt_sigtimedwait:
		return !c->args[2];
	case SYS_accept:
	case SYS_accept4:
	case SYS_pause:
	case SYS_rt_sigsuspend:
		return true;
	}
	return false;
}

static long dg_free_made_up(const struct dg_call *c)
{
	switch (c->nr) {
	case SYS_write: case SYS_pwrite64: case SYS_sendto:
		return (long)c->args[2];
	case SYS_writev: case SYS_pwritev: case SYS_pwritev2:
		return dg_free_vector(c);
	case SYS_clock_gettime: case SYS_gettimeofday: case SYS_time:
		return dg_free_clock(c);
	case SYS_getrandom:
		return dg_free_random(c);
	case SYS_nanosleep: case SYS_clock_nanosleep: case SYS_poll: case SYS_ppoll: case SYS_select: case SYS_pselect6:
	case SYS_epoll_wait: case SYS_epoll_pwait: case SYS_epoll_pwait2:
		dg_free_vain();
		return 0;
	case SYS_read: case SYS_pread64: case SYS_readv: case SYS_preadv: case SYS_preadv2: case SYS_recvfrom: case SYS_recvmsg:
	case SYS_getdents: case SYS_getdents64: case SYS_close: case SYS_close_range: case SYS_fsync: case SYS_fdatasync:
	case SYS_shutdown: case SYS_setsockopt: case SYS_epoll_ctl: case SYS_fcntl: case SYS_flock: case SYS_membarrier:
	case SYS_setitimer: case SYS_timer_settime: case SYS_timerfd_settime: case SYS_alarm: case SYS_prctl: case SYS_sendmsg:
	case SYS_timer_delete: case SYS_msync: case SYS_mlock: case SYS_munlock: case SYS_seccomp: case SYS_ftruncate:
		return 0;
	case SYS_open: case SYS_openat: case SYS_openat2: case SYS_stat: case SYS_lstat: case SYS_newfstatat: case SYS_statx:
	case SYS_access: case SYS_faccessat: case SYS_faccessat2: case SYS_readlink: case SYS_readlinkat: case SYS_unlink:
		return -ENOENT;
	case SYS_ioctl:
		return -ENOTTY;
	case SYS_lseek:
		return -ESPIPE;
	case SYS_wait4: case SYS_waitid:
		return -ECHILD;
	case SYS_rt_sigtimedwait:
		return -EAGAIN;
	case SYS_execve: case SYS_execveat:
		return -EACCES;
	}
	return -ENOSYS;
}

/* ---- calls ---- */

static bool dg_free_interrupts(struct dg_frame *f, const struct dg_event *e)
{
	if (!e || !(e->flags & DG_EVENT_INTERRUPTED))
		return false;
	dg_again(f);
	return true;
}

static bool dg_free_gives(const struct dg_call *c)
{
	return c->nr == SYS_write || c->nr == SYS_pwrite64 || c->nr == SYS_sendto || c->nr == SYS_writev;
}

static void dg_free_emulate(struct dg_frame *f, const struct dg_call *c)
{
	const struct dg_event *e;
	long result;

	dg_free_turn();
	e = dg_free_call_event(c, dg_free_is_input(c));
	if (dg_free_interrupts(f, e))
		return;
	if (!e) {
		DG_CONTROL->made_up++;
		result = dg_free_untimed(c) ? dg_free_for_ever(c) : dg_free_made_up(c);
		if (result == -EINTR)
			dg_me->pending = 1;
	} else if (dg_free_gives(c) && e->result > 0 && !dg_free_same_args(c, e)) {
		result = dg_free_made_up(c);
	} else {
		result = dg_free_results(c, e);
		dg_free_clock_told(c, result);
	}
	if (DG_CONTROL->echo)
		dg_echo(c, result);
	f->rax = (uint64_t)result;
}

/* The log's place, and the result that is known. */
static void dg_free_answer(struct dg_frame *f, const struct dg_call *c, long result)
{
	dg_free_turn();
	if (!dg_free_interrupts(f, dg_free_call_event(c, false)))
		f->rax = (uint64_t)result;
}

static struct dg_rthread *dg_free_thread(uint64_t tid)
{
	for (uint32_t i = 1; i <= DG_CONTROL->threads; i++)
		if (dg_rthread_number(i)->tid == tid && dg_rthread_number(i)->state != DG_R_ENDED)
			return dg_rthread_number(i);
	return NULL;
}

static void dg_free_kill(struct dg_frame *f, const struct dg_call *c)
{
	struct dg_rthread *to = dg_me;
	uint64_t tid = c->nr == SYS_tgkill || c->nr == SYS_rt_tgsigqueueinfo ? c->args[1] : c->args[0];
	uint64_t signal = c->args[c->nr == SYS_tgkill || c->nr == SYS_rt_tgsigqueueinfo ? 2 : 1];
	const struct dg_event *e;

	dg_free_turn();
	if (c->nr == SYS_kill || c->nr == SYS_rt_sigqueueinfo)
		to = !tid || tid == DG_CONTROL->pid ? dg_me : NULL;
	else if (tid != dg_me->tid)
		to = dg_free_thread(tid);
	if (to && dg_free_fatal((uint32_t)signal))
		dg_free_dies((uint32_t)signal); /* no log has such a call */
	e = dg_free_call_event(c, false);
	if (dg_free_interrupts(f, e))
		return;
	f->rax = e ? (uint64_t)e->result : 0;
	/* A handler of another thread's is in that thread's log, if the call is here. */
	if (to && (!e || to == dg_me))
		dg_free_raise(to, (uint32_t)signal);
}

static void dg_free_futex(struct dg_frame *f, const struct dg_call *c)
{
	uint32_t operation = dg_futex_operation(c);
	const uint32_t *word = (const uint32_t *)c->args[0];
	long result = 0;

	dg_free_at(DG_EV_SYSCALL, (uint64_t)c->nr);
	dg_free_turn();
	if (!dg_readable((uint64_t)word, 4)) {
		result = -EFAULT;
	} else if (operation == FUTEX_WAIT) {
		result = -EAGAIN;
		if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == dg_futex_expected(c))
			switch (dg_free_wait(DG_WAIT_WAKE, word, 0, c->args[3])) {
			case DG_WAITED:
				result = 0;
				break;
			case DG_WAITED_TOO_LONG:
				result = -ETIMEDOUT;
				break;
			case DG_WAIT_SIGNALLED:
				result = -EINTR;
				dg_me->pending = 1;
			}
	} else if (operation == FUTEX_WAKE) {
		result = (long)dg_free_wake((uint64_t)word, c->args[2]);
	} else if (dg_futex_inherits(operation)) {
		result = -ENOSYS;
	} else {
		if (operation == FUTEX_WAKE_OP)
			dg_futex_apply(c);
		/* Who is woken too early looks again. */
		result = (long)dg_free_wake((uint64_t)word, UINT32_MAX) + (long)dg_free_wake(c->args[4], UINT32_MAX);
	}
	dg_free_event(&(struct dg_free_want){ .kind = DG_EV_SYSCALL, .object = (uint64_t)c->nr, .site = c->site, .soft = true });
	f->rax = (uint64_t)result;
}

/* At the recorded address if it is free there, for the log's other addresses are
 * found by it. A file that the log does not have cannot be had. */
static void dg_free_memory(struct dg_frame *f, const struct dg_call *c)
{
	bool file = c->nr == SYS_shmat || (c->nr == SYS_mmap && !(c->args[3] & MAP_ANONYMOUS));
	const struct dg_event *e;
	long result = -1;

	dg_free_turn();
	e = dg_free_call_event(c, file);
	if (dg_free_interrupts(f, e))
		return;
	if (e && !dg_failed(e->result) && (c->nr == SYS_mmap || c->nr == SYS_mremap || file))
		result = dg_memory_again(c, e);
	if (dg_failed(result) && file) {
		DG_CONTROL->made_up++;
		result = -ENODEV;
	} else if (dg_failed(result)) {
		result = dg_memory_make(c);
	}
	f->rax = (uint64_t)result;
}

static void dg_free_exit_group(const struct dg_call *c)
{
	dg_free_at(DG_EV_END, 0);
	dg_free_turn();
	dg_free_did(DG_EV_END, 0, c->site);
	for (;;) {
		dg_trap(DG_TRAP_EXIT, c->args[0], 0);
		if (!DG_CONTROL->tracer)
			dg_sys1(SYS_exit_group, 255);
	}
}

static void dg_free_thread_call(struct dg_frame *f, const struct dg_call *c)
{
	switch (c->nr) {
	case SYS_exit_group:
		dg_free_exit_group(c);
		return;
	case SYS_execve:
	case SYS_execveat:
		dg_free_emulate(f, c);
		return;
	default:
		dg_thread_call(f, c);
	}
}

static void dg_free_signal_call(struct dg_frame *f, const struct dg_call *c)
{
	void (*does)(struct dg_rthread *, struct dg_frame *, const struct dg_call *) = NULL;

	if (c->nr == SYS_rt_sigprocmask)
		does = dg_free_procmask;
	else if (c->nr == SYS_rt_sigaction)
		does = dg_free_action;
	else if (c->nr == SYS_sigaltstack)
		does = dg_free_altstack;
	if (!does) {
		dg_free_emulate(f, c);
		return;
	}
	dg_free_turn();
	if (!dg_free_interrupts(f, dg_free_call_event(c, false)))
		does(dg_me, f, c);
}

static void dg_free_special(struct dg_frame *f, const struct dg_call *c)
{
	switch (c->nr) {
	case SYS_prctl:
		if (c->args[0] == PR_SET_NAME)
			dg_free_answer(f, c, dg_sys2(SYS_prctl, PR_SET_NAME, c->args[1]));
		else
			dg_free_emulate(f, c);
		return;
	case SYS_arch_prctl:
		dg_free_answer(f, c, dg_sys2(SYS_arch_prctl, c->args[0], c->args[1]));
		return;
	case SYS_close:
	case SYS_dup2:
	case SYS_dup3:
	case SYS_close_range:
	case SYS_seccomp:
	case SYS_ptrace:
		dg_free_emulate(f, c);
		return;
	default:
		dg_free_futex(f, c);
	}
}

static void dg_free_by_class(struct dg_frame *f, const struct dg_call *c)
{
	switch (c->row->class_) {
	case DG_CALL_AGAIN:
		dg_free_answer(f, c, c->nr == SYS_set_tid_address ? (dg_sys1(SYS_set_tid_address, c->args[0]), (long)dg_me->tid) :
								   dg_sys3(c->nr, c->args[0], c->args[1], c->args[2]));
		return;
	case DG_CALL_MEMORY:
		dg_free_memory(f, c);
		return;
	case DG_CALL_THREAD:
		dg_free_thread_call(f, c);
		return;
	case DG_CALL_SIGNAL:
		dg_free_signal_call(f, c);
		return;
	case DG_CALL_SPECIAL:
		dg_free_special(f, c);
		return;
	case DG_CALL_REFUSE:
		dg_free_answer(f, c, -ENOSYS);
		return;
	default:
		dg_free_emulate(f, c);
	}
}

static void dg_free_system_call(struct dg_frame *f, const struct dg_call *c)
{
	dg_free_at(DG_EV_SYSCALL, (uint64_t)c->nr);
	switch (c->nr) {
	case SYS_getpid:
		dg_free_answer(f, c, DG_CONTROL->pid);
		return;
	case SYS_gettid:
		dg_free_answer(f, c, dg_me->tid);
		return;
	case SYS_sched_yield:
		dg_free_answer(f, c, 0);
		dg_free_vain();
		return;
	case SYS_kill:
	case SYS_tkill:
	case SYS_tgkill:
	case SYS_rt_sigqueueinfo:
	case SYS_rt_tgsigqueueinfo:
		dg_free_kill(f, c);
		return;
	default:
		dg_free_by_class(f, c);
	}
}
