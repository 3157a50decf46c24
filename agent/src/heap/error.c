/* Evidence found while the program runs: recorded for whoever reads the
 * memory, told in a line, and acted upon as on_error says.
 *
 * A line is `diagnose:` and key=value pairs with single spaces between; a value
 * has no spaces, what would break it is written %XX. Keys come in this order,
 * and one that says nothing is left out; later versions may add keys at the end:
 *
 *   error      overflow underflow use-after-free double-free free-middle
 *              free-wild free-stack free-global free-foreign mismatch
 *   when       free realloc eviction check exit size
 *   pid tid    of the process, and of the thread that found it
 *   pointer    the call's argument
 *   api        of this call, for a mismatch: malloc new new[]
 *   object size   the object concerned and its requested size
 *   damage damage_end   first damaged byte, and the byte after the last
 *   bytes      the bytes at damage, hexadecimal, at most 32 bytes
 *   allocated_by allocated_api allocated_at   thread id, interface, stack
 *   freed_by freed_at   of the object's earlier free
 *   stack      this call's
 *
 * A stack is a list of places, innermost first, separated by commas: the
 * object's path, `+0x`, and the distance from where the object is loaded to the
 * last byte of the call, so that addr2line tells the line of the call and not
 * that of what follows; or a bare return address.
 */
#include "agent.h"
#include "syscall.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define DG_LINE_BYTES 32
#define DG_LINE_FRAMES 16

static const char *const dg_when_names[] = {
	"unknown", "free", "realloc", "eviction", "check", "exit", "size",
};

static const char *const dg_api_names[] = { "malloc", "new", "new[]", "unknown" };

#define DG_WORD_OF(table, i) ((i) < sizeof(table) / sizeof((table)[0]) ? (table)[i] : "unknown")

/* Both under the lock; a handler that interrupts its own thread in here leaves
 * its evidence out rather than waiting for itself. */
static struct dg_text dg_error_text;

static void dg_put_hex_key(struct dg_text *t, const char *key, uint64_t value)
{
	if (!value)
		return;
	dg_put_key(t, key);
	dg_put_hex(t, value);
}

static void dg_put_decimal_key(struct dg_text *t, const char *key, uint64_t value)
{
	dg_put_key(t, key);
	dg_put_decimal(t, value);
}

static void dg_put_exe(struct dg_text *t)
{
	char path[512];
	long n = dg_sys3(SYS_readlink, "/proc/self/exe", path, sizeof(path));

	if (n > 0)
		dg_put_quoted(t, path, (size_t)n);
	else
		dg_put(t, "exe");
}

static void dg_put_place(struct dg_text *t, uint64_t pc)
{
	struct dl_find_object found;
	const struct link_map *map;

	if (!_dl_find_object || _dl_find_object((void *)(pc - 1), &found) || !found.dlfo_link_map) {
		dg_put_hex(t, pc);
		return;
	}
	map = found.dlfo_link_map;
	if (map->l_name[0])
		dg_put_quoted(t, map->l_name, SIZE_MAX);
	else
		dg_put_exe(t);
	dg_put_char(t, '+');
	dg_put_hex(t, pc - 1 - map->l_addr);
}

static void dg_put_stack(struct dg_text *t, const char *key, const uint64_t *pc, uint32_t frames)
{
	if (!frames)
		return;
	dg_put_key(t, key);
	for (uint32_t i = 0; i < frames && i < DG_LINE_FRAMES; i++) {
		if (i)
			dg_put_char(t, ',');
		dg_put_place(t, pc[i]);
	}
}

static void dg_put_site(struct dg_text *t, const char *key, uint32_t site)
{
	struct dg_site *s = dg_site_number(site);

	if (site && site < dg_root->sites.used)
		dg_put_stack(t, key, s->pc, s->frames);
}

static void dg_put_by(struct dg_text *t, const char *key, uint32_t thread)
{
	if (thread && thread < dg_root->threads.used)
		dg_put_decimal_key(t, key, dg_thread_number(thread)->tid);
}

static void dg_put_object(struct dg_text *t, const struct dg_error *e)
{
	uint64_t word = e->word;

	dg_put_hex_key(t, "object", e->object);
	dg_put_decimal_key(t, "size", e->size);
	if (e->damage) {
		dg_put_hex_key(t, "damage", e->damage);
		dg_put_hex_key(t, "damage_end", e->damage_end);
		dg_put_key(t, "bytes");
		for (uint32_t i = 0; i < e->bytes_length && i < DG_LINE_BYTES; i++) {
			dg_put_char(t, "0123456789abcdef"[e->bytes[i] >> 4]);
			dg_put_char(t, "0123456789abcdef"[e->bytes[i] & 15]);
		}
	}
	dg_put_by(t, "allocated_by", word >> DG_WORD_THREAD & DG_THREAD_MASK);
	dg_put_key(t, "allocated_api");
	dg_put(t, DG_WORD_OF(dg_api_names, word >> DG_WORD_API & 3));
	dg_put_site(t, "allocated_at", word >> DG_WORD_SITE & DG_SITE_MASK);
	dg_put_by(t, "freed_by", e->free_thread);
	dg_put_site(t, "freed_at", e->free_site);
}

static void dg_put_error(struct dg_text *t, const struct dg_error *e)
{
	t->used = 0;
	dg_put(t, "diagnose:");
	dg_put_key(t, "error");
	dg_put(t, DG_WORD_OF(dg_error_names, e->kind));
	dg_put_key(t, "when");
	dg_put(t, DG_WORD_OF(dg_when_names, e->when));
	dg_put_decimal_key(t, "pid", dg_root->pid);
	dg_put_decimal_key(t, "tid", e->tid);
	dg_put_hex_key(t, "pointer", e->pointer);
	if (e->kind == DG_ERROR_MISMATCH) {
		dg_put_key(t, "api");
		dg_put(t, DG_WORD_OF(dg_api_names, e->api));
	}
	if (e->word_valid)
		dg_put_object(t, e);
	dg_put_stack(t, "stack", e->pc, e->frames);
}

/* Nothing leaves a replay. */
static bool dg_may_tell(void)
{
#ifdef DG_RECORD
	return dg_mode != DG_MODE_REPLAY;
#else
	return true;
#endif
}

/* Opened for each line: a descriptor kept open might be closed, or become
 * another file's, in a program that closes all it does not know. A replay goes
 * the same way, with no path and an empty line, and the descriptor is in no
 * register of the caller's, so that registers and stack after it are the same. */
static __attribute__((noinline)) void dg_log_line(struct dg_text *t)
{
	bool tell = dg_may_tell();
	long fd = 2;

	if (dg_log_path[0])
		fd = dg_sys4(SYS_openat, AT_FDCWD, tell ? dg_log_path : "",
			     O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
	if (fd < 0)
		fd = 2;
	dg_put_line(t, (int)fd, tell);
	if (fd != 2)
		dg_sys1(SYS_close, fd);
}

/* A mismatch that the process survives may come at every free: it must not use
 * up the room for what ends it. */
#define DG_MISMATCHES 16

/* Whether the same call has freed an object of the same allocation so before, or
 * enough others have. */
static bool dg_met(const struct dg_error *e, uint32_t n)
{
	const struct dg_error *known = (const struct dg_error *)dg_root->errors;
	uint32_t met = 0;

	for (uint32_t i = 0; i < n && i < DG_ERRORS; i++, known++) {
		if (known->kind != DG_ERROR_MISMATCH)
			continue;
		if (++met == DG_MISMATCHES || (known->pc[0] == e->pc[0] && !((known->word ^ e->word) >> DG_WORD_SITE & DG_SITE_MASK)))
			return true;
	}
	return false;
}

static void dg_record(const struct dg_error *e)
{
	uint32_t n = dg_root->error_count;

	if (e->kind == DG_ERROR_MISMATCH) {
		dg_root->mismatches++;
		if (!e->fatal && dg_met(e, n))
			return;
	}
	if (n < DG_ERRORS || e->fatal) {
		memcpy((struct dg_error *)dg_root->errors + (n < DG_ERRORS ? n : DG_ERRORS - 1), e, sizeof(*e));
		DG_ORDER();
	}
	if (n != UINT32_MAX)
		dg_root->error_count = n + 1;
}

/* The call that found it is not continued: the program's handler of SIGABRT
 * may allocate, and may jump out. A call that interrupted another has heap 0;
 * the other's heap is not touched. */
static void dg_abandon_call(void)
{
	if (dg_held >> DG_LEVEL_SHARED & 1)
		dg_let_go(DG_LEVEL_SHARED);
	else if (dg_self)
		dg_self->busy = 0;
	if (dg_held >> DG_LEVEL_CHECK & 1)
		dg_let_go(DG_LEVEL_CHECK);
}

static DG_COLD void dg_failed(const struct dg_heap *h, uint64_t size, const uint64_t *slot)
{
	if (!dg_root || !dg_hold(DG_LEVEL_ERROR))
		return;
	dg_root->failed_size = size;
	dg_root->failed_after = h ? h->allocations : 0;
	dg_root->failed_site = dg_site_met(slot);
	dg_root->failed_thread = dg_number;
	dg_root->failures++;
	dg_let_go(DG_LEVEL_ERROR);
}

static DG_COLD void dg_error(struct dg_error *e, const uint64_t *slot)
{
	uint32_t on_error = DG_ON_KIND(&dg_root->options, e->kind);

	e->tid = dg_tid();
	e->thread = dg_number;
	e->fatal = on_error == DG_ABORT;
	if (slot)
		e->frames = dg_stack_at(slot, e->pc, DG_ERROR_FRAMES);
	if (e->damage) {
		uint64_t length = e->damage_end - e->damage;

		e->bytes_length = length < DG_ERROR_BYTES ? (uint32_t)length : DG_ERROR_BYTES;
		memcpy(e->bytes, (const void *)e->damage, e->bytes_length);
	}
	if (dg_hold(DG_LEVEL_ERROR)) {
		dg_record(e);
		if (on_error != DG_CONTINUE) {
			dg_put_error(&dg_error_text, e);
			dg_log_line(&dg_error_text);
		}
		dg_let_go(DG_LEVEL_ERROR);
	}
	if (on_error == DG_ABORT)
		__atomic_store_n(&dg_ended, true, __ATOMIC_RELAXED);
	/* As glibc does it for what it finds: the program's own handler runs, and
	 * if it returns the process dies with a core. */
	if (on_error == DG_ABORT) {
		dg_abandon_call();
		abort();
	}
}
