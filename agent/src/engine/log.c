/* The log of a recording. Each thread writes events into an extent of its own,
 * which is a piece of the file mapped at DG_ENGINE_LOG + its offset: so bytes that were
 * written are in the file whatever becomes of the process.
 *
 * To touch a page of a mapped file for the first time costs as much as thirty
 * events do. So a thread that writes much keeps one extent, its home, and copies
 * it to another place in the file when it is full. Until that is done
 * the home has it still: of two extents with one sequence the one at the lower
 * offset counts. While a home is made empty it says that it is idle.
 *
 * The disk's room is taken before that, and before an extent is mapped: a page
 * that the disk has no room for would kill the program. */
#include "engine/engine.h"
#include "syscall.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define DG_HOME_BYTES (256u << 10)
#define DG_LOG_WINDOW (DG_ENGINE_IMAGE - DG_ENGINE_LOG)
/* Kept free in every extent, for the event that says why there are no more. */
#define DG_EXTENT_SPARE 192u

static uint64_t dg_ticket(void)
{
	/* The only thread is the one that makes others. */
	if (DG_CONTROL->threads == 1)
		return DG_CONTROL->ticket++;
	return __atomic_fetch_add(&DG_CONTROL->ticket, 1, __ATOMIC_RELAXED);
}

/* Mutexes taken on the fast path since the event before. One that found no
 * budget left has borrowed. */
static uint64_t dg_skipped(struct dg_rthread *me)
{
	if ((int64_t)me->budget < 0)
		me->budget = 0;
	return me->budget_start - me->budget;
}

static uint64_t *dg_event_args(struct dg_event *e)
{
	return (uint64_t *)(e + 1);
}

static uint64_t dg_padded(uint64_t bytes)
{
	return (bytes + 7) & ~7ull;
}

/* After the payloads that the event has so far. */
static uint8_t *dg_event_end(struct dg_event *e)
{
	uint8_t *p = (uint8_t *)(dg_event_args(e) + e->args);

	for (uint32_t i = 0; i < e->payloads; i++)
		p += sizeof(struct dg_payload) + dg_padded(((struct dg_payload *)p)->length);
	return p;
}

static void dg_event_header(struct dg_event *e, enum dg_kind kind, uint64_t object, uint64_t site, uint32_t args)
{
	*e = (struct dg_event){ .kind = (uint8_t)kind, .args = (uint8_t)args, .object = object, .site = site };
}

static void *dg_event_payload(struct dg_event *e, enum dg_payload_kind kind, uint64_t address, const void *data,
			      uint32_t length)
{
	struct dg_payload *p = (struct dg_payload *)dg_event_end(e);
	uint8_t *bytes = (uint8_t *)(p + 1);

	*p = (struct dg_payload){ .address = address, .length = length, .kind = kind };
	if (length & 7)
		*(uint64_t *)(bytes + (length & ~7u)) = 0;
	if (data)
		dg_copy(bytes, data, length);
	e->payloads++;
	return bytes;
}

/* ---- short events ---- */

#define DG_RECENT 32u

/* What a thread's short events refer to. */
static struct dg_recent {
	uint64_t ticket;          /* of its last event */
	uint16_t base[DG_RECENT]; /* by site: offset in the extent / 8; 0: none */
} __attribute__((aligned(128))) dg_recents[DG_RTHREADS];

static uint16_t *dg_recent_base(struct dg_recent *r, const struct dg_event *e)
{
	return &r->base[(e->site ^ e->site >> 5 ^ e->kind) % DG_RECENT];
}

/* kind, flags, args and payloads in one word. */
static uint32_t dg_event_form(const struct dg_event *e)
{
	return *(const uint32_t __attribute__((may_alias)) *)&e->kind;
}

static uint64_t dg_short_address(const struct dg_event *base, const uint64_t *args, const struct dg_payload *p)
{
	const uint64_t *was = (const uint64_t *)(base + 1);

	for (uint32_t i = 0; i < base->args; i++)
		if (was[i] == p->address)
			return args[i];
	return p->address;
}

static bool dg_short_fits(const struct dg_event *e, const struct dg_event *base, uint64_t last)
{
	const uint64_t *args = (const uint64_t *)(e + 1);
	const struct dg_payload *p = (const struct dg_payload *)(args + e->args), *was;

	if (dg_event_form(e) != dg_event_form(base) || e->site != base->site || e->ticket - last > UINT32_MAX)
		return false;
	if (!e->payloads)
		return true;
	was = (const struct dg_payload *)((const uint64_t *)(base + 1) + base->args);
	return p->length <= DG_SHORT_BYTES && p->kind == was->kind && p->address == dg_short_address(base, args, was);
}

/* In the event's own place: bytes are read before others are written over them.
 * The length stays 0; returns the length to be stored. */
static uint32_t dg_event_shorten(struct dg_event *e, const struct dg_event *base, uint64_t last)
{
	typedef uint64_t __attribute__((may_alias)) word;
	const uint64_t object = e->object, skipped = e->skipped, ticket = e->ticket - last;
	const int64_t result = e->result;
	const uint32_t count = e->args, payloads = e->payloads;
	const word *args = (const word *)(e + 1), *was = (const word *)(base + 1);
	struct dg_short s = { .ticket = (uint32_t)ticket, .result = (int32_t)result };
	word *to = (word *)e + sizeof(s) / sizeof(*to);

	if (object != base->object) {
		s.more |= DG_SHORT_OBJECT;
		*to++ = object;
	}
	if (result != s.result) {
		s.more |= DG_SHORT_RESULT;
		*to++ = (uint64_t)result;
	}
	if (skipped) {
		s.more |= DG_SHORT_SKIPPED;
		*to++ = skipped;
	}
	for (uint32_t i = 0; i < count; i++)
		if (args[i] != was[i]) {
			s.args |= (uint8_t)(1u << i);
			*to++ = args[i];
		}
	if (payloads) {
		const struct dg_payload *p = (const struct dg_payload *)(args + count);
		const word *from = (const word *)(p + 1);

		s.bytes = (uint16_t)p->length;
		for (uint32_t i = 0; i < (s.bytes + 7u) / 8; i++)
			*to++ = from[i];
	}
	((word *)e)[1] = (uint64_t)(uint32_t)s.result << 32 | s.ticket;
	((uint32_t __attribute__((may_alias)) *)e)[1] = (uint32_t)s.bytes << 16 | (uint32_t)s.more << 8 | s.args;
	return (uint32_t)((uint64_t)to - (uint64_t)e);
}

/* Returns what the event's length is to be. */
static uint32_t dg_event_form_best(struct dg_rthread *me, struct dg_event *e, uint64_t end)
{
	struct dg_recent *r = &dg_recents[me->index];
	uint64_t offset = (uint64_t)e - me->extent, last = r->ticket;
	uint16_t *base = dg_recent_base(r, e);
	const struct dg_event *was = (const struct dg_event *)(me->extent + *base * 8ull);
	uint32_t length = (uint32_t)(end - (uint64_t)e);

	r->ticket = e->ticket;
	if (e->args > DG_SHORT_ARGS || e->payloads > 1)
		return length;
	if (*base && dg_short_fits(e, was, last))
		return dg_event_shorten(e, was, last) | DG_SHORT | (uint32_t)*base << 16;
	if (offset / 8 <= UINT16_MAX)
		*base = (uint16_t)(offset / 8);
	return length;
}

static void dg_event_commit(struct dg_event *e)
{
	struct dg_rthread *me = dg_me;
	uint64_t end = (uint64_t)dg_event_end(e);
	uint32_t length;

	if (!e->ticket)
		e->ticket = dg_ticket();
	e->skipped = dg_skipped(me);
	me->budget_start = me->budget = DG_BUDGET;
	me->points_start = me->points = DG_POINTS;
	me->ordinal++;
	length = dg_event_form_best(me, e, end);
	me->at = end = (uint64_t)e + (length & DG_SHORT ? length & 0xffffu & ~DG_SHORT : length);
	/* An event that was begun and given up may have written further. */
	if (end + sizeof(uint32_t) <= me->extent + me->extent_size)
		*(uint32_t *)end = 0;
	__atomic_store_n(&e->length, length, __ATOMIC_RELEASE);
}

/* An event whose place among all is not known yet: the log has it, should the process end before. The thread logs nothing else until
 * dg_event_due. */
static void dg_event_commit_pending(struct dg_event *e)
{
	e->ticket = DG_TICKET_PENDING;
	dg_event_commit(e);
}

static void dg_event_due(struct dg_event *e)
{
	uint64_t ticket = dg_ticket();

	dg_recents[dg_me->index].ticket = ticket;
	__atomic_store_n(&e->ticket, ticket, __ATOMIC_RELEASE);
}

static long dg_log_write(const void *bytes, uint64_t length, uint64_t offset)
{
	while (length) {
		long n = dg_sys4(SYS_pwrite64, DG_CONTROL->log_fd, bytes, length, offset);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			return n ? n : -ENOSPC;
		bytes = (const uint8_t *)bytes + n;
		length -= (uint64_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

/* Writes zeros where the file system cannot promise room. */
static long dg_log_fill(uint64_t offset, uint64_t size)
{
	static const uint8_t zeros[4096];
	long error = 0;

	for (uint64_t end = offset + size; !error && offset < end; offset += sizeof(zeros))
		error = dg_log_write(zeros, sizeof(zeros), offset);
	return error;
}

static long dg_log_room(uint64_t offset, uint64_t size)
{
	int fd = DG_CONTROL->log_fd;
	long error;

	do
		error = dg_sys4(SYS_fallocate, fd, 0, offset, size);
	while (error == -EINTR);
	return error == -EOPNOTSUPP || error == -ENOSYS ? dg_log_fill(offset, size) : error;
}

/* Why the recording is over; NULL until it is, and once the log says so. */
static const char *dg_log_why;

/* In the log of the first thread to come by that has an extent, for the one that
 * found no room may have had none. The event goes where every extent has room
 * for it. */
static void dg_log_tell(void)
{
	struct dg_rthread *me = dg_me;
	struct dg_event *e = (struct dg_event *)me->at;
	uint32_t length = 0;
	const char *why;

	if (!me->extent || !__atomic_load_n(&dg_log_why, __ATOMIC_ACQUIRE))
		return;
	why = __atomic_exchange_n(&dg_log_why, NULL, __ATOMIC_ACQ_REL);
	if (!why)
		return;
	while (why[length])
		length++;
	dg_event_header(e, DG_EV_LIMIT, DG_CONTROL->stopped, 0, 0);
	e->flags = DG_EVENT_SOFT; /* the thread reached something else */
	dg_event_payload(e, DG_PAYLOAD_TEXT, 0, why, length);
	dg_event_commit(e);
}

/* The recording is over, the program is not: nothing is written any more, by
 * whatever thread. */
static void dg_log_stop(enum dg_limit limit, const char *why)
{
	uint32_t running = 0;

	if (__atomic_compare_exchange_n(&DG_CONTROL->stopped, &running, limit, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		__atomic_store_n(&dg_log_why, why, __ATOMIC_RELEASE);
	dg_log_tell();
}

/* Why there is no room for an event. */
struct dg_no_room {
	enum dg_limit limit;
	const char *text;
};

static const struct dg_no_room dg_log_limit = { DG_LIMIT_SIZE, "the log has reached its limit" },
			       dg_log_files = { DG_LIMIT_FILES, "the process's limit on the size of files (RLIMIT_FSIZE)" },
			       dg_log_full = { DG_LIMIT_DISK, "no room on disk for the log" },
			       dg_log_unmapped = { DG_LIMIT_DISK, "the log cannot be mapped" };

/* Takes a piece of the file. The program's own limit on files would bring it a
 * SIGXFSZ. */
static const struct dg_no_room *dg_log_take(uint64_t size, uint64_t *offset)
{
	struct dg_control *c = DG_CONTROL;
	uint64_t end = (*offset = __atomic_fetch_add(&c->log_end, size, __ATOMIC_RELAXED)) + size;
	struct rlimit files = { RLIM_INFINITY, RLIM_INFINITY };

	dg_sys4(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &files);
	if (end > DG_LOG_WINDOW || (c->log_limit && end > c->log_limit))
		return &dg_log_limit;
	return end > files.rlim_cur ? &dg_log_files : NULL;
}

static void dg_extent_use(struct dg_rthread *me, struct dg_extent *x, uint64_t size)
{
	/* What an earlier use left is not to be taken for an event. */
	*(uint64_t *)(x + 1) = 0;
	dg_recents[me->index] = (struct dg_recent){ 0 };
	x->thread = me->index;
	x->sequence = me->sequence++;
	x->size = size;
	__atomic_store_n(&x->magic, DG_EXTENT_MAGIC, __ATOMIC_RELEASE);
	me->extent = (uint64_t)x;
	me->extent_size = size;
	me->at = (uint64_t)(x + 1);
	me->end = (uint64_t)x + size - DG_EXTENT_SPARE;
}

/* A new extent in the place of the one in use, which stays as it is in the file.
 * Returns why not. */
static const struct dg_no_room *dg_extent_map(struct dg_rthread *me, uint64_t size)
{
	uint64_t offset, last = me->extent, last_size = me->extent_size;
	const struct dg_no_room *why = dg_log_take(size, &offset);
	struct dg_extent *x;

	if (why)
		return why;
	if (dg_log_room(offset, size))
		return &dg_log_full;
	x = (struct dg_extent *)dg_sys(SYS_mmap, (long)(DG_ENGINE_LOG + offset), (long)size, PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_FIXED, DG_CONTROL->log_fd, (long)offset);
	if ((uint64_t)x != DG_ENGINE_LOG + offset)
		return &dg_log_unmapped;
	/* Reading ahead clears pages that most threads never come to. */
	if (size == DG_EXTENT)
		dg_sys3(SYS_madvise, x, size, MADV_RANDOM);
	dg_extent_use(me, x, size);
	if (last)
		dg_sys2(SYS_munmap, last, last_size);
	return NULL;
}

/* Writes what the home has to where it stays. Returns why not. */
static const struct dg_no_room *dg_home_empty(struct dg_rthread *me)
{
	struct dg_extent *home = (struct dg_extent *)me->home;
	uint64_t offset;
	const struct dg_no_room *why = dg_log_take(DG_HOME_BYTES, &offset);

	if (why)
		return why;
	if (dg_log_room(offset, DG_HOME_BYTES) || dg_log_write(home, DG_HOME_BYTES, offset))
		return &dg_log_full;
	__atomic_store_n(&home->magic, DG_EXTENT_IDLE, __ATOMIC_RELEASE);
	me->extent = 0;
	return NULL;
}

/* An event that fits nowhere else has an extent to itself. */
static const struct dg_no_room *dg_extent_large(struct dg_rthread *me, uint64_t need)
{
	const struct dg_no_room *why = dg_extent_map(me, (need + DG_EXTENT - 1) & ~(uint64_t)(DG_EXTENT - 1));

	if (why && !me->extent && me->home)
		dg_extent_use(me, (struct dg_extent *)me->home, DG_HOME_BYTES);
	return why;
}

/* The first extent is small, for most threads write little; the second is the
 * home. */
static const struct dg_no_room *dg_extent_next(struct dg_rthread *me, uint64_t need)
{
	const struct dg_no_room *why = NULL;

	need += sizeof(struct dg_extent) + DG_EXTENT_SPARE;
	if (me->extent && me->extent == me->home)
		why = dg_home_empty(me);
	if (why)
		return why;
	if (!me->sequence && need <= DG_EXTENT)
		return dg_extent_map(me, DG_EXTENT);
	if (need > DG_HOME_BYTES)
		return dg_extent_large(me, need);
	if (!me->home) {
		why = dg_extent_map(me, DG_HOME_BYTES);
		me->home = why ? 0 : me->extent;
		return why;
	}
	if (me->extent)
		dg_sys2(SYS_munmap, me->extent, me->extent_size);
	dg_extent_use(me, (struct dg_extent *)me->home, DG_HOME_BYTES);
	return NULL;
}

static bool dg_extent_new(struct dg_rthread *me, uint64_t need)
{
	const struct dg_no_room *why = dg_extent_next(me, need);

	if (why)
		dg_log_stop(why->limit, why->text);
	return !why;
}

static struct dg_event *dg_event_begin(enum dg_kind kind, uint64_t object, uint64_t site, uint32_t args,
				       uint64_t payload_bytes)
{
	struct dg_rthread *me = dg_me;
	uint64_t need = sizeof(struct dg_event) + args * sizeof(uint64_t) + payload_bytes + 8;
	struct dg_event *e;

	if (__atomic_load_n(&DG_CONTROL->stopped, __ATOMIC_RELAXED)) {
		dg_log_tell();
		return NULL;
	}
	if (need > UINT32_MAX) {
		dg_log_stop(DG_LIMIT_SIZE, "an event is larger than the log can say");
		return NULL;
	}
	if (me->at + need > me->end && !dg_extent_new(me, need))
		return NULL;
	e = (struct dg_event *)me->at;
	dg_event_header(e, kind, object, site, args);
	return e;
}
