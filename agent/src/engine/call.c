/* A system call of the program: made, and what it brought logged; or, in a
 * replay, what the log has. engine/syscall.c says which call is treated how. */
#include "engine/engine.h"
#include "engine/table.h"
#include "hunt/hunt.h"
#include "syscall.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>

#define DG_PAYLOADS_MOST 240u /* of one event; further ones go into events before it */

/* ---- events ---- */

/* What a thread gives away (bytes that another reads, a connection that another
 * finds closed) is there for others before the call returns, so such a call has
 * its ticket from before. A call that takes something has it from after the call,
 * which may have waited. After a call that departs the process may not reach its
 * recording any more. */
enum { DG_CALL_GIVES = 1, DG_CALL_WAITS = 2, DG_CALL_DEPARTS = 3 };

static const uint8_t dg_call_ways[DG_ROWS] = {
	[SYS_write] = DG_CALL_GIVES, [SYS_pwrite64] = DG_CALL_GIVES, [SYS_writev] = DG_CALL_GIVES,
	[SYS_pwritev] = DG_CALL_GIVES, [SYS_pwritev2] = DG_CALL_GIVES, [SYS_sendto] = DG_CALL_GIVES,
	[SYS_sendmsg] = DG_CALL_GIVES, [SYS_sendmmsg] = DG_CALL_GIVES, [SYS_sendfile] = DG_CALL_GIVES,
	[SYS_splice] = DG_CALL_GIVES, [SYS_tee] = DG_CALL_GIVES, [SYS_vmsplice] = DG_CALL_GIVES,
	[SYS_copy_file_range] = DG_CALL_GIVES, [SYS_shutdown] = DG_CALL_GIVES, [SYS_close] = DG_CALL_GIVES,
	[SYS_listen] = DG_CALL_GIVES, [SYS_msgsnd] = DG_CALL_GIVES, [SYS_timerfd_settime] = DG_CALL_GIVES,
	[SYS_rename] = DG_CALL_GIVES, [SYS_renameat] = DG_CALL_GIVES, [SYS_renameat2] = DG_CALL_GIVES,
	[SYS_unlink] = DG_CALL_GIVES, [SYS_unlinkat] = DG_CALL_GIVES, [SYS_mkdir] = DG_CALL_GIVES,
	[SYS_mkdirat] = DG_CALL_GIVES, [SYS_ftruncate] = DG_CALL_GIVES, [SYS_epoll_ctl] = DG_CALL_GIVES,
	[SYS_read] = DG_CALL_WAITS, [SYS_readv] = DG_CALL_WAITS, [SYS_poll] = DG_CALL_WAITS, [SYS_ppoll] = DG_CALL_WAITS,
	[SYS_select] = DG_CALL_WAITS, [SYS_pselect6] = DG_CALL_WAITS, [SYS_epoll_wait] = DG_CALL_WAITS,
	[SYS_epoll_pwait] = DG_CALL_WAITS, [SYS_epoll_pwait2] = DG_CALL_WAITS, [SYS_nanosleep] = DG_CALL_WAITS,
	[SYS_clock_nanosleep] = DG_CALL_WAITS, [SYS_wait4] = DG_CALL_WAITS, [SYS_waitid] = DG_CALL_WAITS,
	[SYS_accept] = DG_CALL_WAITS, [SYS_accept4] = DG_CALL_WAITS, [SYS_connect] = DG_CALL_WAITS,
	[SYS_recvfrom] = DG_CALL_WAITS, [SYS_recvmsg] = DG_CALL_WAITS, [SYS_recvmmsg] = DG_CALL_WAITS,
	[SYS_msgrcv] = DG_CALL_WAITS, [SYS_semop] = DG_CALL_WAITS, [SYS_semtimedop] = DG_CALL_WAITS,
	[SYS_setuid] = DG_CALL_DEPARTS, [SYS_setreuid] = DG_CALL_DEPARTS, [SYS_setresuid] = DG_CALL_DEPARTS,
	[SYS_setfsuid] = DG_CALL_DEPARTS, [SYS_setgid] = DG_CALL_DEPARTS, [SYS_setregid] = DG_CALL_DEPARTS,
	[SYS_setresgid] = DG_CALL_DEPARTS, [SYS_setfsgid] = DG_CALL_DEPARTS, [SYS_setgroups] = DG_CALL_DEPARTS,
	[SYS_capset] = DG_CALL_DEPARTS, [SYS_chroot] = DG_CALL_DEPARTS, [SYS_pivot_root] = DG_CALL_DEPARTS,
	[SYS_unshare] = DG_CALL_DEPARTS, [SYS_setns] = DG_CALL_DEPARTS, [SYS_mount] = DG_CALL_DEPARTS,
	[SYS_umount2] = DG_CALL_DEPARTS, [446 /* landlock_restrict_self, which older headers lack */] = DG_CALL_DEPARTS,
	[SYS_flock] = DG_CALL_WAITS, [SYS_futex] = DG_CALL_WAITS, [DG_FUTEX_WAIT2] = DG_CALL_WAITS,
};

static inline uint8_t dg_call_way_of(const struct dg_call *c)
{
	return (uint64_t)c->nr < DG_ROWS ? dg_call_ways[c->nr] : 0;
}

/* Recording. With one thread there is no other to be in order with. */
static inline void dg_call_way(struct dg_call *c)
{
	uint8_t way = dg_call_way_of(c);

	if (way == DG_CALL_DEPARTS)
		dg_data_open();
	else if (way == DG_CALL_GIVES && dg_many)
		c->ticket = dg_ticket();
	else if (way == DG_CALL_WAITS && dg_many)
		c->arrived = dg_ticket();
}

static struct dg_event *dg_call_begin(const struct dg_call *c, uint64_t payload_bytes)
{
	uint32_t args = c->row->args;
	struct dg_event *e = dg_event_begin(DG_EV_SYSCALL, (uint64_t)c->nr, c->site, args + !!c->arrived, payload_bytes);

	if (!e)
		return NULL;
	for (uint32_t i = 0; i < args; i++)
		dg_event_args(e)[i] = c->args[i];
	if (c->arrived) {
		dg_event_args(e)[args] = c->arrived;
		e->flags = DG_EVENT_ARRIVED;
	}
	return e;
}

static void dg_call_done(struct dg_event *e, long result)
{
	e->result = result;
	dg_event_commit(e);
}

/* A limit is a note at the call that it is about; a replay passes it. */
static void dg_limits_pass(void)
{
	const struct dg_event *e;

	while ((e = dg_event_hard()) && e->kind == DG_EV_LIMIT) {
		e = dg_event_await(DG_EV_LIMIT, e->object);
		dg_event_take(e, DG_EV_LIMIT, e->object, e->site, dg_logged_args(e), e->args);
	}
}

/* How many of its arguments a call has. The other argument registers hold values that were
 * left there by code that may have waited, or not. */
static uint32_t dg_call_args(const struct dg_call *c)
{
	if (c->nr == SYS_prctl)
		return 2; /* libc's takes as many as there may be */
	if (c->nr == SYS_fcntl)
		switch (c->args[1]) {
		case F_GETFD: case F_GETFL: case F_GETOWN: case F_GETSIG: case F_GETLEASE: case F_GETPIPE_SZ: case F_GET_SEALS:
			return 2;
		}
	if (c->nr == SYS_ioctl && (c->args[1] == FIOCLEX || c->args[1] == FIONCLEX))
		return 2;
	return c->row->args;
}

/* NULL: a signal came before the call, which is made again. */
static const struct dg_event *dg_call_await(struct dg_frame *f, const struct dg_call *c)
{
	const struct dg_event *e;

	dg_limits_pass();
	e = dg_event_await(DG_EV_SYSCALL, (uint64_t)c->nr);
	dg_event_take(e, DG_EV_SYSCALL, (uint64_t)c->nr, c->site, c->args, dg_call_args(c));
	if (!(e->flags & DG_EVENT_INTERRUPTED))
		return e;
	dg_again(f);
	return NULL;
}

static void dg_call_interrupted(struct dg_frame *f, const struct dg_call *c, uint32_t flags)
{
	struct dg_event *e = dg_call_begin(c, 0);

	if (e) {
		e->flags |= (uint8_t)(DG_EVENT_INTERRUPTED | flags);
		dg_call_done(e, -EINTR);
	}
	dg_again(f);
}

/* ---- limits ---- */

static uint64_t dg_told[DG_ROWS / 64 + 2]; /* a bit for each number: its limit is in the log */

static bool dg_tell_once(long nr)
{
	uint64_t i = (uint64_t)nr < DG_ROWS ? (uint64_t)nr : DG_ROWS, bit = 1ull << (i & 63);

	return !(__atomic_fetch_or(&dg_told[i / 64], bit, __ATOMIC_RELAXED) & bit);
}

static char *dg_put_text(char *to, const char *text, uint32_t most)
{
	while (*text && most--)
		*to++ = *text++;
	return to;
}

static char *dg_put_number(char *to, uint64_t n, uint32_t base)
{
	char digits[24];
	uint32_t count = 0;

	do
		digits[count++] = "0123456789abcdef"[n % base];
	while (n /= base);
	while (count)
		*to++ = digits[--count];
	return to;
}

/* "name(0x1, 0x2, 0x3)", or the number where there is no name. */
static char *dg_put_call(char *to, const struct dg_call *c)
{
	if (c->row->name)
		to = dg_put_text(to, c->row->name, 32);
	else
		to = dg_put_number(dg_put_text(to, "system call ", 32), (uint64_t)c->nr, 10);
	to = dg_put_text(to, "(", 1);
	for (uint32_t i = 0; i < c->row->args; i++)
		to = dg_put_number(dg_put_text(to, i ? ", 0x" : "0x", 8), c->args[i], 16);
	return dg_put_text(to, ")", 1);
}

static void dg_shared_tell(void);

/* c: the call that the text is about, or NULL. */
static void dg_limit(enum dg_limit limit, uint64_t site, const char *text, const struct dg_call *c)
{
	char line[320], *end = line;
	struct dg_event *e;

	if (c)
		end = dg_put_text(dg_put_call(end, c), ": ", 2);
	end = dg_put_text(end, text, 120);
	e = dg_event_begin(DG_EV_LIMIT, limit, site, 0, DG_PAYLOAD_ROOM(end - line));
	if (!e)
		return;
	dg_event_payload(e, DG_PAYLOAD_TEXT, 0, line, (uint32_t)(end - line));
	dg_event_commit(e);
	if (limit == DG_LIMIT_SHARED)
		dg_shared_tell();
}

/* ---- what a call brought, into the log ---- */

/* In words, as the string instructions take long to start. */
static inline void dg_copy_short(uint64_t *to, const uint64_t *from, uint32_t length)
{
	typedef uint64_t __attribute__((may_alias, aligned(1))) loose;
	typedef uint8_t __attribute__((may_alias)) byte;
	uint32_t at = 0;

	for (; at + 8 <= length; at += 8)
		*(loose *)((byte *)to + at) = *(const loose *)((const byte *)from + at);
	for (; at < length; at++)
		((byte *)to)[at] = ((const byte *)from)[at];
}

static inline void dg_payload_add(struct dg_event *e, const struct dg_piece *p)
{
	uint64_t *to;

	if (p->length > 512) {
		dg_event_payload(e, (enum dg_payload_kind)p->kind, p->address, (const void *)p->address, p->length);
		return;
	}
	to = dg_event_payload(e, (enum dg_payload_kind)p->kind, p->address, NULL, p->length);
	dg_copy_short(to, (const uint64_t *)p->address, p->length);
}

/* Of everything that the program handed out, in the order of the list. */
static bool dg_digest_in(const struct dg_pieces *s, uint64_t digest[2], uint64_t *address)
{
	digest[0] = digest[1] = 0;
	for (uint32_t i = 0; i < s->count; i++) {
		const struct dg_piece *p = s->list + i;

		if (p->kind != DG_PAYLOAD_DIGEST)
			continue;
		if (!digest[1])
			*address = p->address;
		digest[0] = dg_digest((const void *)p->address, p->length, digest[0]);
		digest[1] += p->length;
	}
	return digest[1];
}

static uint64_t dg_pieces_room(const struct dg_pieces *s, uint32_t from, uint32_t to)
{
	uint64_t room = DG_PAYLOAD_ROOM(16);

	for (; from < to; from++)
		if (s->list[from].kind != DG_PAYLOAD_DIGEST)
			room += DG_PAYLOAD_ROOM(s->list[from].length);
	return room;
}

static void dg_pieces_log(struct dg_event *e, const struct dg_pieces *s, uint32_t from, uint32_t to)
{
	for (; from < to; from++)
		if (s->list[from].kind != DG_PAYLOAD_DIGEST)
			dg_payload_add(e, s->list + from);
}

/* What one event cannot hold goes before it. */
static uint32_t dg_pieces_overflow(const struct dg_call *c, const struct dg_pieces *s)
{
	uint32_t from = 0;

	for (; s->count - from > DG_PAYLOADS_MOST; from += DG_PAYLOADS_MOST) {
		struct dg_event *e = dg_event_begin(DG_EV_VALUE, (uint64_t)c->nr, c->site, 0,
						    dg_pieces_room(s, from, from + DG_PAYLOADS_MOST));

		if (!e)
			break;
		dg_pieces_log(e, s, from, from + DG_PAYLOADS_MOST);
		dg_event_commit(e);
	}
	return from;
}

/* The bytes written to a standard stream, for those who ask whether a run failed by its
 * output. Of a vector it is the first part, as stdio has it but for large writes. */
#define DG_WRITTEN_MOST 65536u

static uint64_t dg_written_of(const struct dg_call *c, long result, uint64_t *address)
{
	uint64_t length = result > 0 ? (uint64_t)result : 0;

	if (!DG_CONTROL->keep_output || (c->args[0] != 1 && c->args[0] != 2) || (c->nr != SYS_write && c->nr != SYS_writev))
		return 0;
	*address = c->args[1];
	if (c->nr == SYS_writev && length) {
		const struct dg_vector_at {
			uint64_t base, length;
		} *v = (const struct dg_vector_at *)c->args[1];

		while (!v->length)
			v++;
		*address = v->base;
		length = dg_least(length, v->length);
	}
	return dg_least(length, DG_WRITTEN_MOST);
}

static void dg_call_log(const struct dg_call *c, const struct dg_pieces *s, long result, uint32_t flags, uint64_t ticket)
{
	uint64_t digest[2], address = 0, text = 0, written = dg_written_of(c, result, &text);
	uint32_t from = s->count > DG_PAYLOADS_MOST ? dg_pieces_overflow(c, s) : 0;
	struct dg_event *e = dg_call_begin(c, (s->count ? dg_pieces_room(s, from, s->count) : 0) + (written ? DG_PAYLOAD_ROOM(written) : 0));

	if (!e)
		return;
	e->flags |= (uint8_t)flags;
	e->ticket = from ? 0 : ticket; /* events of a thread are in the order of their tickets */
	dg_pieces_log(e, s, from, s->count);
	if (s->count && dg_digest_in(s, digest, &address))
		dg_copy_short(dg_event_payload(e, DG_PAYLOAD_DIGEST, address, NULL, sizeof(digest)), digest, sizeof(digest));
	if (written)
		dg_event_payload(e, DG_PAYLOAD_WRITTEN, text, (const void *)text, written);
	dg_call_done(e, result);
}

/* ---- what the log has ---- */

static const struct dg_event *dg_values_replay(const struct dg_call *c)
{
	const struct dg_event *e;

	while ((e = dg_event_hard()) && e->kind == DG_EV_VALUE && e->object == (uint64_t)c->nr) {
		e = dg_event_await(DG_EV_VALUE, (uint64_t)c->nr);
		dg_event_take(e, DG_EV_VALUE, (uint64_t)c->nr, c->site, NULL, 0);
		dg_payload_write(e);
	}
	return e;
}

/* Whether what the program hands out is what it handed out. */
static void dg_inputs_check(const struct dg_call *c, const struct dg_event *e)
{
	struct dg_pieces s;
	uint64_t digest[2], address = 0, n = 0;
	const struct dg_payload *p;

	for (uint32_t i = 0; (p = dg_logged_payload(e, i)); i++)
		n += p->kind == DG_PAYLOAD_DIGEST || p->kind == DG_PAYLOAD_TEXT;
	if (!n)
		return;
	s.count = 0;
	s.in = true;
	s.out = s.unknown = false;
	dg_pieces_of(&s, c, e->result);
	dg_digest_in(&s, digest, &address);
	n = 0;
	for (uint32_t i = 0; (p = dg_logged_payload(e, i)); i++) {
		const uint64_t *logged = dg_payload_bytes(p);

		if (p->kind == DG_PAYLOAD_DIGEST && (logged[0] != digest[0] || logged[1] != digest[1]))
			dg_diverge(DG_DIFFERS_DATA, e, i, logged[0], digest[0]);
		if (p->kind != DG_PAYLOAD_TEXT)
			continue;
		while (n < s.count && s.list[n].kind != DG_PAYLOAD_TEXT)
			n++;
		if (n == s.count || s.list[n].length != p->length ||
		    dg_digest(logged, p->length, 0) != dg_digest((const void *)s.list[n].address, p->length, 0))
			dg_diverge(DG_DIFFERS_DATA, e, i, p->length, n < s.count ? s.list[n].length : 0);
		n++;
	}
}

/* --echo: what went to the standard streams goes there again. */
static void dg_echo(const struct dg_call *c, long result)
{
	uint64_t left = (uint64_t)result;

	if (result <= 0 || (c->args[0] != 1 && c->args[0] != 2))
		return;
	if (c->nr == SYS_write) {
		dg_sys3(SYS_write, c->args[0], c->args[1], left);
	} else if (c->nr == SYS_writev) {
		const struct dg_vector_at {
			uint64_t base, length;
		} *v = (const struct dg_vector_at *)c->args[1];

		for (; left; v++) {
			uint64_t n = dg_least(v->length, left);

			dg_sys3(SYS_write, c->args[0], v->base, n);
			left -= n;
		}
	}
}

static void dg_call_replay(struct dg_frame *f, const struct dg_call *c)
{
	const struct dg_event *e;

	dg_limits_pass();
	dg_values_replay(c);
	e = dg_call_await(f, c);
	if (!e)
		return;
	/* The bytes handed out were looked at after the call, too. */
	dg_payload_write(e);
	dg_inputs_check(c, e);
	if (DG_CONTROL->echo)
		dg_echo(c, e->result);
	f->rax = (uint64_t)e->result;
}

/* ---- classes ---- */

/* Bytes that a call wrote that writes in one place, or nowhere. */
static inline uint64_t dg_simple_length(const struct dg_call *c, long result)
{
	const struct dg_part *p = c->row->parts;

	if (p->how == DG_OUT_RESULT)
		return result > 0 ? dg_least((uint64_t)result, c->args[p->count]) * p->size : 0;
	return p->how == DG_OUT_FIXED && result >= 0 && c->args[p->arg] ? p->size : 0;
}

/* The clocks are read without the kernel, through the vDSO that is hidden from
 * the program, as long as the processor's counter does not trap. */
static inline bool dg_clock_at_hand(const struct dg_call *c)
{
	return (c->nr == SYS_clock_gettime || c->nr == SYS_gettimeofday || c->nr == SYS_time) && DG_CONTROL->clock_pc &&
	       !__atomic_load_n(&dg_counter_traps, __ATOMIC_ACQUIRE);
}

/* Into a variable on the thread's stack: anywhere else the kernel is to say
 * whether there is memory. */
static inline bool dg_on_stack(const struct dg_frame *f, uint64_t at, uint64_t bytes)
{
	return at >= f->rsp && at <= dg_me->stack_high - bytes;
}

static inline bool dg_clock_read(const struct dg_frame *f, const struct dg_call *c, long *result)
{
	int (*clock)(uint64_t, struct timespec *) = (int (*)(uint64_t, struct timespec *))DG_CONTROL->clock_pc;
	const uint64_t near = 1u << CLOCK_REALTIME | 1u << CLOCK_MONOTONIC | 1u << CLOCK_BOOTTIME |
			      1u << CLOCK_REALTIME_COARSE | 1u << CLOCK_MONOTONIC_COARSE;
	struct timespec now;

	if (c->nr == SYS_clock_gettime) {
		if (c->args[0] >= 64 || !(near >> c->args[0] & 1) || !dg_on_stack(f, c->args[1], sizeof(now)))
			return false;
		*result = clock(c->args[0], (struct timespec *)c->args[1]);
	} else if (c->nr == SYS_gettimeofday) {
		uint64_t *to = (uint64_t *)c->args[0]; /* struct timeval */

		if (c->args[1] || !dg_on_stack(f, c->args[0], 2 * sizeof(*to)))
			return false;
		*result = clock(CLOCK_REALTIME, &now);
		to[0] = (uint64_t)now.tv_sec;
		to[1] = (uint64_t)now.tv_nsec / 1000;
	} else {
		if (c->args[0])
			return false;
		*result = clock(CLOCK_REALTIME_COARSE, &now) ? -EINVAL : now.tv_sec;
	}
	return true;
}

static inline long dg_call_make(const struct dg_frame *f, const struct dg_call *c)
{
	long result;

	if (dg_clock_at_hand(c) && dg_clock_read(f, c, &result))
		return result;
	result = dg_blocking_call(c->nr, c->args, &dg_me->pending);
	if (__builtin_expect(result == -EINTR || dg_wrote_part(c, result), 0))
		result = dg_go_on(c, result);
	return result;
}

/* Most calls, and with them most small reads. False: not one of these. */
static inline bool dg_simple_record(struct dg_frame *f, const struct dg_call *c)
{
	const struct dg_part *p = c->row->parts;
	struct dg_event *e;
	uint64_t length;
	long result;

	if (p[1].how || (p->how != DG_OUT_RESULT && p->how != DG_OUT_FIXED && p->how))
		return false;
	result = dg_call_make(f, c);
	if (result == DG_NOT_MADE) {
		dg_call_interrupted(f, c, 0);
		return true;
	}
	f->rax = (uint64_t)result;
	length = dg_simple_length(c, result);
	e = dg_call_begin(c, length ? DG_PAYLOAD_ROOM(length) : 0);
	if (!e)
		return true;
	if (length)
		dg_payload_add(e, &(struct dg_piece){ c->args[p->arg], (uint32_t)length, DG_PAYLOAD_OUT });
	e->ticket = c->ticket;
	dg_call_done(e, result);
	return true;
}

/* What a call brought that was made, or answered. */
static void dg_call_made(struct dg_frame *f, const struct dg_call *c, struct dg_pieces *s, long result)
{
	uint64_t ticket = c->ticket;

	f->rax = (uint64_t)result;
	s->count = 0;
	s->in = s->out = true;
	s->unknown = false;
	dg_pieces_of(s, c, result);
	if (s->unknown && dg_tell_once(c->nr)) {
		dg_limit(DG_LIMIT_SYSCALL, c->site, "not known with these arguments; its result alone is recorded", c);
		ticket = 0;
	}
	dg_call_log(c, s, result, 0, ticket);
}

/* Other calls. */
static __attribute__((noinline)) void dg_call_record(struct dg_frame *f, const struct dg_call *c)
{
	struct dg_pieces s;
	long result;

	dg_pieces_before(&s, f, c);
	result = dg_call_make(f, c);
	if (result == DG_NOT_MADE)
		dg_call_interrupted(f, c, 0);
	else
		dg_call_made(f, c, &s, result);
}

static void dg_emulate(struct dg_frame *f, const struct dg_call *c)
{
	if (DG_CONTROL->mode != DG_MODE_RECORD)
		dg_call_replay(f, c);
	else if (!dg_simple_record(f, c))
		dg_call_record(f, c);
}

/* The result is the log's: it may be a number that the kernel would give again. */
static void dg_call_again(struct dg_frame *f, const struct dg_call *c)
{
	const struct dg_event *e;
	long result;

	if (DG_CONTROL->mode == DG_MODE_RECORD) {
		dg_emulate(f, c);
		return;
	}
	e = dg_call_await(f, c);
	if (!e)
		return;
	result = dg_sys(c->nr, (long)c->args[0], (long)c->args[1], (long)c->args[2], (long)c->args[3], (long)c->args[4],
			(long)c->args[5]);
	if (dg_failed(result) != dg_failed(e->result))
		dg_diverge(DG_DIFFERS_STATE, e, 0, (uint64_t)e->result, (uint64_t)result);
	dg_payload_write(e);
	f->rax = (uint64_t)e->result;
}

/* With a result that the engine gives, in both modes. */
static void dg_call_answer(struct dg_frame *f, const struct dg_call *c, long result)
{
	const struct dg_event *e;
	struct dg_pieces s;

	if (DG_CONTROL->mode == DG_MODE_RECORD) {
		s.count = 0;
		dg_call_log(c, &s, result, 0, 0);
		f->rax = (uint64_t)result;
		return;
	}
	e = dg_call_await(f, c);
	if (e)
		f->rax = (uint64_t)e->result;
}

static void dg_call_limit(struct dg_frame *f, const struct dg_call *c)
{
	if (DG_CONTROL->mode == DG_MODE_RECORD && dg_tell_once(c->nr))
		dg_limit(DG_LIMIT_SYSCALL, c->site, "its result alone is recorded", c);
	dg_emulate(f, c);
}
