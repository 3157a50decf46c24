/* What a signal that came between two events interrupted, so that a replay can
 * tell the same place again: registers, the live stack and, while the process
 * has one thread, or runs one at a time, the program's writable data. From equal state the run continues
 * equally, so the first place in a replay with equal digests will do. */
#include "engine/engine.h"
#include "hunt/hunt.h"
#include "layout.h"
#include "syscall.h"

#include <fcntl.h>
#include <time.h>

#define DG_STACK_DIGESTED (256ull << 10)
#define DG_DATA_DIGESTED (4ull << 20)
#define DG_DATA_LEAST (32ull << 10)
#define DG_HEAP_STEP (64ull << 10)
#define DG_RANGES 32u
#define DG_DATA_RANGES 128u
#define DG_STACK_WORDS 1024u
#define DG_DATA_WORDS 4096u
#define DG_WORDS_RANGES 2u /* of data */

extern const char __ehdr_start[] DG_HIDDEN, __etext[] DG_HIDDEN;

struct dg_signal_ranges {
	struct dg_range *range;
	uint32_t count, most;
	uint64_t left_out; /* bytes of data */
};

static void dg_state_of(struct dg_signal_state *s, const struct dg_rthread *me, const struct dg_ucontext *uc, bool fault)
{
	memset(s, 0, sizeof(*s));
	dg_copy(s->registers, uc->context.registers, sizeof(s->registers));
	s->flags = ~(DG_FLAG_TRAP | DG_FLAG_RESUME);
	s->registers[DG_REG_FLAGS] &= s->flags;
	s->mask = me->mask;
	if (fault) {
		s->err = uc->context.err;
		s->trapno = uc->context.trapno;
		s->cr2 = uc->context.cr2;
	}
}

static uint64_t dg_state_digest(const struct dg_signal_state *s, const struct dg_ucontext *uc)
{
	uint64_t d = dg_digest(s->registers, sizeof(s->registers), 0);

	return dg_digest((const uint8_t *)uc->context.fpstate + DG_XSTATE_XMM, 256, d);
}

/* Nothing says where the main thread's ends. The kernel keeps so much below it
 * free of other mappings (mmap_base). */
static uint64_t dg_stack_low(const struct dg_rthread *me)
{
	return me->stack_low ? me->stack_low : me->stack_high - (128ull << 20);
}

/* From the red zone up to the stack's end; on a stack that is not known, the
 * rest of a page. */
static struct dg_range dg_live_stack(const struct dg_rthread *me, uint64_t sp)
{
	uint64_t low = sp - DG_RED_ZONE, high;

	if (me->alt_size && sp >= me->alt_low && sp - me->alt_low < me->alt_size)
		high = me->alt_low + me->alt_size;
	else if (sp >= dg_stack_low(me) && sp < me->stack_high)
		/* Other threads write to the control block, which is at its end. */
		high = me->thread_pointer > sp && me->thread_pointer < me->stack_high ? me->thread_pointer : me->stack_high;
	else
		high = (sp & ~(DG_PAGE_SIZE - 1)) + DG_PAGE_SIZE;
	if (high - low > DG_STACK_DIGESTED)
		high = low + DG_STACK_DIGESTED;
	return (struct dg_range){ low, high - low };
}

/* ---- the writable data: lines of /proc/self/maps ---- */

struct dg_map_line {
	uint64_t start, end;
	bool writable, file, counts, anonymous;
};

static const char *dg_hex(const char *p, uint64_t *value)
{
	*value = 0;
	for (;; p++) {
		uint32_t digit;

		if (*p >= '0' && *p <= '9')
			digit = (uint32_t)(*p - '0');
		else if (*p >= 'a' && *p <= 'f')
			digit = (uint32_t)(*p - 'a' + 10);
		else
			return p;
		*value = *value << 4 | digit;
	}
}

static bool dg_starts(const char *p, const char *with)
{
	while (*with && *p == *with) {
		p++;
		with++;
	}
	return !*with;
}

/* libc's and the loader's own data have words that a replay may have otherwise
 * and that no loop of the program waits for. */
static bool dg_path_counts(const char *path)
{
	const char *name = path;

	for (const char *p = path; *p; p++)
		if (*p == '/')
			name = p + 1;
	return !dg_starts(name, "libc.so") && !dg_starts(name, "libc-2") && !dg_starts(name, "ld-linux") &&
	       !dg_starts(name, "ld-2") && !dg_starts(name, "libdiagnose");
}

/* "start-end rwxp offset device inode   path", NUL at its end. */
static bool dg_map_parse(const char *p, struct dg_map_line *m)
{
	uint64_t inode = 0;

	p = dg_hex(p, &m->start);
	if (*p++ != '-')
		return false;
	p = dg_hex(p, &m->end);
	if (*p++ != ' ')
		return false;
	m->writable = p[0] == 'r' && p[1] == 'w' && p[3] == 'p';
	for (int fields = 0; *p && fields < 3; p++)
		fields += *p == ' ';
	while (*p && *p != ' ')
		inode |= (uint64_t)(*p++ != '0');
	while (*p == ' ')
		p++;
	m->file = inode != 0;
	m->anonymous = !*p || dg_starts(p, "[anon");
	m->counts = *p == '/' ? dg_path_counts(p) : dg_starts(p, "[heap]");
	return true;
}

/* Data of files, the zeros that continue it, and brk. */
static bool dg_map_wanted(const struct dg_map_line *m, const struct dg_map_line *before)
{
	if (!m->writable)
		return false;
	if (m->counts)
		return true;
	/* Where threads take turns, a loop that changes nothing else must be told from one that has not begun. */
	if (dg_by_turns && m->anonymous && (m->end <= DG_BASE || m->start >= DG_ENGINE_END) && (!before->file || before->end != m->start))
		return true;
	return !m->file && before->file && before->counts && before->end == m->start;
}

static void dg_range_add(struct dg_signal_ranges *r, uint64_t *budget, uint64_t start, uint64_t end)
{
	uint64_t length = end - start;

	if (length > *budget || r->count == r->most) {
		uint64_t taken = r->count == r->most ? 0 : *budget & ~(DG_PAGE_SIZE - 1);

		r->left_out += length - taken;
		length = taken;
	}
	if (!length)
		return;
	*budget -= length;
	r->range[r->count++] = (struct dg_range){ start, length };
}

struct dg_maps_reader {
	long fd;
	uint32_t at, filled;
	char bytes[1024];
};

/* A line into `line`, cut if it is longer, NUL at its end. False at the end. */
static bool dg_maps_line(struct dg_maps_reader *r, char *line, uint32_t size)
{
	uint32_t n = 0;

	for (;;) {
		if (r->at == r->filled) {
			long got = dg_sys3(SYS_read, r->fd, r->bytes, sizeof(r->bytes));

			if (got <= 0)
				return false;
			r->at = 0;
			r->filled = (uint32_t)got;
		}
		char c = r->bytes[r->at++];

		if (c == '\n')
			break;
		if (n + 1 < size)
			line[n++] = c;
	}
	line[n] = 0;
	return true;
}

/* How often the program changed its mappings: engine/memory.c counts. */
static uint64_t dg_mappings_changed = 1;

static struct {
	uint64_t changed; /* dg_mappings_changed when it was read */
	uint32_t count;
	bool more; /* than there is room for */
	struct dg_range range[DG_DATA_RANGES];
} dg_data_known;

static void dg_data_read(void)
{
	struct dg_maps_reader maps = { .fd = dg_sys3(SYS_open, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0) };
	struct dg_map_line line = { 0 }, before = { 0 };
	char text[320];

	dg_data_known.changed = dg_mappings_changed;
	dg_data_known.count = 0;
	dg_data_known.more = maps.fd < 0;
	if (maps.fd < 0)
		return;
	while (dg_maps_line(&maps, text, sizeof(text)) && dg_map_parse(text, &line)) {
		if (dg_map_wanted(&line, &before)) {
			if (dg_data_known.count < DG_DATA_RANGES)
				dg_data_known.range[dg_data_known.count++] = (struct dg_range){ line.start, line.end - line.start };
			else
				dg_data_known.more = true;
			line.file = line.counts = true; /* what continues it counts too */
		}
		before = line;
	}
	dg_sys1(SYS_close, maps.fd);
}

/* A twentieth of the time since the last such signal, at 8 bytes a nanosecond:
 * a program with a fast timer must get on. */
static uint64_t dg_data_budget(void)
{
	static uint64_t last;
	uint64_t now, passed;
	struct timespec t = { 0, 0 };

	dg_sys2(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	now = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	passed = (now - last) / 20 * 8;
	last = now;
	if (passed > DG_DATA_DIGESTED)
		return DG_DATA_DIGESTED;
	return passed < DG_DATA_LEAST ? DG_DATA_LEAST : passed;
}

/* The objects of the agent's heap, which has guard pages between large ones. */
static void dg_heap_range(struct dg_signal_ranges *r, uint64_t *budget)
{
	const struct dg_root *root = (const struct dg_root *)DG_BASE;
	uint64_t start = DG_BASE + DG_OFF_OBJECTS, end, at = start;

	if (!dg_readable(DG_BASE, sizeof(*root)) || root->magic != DG_MAGIC)
		return;
	end = start + root->objects.mapped;
	while (at < end && at - start < *budget) {
		uint64_t step = end - at < DG_HEAP_STEP ? end - at : DG_HEAP_STEP;

		if (!dg_readable(at, step))
			break;
		at += step;
	}
	dg_range_add(r, budget, start, at);
	r->left_out += end - at;
}

static void dg_data_ranges(struct dg_signal_ranges *r)
{
	uint64_t budget = dg_data_budget();

	if (dg_data_known.changed != dg_mappings_changed)
		dg_data_read();
	for (uint32_t i = 0; i < dg_data_known.count; i++) {
		const struct dg_range *known = &dg_data_known.range[i];

		dg_range_add(r, &budget, known->address, known->address + known->length);
	}
	dg_heap_range(r, &budget);
}

/* How much of a range goes into the log as it is. */
static uint32_t dg_words_of(const struct dg_signal_ranges *r, uint32_t i)
{
	uint64_t most = i ? DG_DATA_WORDS : DG_STACK_WORDS;

	if (i > DG_WORDS_RANGES)
		return 0;
	return (uint32_t)(r->range[i].length < most ? r->range[i].length : most);
}

static uint64_t dg_words_room(const struct dg_signal_ranges *r)
{
	uint64_t room = 0;

	for (uint32_t i = 0; i < r->count; i++)
		room += sizeof(struct dg_payload) + 8 + dg_words_of(r, i);
	return room;
}

static void dg_words_log(struct dg_event *e, const struct dg_signal_ranges *r)
{
	for (uint32_t i = 0; i < r->count && dg_words_of(r, i); i++)
		dg_event_payload(e, DG_PAYLOAD_WORDS, r->range[i].address, (const void *)r->range[i].address, dg_words_of(r, i));
}

static uint64_t dg_data_digest(const struct dg_signal_ranges *r)
{
	uint64_t d = 0;

	for (uint32_t i = 1; i < r->count; i++)
		d = dg_digest((const void *)r->range[i].address, r->range[i].length, d);
	return d;
}
