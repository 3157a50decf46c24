/* Puts the patches of the table at DG_ENGINE_SITES into the program's text: see
 * struct dg_site_patch, and engine/engine.h for what a stub is. Stubs lie in areas of
 * their own, near enough for a jump; a replay has them at the same addresses,
 * for the program's pc is in them while it makes a call, and its signal handlers
 * see that. */
#include "engine/engine.h"
#include "syscall.h"

#include <fcntl.h>
#include <linux/mman.h>
#include <sys/mman.h>

#define DG_AREA_STEP 0x10000ull
#define DG_AREA_TRIES 24576u             /* 1.5 GiB: what a jump reaches, less the objects' own extent */
#define DG_CLUSTER 0x10000000ull         /* sites this close to each other share an area */
#define DG_STUB_MOST 192u                /* bytes of the longest stub, infos included */
#define DG_ATOMIC_STUB_MOST 256u         /* bytes of a stub for each entry of an atomic instruction's patch, of which it has three at least */
#define DG_JUMP_BYTES 5u

void dg_entry_syscall(void) DG_HIDDEN;
void dg_entry_tsc_stub(void) DG_HIDDEN;
void dg_entry_point_stub(void) DG_HIDDEN;

/* Where stubs are written. */
struct dg_area {
	uint64_t start, at, end;
	uint64_t slot; /* has the addresses of dg_entry_syscall, dg_entry_tsc_stub and dg_entry_point_stub */
};

static void dg_emit(struct dg_area *a, const void *bytes, uint64_t count)
{
	dg_copy((void *)a->at, bytes, count);
	a->at += count;
}

static void dg_emit_relative(struct dg_area *a, const void *opcode, uint64_t count, uint64_t target)
{
	int32_t distance;

	dg_emit(a, opcode, count);
	distance = (int32_t)(target - (a->at + sizeof(distance)));
	dg_emit(a, &distance, sizeof(distance));
}

static void dg_emit_enter(struct dg_area *a, const struct dg_stub *info)
{
	static const uint8_t lea_rcx[] = { 0x48, 0x8d, 0x0d }, jump_to[] = { 0xff, 0x25 };

	dg_emit_relative(a, lea_rcx, sizeof(lea_rcx), (uint64_t)info);
	dg_emit_relative(a, jump_to, sizeof(jump_to), a->slot);
}

static void dg_emit_jump(struct dg_area *a, uint64_t target)
{
	dg_emit_relative(a, "\xe9", 1, target);
}

/* The instructions that are executed after the call, and the way back. Where
 * there are none the engine goes back by itself. */
static uint64_t dg_emit_after(struct dg_area *a, const struct dg_site_patch *p)
{
	uint64_t at = a->at;

	if (!p->after && p->kind == DG_PATCH_JUMP)
		return p->resume;
	dg_emit(a, (const void *)p->resume, p->after);
	dg_emit_jump(a, p->resume + p->after);
	return p->after ? at : p->resume;
}

/* Executes the instruction itself. A child continues without the engine. */
static void dg_emit_clone(struct dg_area *a, struct dg_stub *info)
{
	static const uint8_t call[] = { 0x0f, 0x05, 0x48, 0x85, 0xc0, 0x74, 0x0d };

	info[0].go = a->at;
	dg_emit(a, call, sizeof(call));
	dg_emit_enter(a, info + 1);
}

static uint64_t dg_stub_make(struct dg_area *a, const struct dg_site_patch *p)
{
	struct dg_stub *info = (struct dg_stub *)((a->at + 7) & ~7ull);
	uint32_t infos = p->kind == DG_PATCH_CLONE ? 2 : 1;
	uint64_t start, behind;

	start = a->at = (uint64_t)(info + infos);
	dg_emit(a, (const void *)p->at, p->before);
	info[0] = (struct dg_stub){ .resume = p->resume, .origin = a->at };
	dg_emit_enter(a, info);
	if (p->kind == DG_PATCH_CLONE)
		dg_emit_clone(a, info);
	behind = dg_emit_after(a, p);
	if (p->kind != DG_PATCH_CLONE) {
		info[0].go = behind;
		return start;
	}
	info[0].kind = DG_STUB_BEFORE;
	info[0].skip = behind;
	info[1] = (struct dg_stub){ .go = behind, .resume = p->resume, .origin = info[0].origin, .kind = DG_STUB_AFTER };
	return start;
}

/* rdtsc leaves every register but its results, and the flags: see engine/entry.S for what
 * dg_entry_tsc_stub expects. After the instruction, which is executed only where
 * the thread is not the engine's, lies what dg_time_stamp_stub reads. */
static uint64_t dg_stub_make_tsc(struct dg_area *a, const struct dg_site_patch *p)
{
	static const uint8_t skip_red_zone[] = { 0x48, 0x8d, 0x64, 0x24, 0x80 }, call[] = { 0xff, 0x15 };
	uint64_t start = a->at, instruction = p->at + p->before;
	struct dg_counter_stub info = { .resume = p->resume };
	uint64_t at;

	dg_emit(a, (const void *)p->at, p->before);
	dg_emit(a, skip_red_zone, sizeof(skip_red_zone));
	dg_emit_relative(a, call, sizeof(call), a->slot + 8);
	dg_emit(a, (const void *)instruction, p->resume - instruction);
	dg_emit(a, "\xeb\x10", 2);
	at = a->at;
	a->at += sizeof(info);
	info.go = dg_emit_after(a, p);
	dg_copy((void *)at, &info, sizeof(info));
	return start;
}

/* The process's own memory as a file, which writes where the program could not.
 * Taking the protection off and putting it back costs eight times as much, where it is
 * not done for many at once. -1: there is none (a chroot, or a kernel told so). */
static int dg_text_fd = -1;

static int dg_open_high(const char *path, int flags); /* where the program does not meet it */

#define DG_TEXTS 16u
#define DG_TEXT_MANY 16u /* sites, from which on a mapping's protection is taken off for all at once */

static struct dg_range dg_texts[DG_TEXTS]; /* text that can be written to for now */
static uint32_t dg_text_count;

/* The address that an entry of a table begins with, whose entries are `stride` bytes apart. */
static uint64_t dg_site_at(const void *sites, uint64_t stride, uint32_t i)
{
	return *(const uint64_t *)((const uint8_t *)sites + i * stride);
}

/* Mappings that have many of the sites, which lie `stride` bytes apart in their table and
 * begin with their address. */
static void dg_texts_open(const void *sites, uint64_t stride, uint32_t count)
{
	struct dg_maps_reader maps = { .fd = -1 };
	struct dg_map_line line = { 0 };
	char text[320];

	if (count >= DG_TEXT_MANY)
		maps.fd = dg_sys3(SYS_open, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
	if (maps.fd < 0)
		return;
	while (dg_text_count < DG_TEXTS && dg_maps_line(&maps, text, sizeof(text)) && dg_map_parse(text, &line)) {
		const char *permissions = text;
		uint32_t within = 0;

		while (*permissions && *permissions != ' ')
			permissions++;
		if (!dg_starts(permissions, " r-xp"))
			continue;
		for (uint32_t i = 0; i < count; i++) {
			uint64_t at = dg_site_at(sites, stride, i);

			within += at >= line.start && at < line.end;
		}
		if (within >= DG_TEXT_MANY && !dg_sys3(SYS_mprotect, line.start, line.end - line.start, PROT_READ | PROT_WRITE | PROT_EXEC))
			dg_texts[dg_text_count++] = (struct dg_range){ line.start, line.end - line.start };
	}
	dg_sys1(SYS_close, maps.fd);
}

static void dg_texts_close(void)
{
	while (dg_text_count) {
		const struct dg_range *t = &dg_texts[--dg_text_count];

		dg_sys3(SYS_mprotect, t->address, t->length, PROT_READ | PROT_EXEC);
	}
}

static bool dg_text_is_open(uint64_t at, uint64_t count)
{
	for (uint32_t i = 0; i < dg_text_count; i++)
		if (at >= dg_texts[i].address && at + count <= dg_texts[i].address + dg_texts[i].length)
			return true;
	return false;
}

/* The text stays executable meanwhile: other threads, and this code's own calls,
 * may be in it. */
static bool dg_text_write(uint64_t at, const uint8_t *bytes, uint64_t count)
{
	uint64_t page = at & ~(DG_PAGE_BYTES - 1), length = ((at + count + DG_PAGE_BYTES - 1) & ~(DG_PAGE_BYTES - 1)) - page;

	if (dg_text_is_open(at, count)) {
		dg_copy((void *)at, bytes, count);
		return true;
	}
	if (dg_text_fd >= 0 && dg_sys4(SYS_pwrite64, dg_text_fd, bytes, count, at) == (long)count)
		return true;
	if (dg_sys3(SYS_mprotect, page, length, PROT_READ | PROT_WRITE | PROT_EXEC))
		return false;
	dg_copy((void *)at, bytes, count);
	dg_sys3(SYS_mprotect, page, length, PROT_READ | PROT_EXEC);
	return true;
}

static bool dg_patch_trap(const struct dg_site_patch *p)
{
	static const uint8_t ud2[] = { 0x0f, 0x0b };

	return dg_text_write(p->resume - 2, ud2, sizeof(ud2));
}

/* The window's text becomes a jump. */
static bool dg_patch_window(const struct dg_site_patch *p, uint64_t stub)
{
	uint8_t bytes[64];
	int32_t distance = (int32_t)(stub - (p->at + DG_JUMP_BYTES));

	if (p->length < DG_JUMP_BYTES || p->length > sizeof(bytes))
		return false;
	for (uint32_t i = 0; i < p->length; i++)
		bytes[i] = 0xcc; /* int3: nothing may jump there */
	bytes[0] = 0xe9;
	dg_copy(bytes + 1, &distance, sizeof(distance));
	return dg_text_write(p->at, bytes, p->length);
}

static bool dg_patch_jump(struct dg_area *a, const struct dg_site_patch *p)
{
	return dg_patch_window(p, p->kind == DG_PATCH_TSC ? dg_stub_make_tsc(a, p) : dg_stub_make(a, p));
}

static bool dg_is_counter(const uint8_t *code, uint64_t length)
{
	return (length == 2 && code[0] == 0x0f && code[1] == 0x31) ||
	       (length == 3 && code[0] == 0x0f && code[1] == 0x01 && code[2] == 0xf9);
}

static bool dg_patch_sound(const struct dg_site_patch *p)
{
	const uint8_t *call = (const uint8_t *)p->resume - 2;

	if (p->kind == DG_PATCH_TSC_TRAP)
		return true;
	if (p->kind == DG_PATCH_TSC)
		return p->before <= 32 && p->after <= 32 &&
		       dg_is_counter((const uint8_t *)p->at + p->before, p->resume - p->at - p->before);
	return call[0] == 0x0f && call[1] == 0x05 && p->before <= 32 && p->after <= 32 &&
	       (p->kind == DG_PATCH_TRAP || p->at + p->before + 2 == p->resume);
}

static uint64_t dg_area_map(uint64_t at, uint64_t size)
{
	uint64_t got = (uint64_t)dg_sys(SYS_mmap, (long)at, (long)size, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (got == at)
		return at;
	/* Before Linux 4.17 the flag is unknown and the address a hint. */
	if (!dg_failed((long)got))
		dg_sys2(SYS_munmap, got, size);
	return 0;
}

/* Downwards first: above a program's own text its heap grows. */
static uint64_t dg_area_search(uint64_t low, uint64_t high, uint64_t size)
{
	uint64_t at = (low & ~(DG_AREA_STEP - 1)) - size, got;

	for (uint32_t i = 0; i < DG_AREA_TRIES && at >= DG_AREA_STEP && at < low; i++, at -= DG_AREA_STEP)
		if ((got = dg_area_map(at, size)))
			return got;
	at = (high + DG_AREA_STEP) & ~(DG_AREA_STEP - 1);
	for (uint32_t i = 0; i < DG_AREA_TRIES; i++, at += DG_AREA_STEP)
		if ((got = dg_area_map(at, size)))
			return got;
	return 0;
}

/* Once the program runs, its threads map memory while another one loads an
 * object, so where there was room is in the log. */
static uint64_t dg_area_place(uint64_t low, uint64_t high, uint64_t size)
{
	struct dg_event *e;
	const struct dg_event *logged;
	uint64_t args[] = { low, size }, at;

	if (dg_mode == DG_MODE_REPLAY) {
		logged = dg_event_await(DG_EV_VALUE, DG_ENGINE_SITES);
		dg_event_take(logged, DG_EV_VALUE, DG_ENGINE_SITES, 0, args, 2);
		at = (uint64_t)logged->result;
		return at && !dg_area_map(at, size) ? 0 : at;
	}
	at = dg_area_search(low, high, size);
	if (dg_mode == DG_MODE_RECORD && (e = dg_event_begin(DG_EV_VALUE, DG_ENGINE_SITES, 0, 2, 0))) {
		dg_copy(dg_event_args(e), args, sizeof(args));
		e->result = (int64_t)at;
		dg_event_commit(e);
	}
	return at;
}

/* Calls `cluster` for each run of the table's entries from..to that lie close to each other, with
 * the text open for writing. The table is sorted by address, piece by piece. A run also ends where `ends` says so. */
static void dg_clusters(const void *sites, uint64_t stride, uint32_t from, uint32_t to, void (*cluster)(uint32_t first, uint32_t count),
			bool (*ends)(uint32_t entry))
{
	if (from < to)
		dg_text_fd = dg_open_high("/proc/self/mem", O_RDWR);
	while (from < to) {
		uint64_t start = dg_site_at(sites, stride, from), last = start, at;
		uint32_t end = from + 1;

		for (; end < to; end++, last = at) {
			at = dg_site_at(sites, stride, end);
			if (at < last || at - start >= DG_CLUSTER || (ends && ends(end)))
				break;
		}
		cluster(from, end - from);
		from = end;
	}
	if (dg_text_fd >= 0)
		dg_sys1(SYS_close, dg_text_fd);
	dg_text_fd = -1;
}

/* Atomic instructions and others have areas of their own. */
static bool dg_patch_ends(uint32_t entry)
{
	const struct dg_site_patch *p = (const struct dg_site_patch *)DG_CONTROL->patches + entry;

	return (p[-1].kind < DG_PATCH_ATOMIC) != (p[0].kind < DG_PATCH_ATOMIC);
}

static void dg_patch_cluster(uint32_t first, uint32_t count)
{
	const struct dg_site_patch *p = (const struct dg_site_patch *)DG_CONTROL->patches + first;
	uint64_t most = p[0].kind < DG_PATCH_ATOMIC ? DG_STUB_MOST : DG_ATOMIC_STUB_MOST;
	uint64_t size = (count * most + 2 * DG_PAGE_BYTES) & ~(DG_PAGE_BYTES - 1);
	uint64_t high = p[0].kind < DG_PATCH_ATOMIC ? p[count - 1].resume : p[count - 1].at;
	struct dg_area a = { .start = dg_area_place(p[0].at, high, size) };

	if (a.start) {
		a.slot = a.start;
		((uint64_t *)a.slot)[0] = (uint64_t)dg_entry_syscall;
		((uint64_t *)a.slot)[1] = (uint64_t)dg_entry_tsc_stub;
		((uint64_t *)a.slot)[2] = (uint64_t)dg_entry_point_stub;
		a.at = a.start + 64;
		a.end = a.start + size;
	}
	dg_texts_open(p, sizeof(*p), count);
	if (p[0].kind >= DG_PATCH_ATOMIC) {
		if (a.start)
			dg_atomic_patches(&a, p, count);
		count = 0;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (!dg_patch_sound(p + i))
			continue;
		if (p[i].kind != DG_PATCH_TRAP && p[i].kind != DG_PATCH_TSC_TRAP && a.start && a.at + DG_STUB_MOST <= a.end &&
		    dg_patch_jump(&a, p + i))
			continue;
		if (p[i].kind == DG_PATCH_TSC || p[i].kind == DG_PATCH_TSC_TRAP)
			dg_counter_trap();
		else
			dg_patch_trap(p + i);
	}
	dg_texts_close();
	if (a.start)
		dg_sys3(SYS_mprotect, a.start, size, PROT_READ | PROT_EXEC);
}

static void dg_patch_sites(void)
{
	struct dg_control *c = DG_CONTROL;
	uint32_t to = c->patch_count;

	dg_clusters((const void *)c->patches, sizeof(struct dg_site_patch), c->patches_done, to, dg_patch_cluster, dg_patch_ends);
	c->patches_done = to;
}

/* Argument: 1 before objects are loaded that nothing will tell of, else 0 after. */
static void dg_op_objects(struct dg_frame *f)
{
	if (f->rsi) {
		dg_counter_trap();
		dg_counter_follow();
		return;
	}
	dg_trap(DG_TRAP_OBJECTS, 0, 0);
	dg_patch_sites();
	dg_point_sites();
}
