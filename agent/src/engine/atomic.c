/* The order of atomic instructions of the program: docs/atomics.md.
 *
 * A jump takes the place of an atomic instruction, to a stub that executes it. In a recording the stub
 * locks the word of the operand's line, which says the thread that used the line last. If that is
 * another one, the engine is entered and writes an event, of the class DG_POINT_ATOMIC: from there on the line
 * is this thread's. Operation, word and event are one step under the lock. A replay needs no words: its stubs count, as points of the
 * code do, and the thread waits for its event where the recording has one. Both modes execute the same
 * stubs, at the same addresses.
 *
 * Why that is enough: an access of a thread that has no event of its own is one to a line that is the thread's. Until
 * another thread takes the line over, all of them come; after that, the thread needs an event. So the code between two events
 * accesses its lines before every later event of theirs, which is the order of a replay that is not lazy.
 *
 * A stub uses no memory of the program, and gives it all registers and flags as they were. The tracer sees to it that no signal
 * comes while a thread is in one. */
#include "engine/engine.h"
#include "hunt/hunt.h"
#include "syscall.h"

#include <sys/mman.h>

#define DG_ATOMICS ((struct dg_atomics *)DG_ENGINE_ATOMICS)
#define DG_ATOMIC_NUMBER UINT64_MAX /* of a struct dg_point_stub */
#define DG_LINE_LOCKED 1u           /* the other bits are the index of the thread, from bit 8 on */
#define DG_LINE_SPINS 200u          /* before the processor is given to another thread */

/* What a stub keeps. `line` is the address of the line's word, + 1 where it is locked and another's. */
__thread struct dg_atomic_own {
	uint64_t rax, flags, address, line;
	uint64_t idle; /* a word of no line, for threads that the engine does not know */
} dg_atomic_own DG_HIDDEN __attribute__((tls_model("initial-exec")));

/* In a replay every line is everybody's. */
static uint32_t dg_atomic_line(uint32_t index)
{
	return (DG_CONTROL->mode == DG_MODE_REPLAY ? 0 : index << 8) | DG_LINE_LOCKED;
}

/* Of the other threads, one may have been in a stub. */
static void dg_atomic_forked(void)
{
	if (DG_CONTROL->atomics)
		dg_sys3(SYS_madvise, DG_ENGINE_ATOMICS + DG_ATOMIC_LINES_AT, DG_ATOMIC_LINES * sizeof(uint32_t), MADV_DONTNEED);
}

/* ---- stubs ---- */

/* Instructions with an address relative to %fs, without it. */
static const uint8_t dg_rcx_to_own[] = { 0x64, 0x48, 0x89, 0x0c, 0x25 }, dg_own_to_rcx[] = { 0x64, 0x48, 0x8b, 0x0c, 0x25 },
		     dg_rax_to_own[] = { 0x64, 0x48, 0x89, 0x04, 0x25 }, dg_own_to_rax[] = { 0x64, 0x48, 0x8b, 0x04, 0x25 };

static void dg_emit_own(struct dg_area *a, const uint8_t code[5], const void *variable)
{
	dg_emit_word(a, code, 5, dg_thread_offset(variable));
}

static void dg_emit_flags(struct dg_area *a)
{
	static const uint8_t restore[] = { 0x04, 0x7f, 0x9e }; /* add $0x7f, %al; sahf */

	dg_emit_own(a, dg_own_to_rax, &dg_atomic_own.flags);
	dg_emit(a, restore, sizeof(restore));
}

/* A conditional jump whose target comes later; returns where its displacement is. */
static uint64_t dg_emit_short(struct dg_area *a, uint8_t opcode)
{
	uint8_t code[] = { opcode, 0 };

	dg_emit(a, code, sizeof(code));
	return a->at - 1;
}

static void dg_emit_here(const struct dg_area *a, uint64_t displacement)
{
	*(uint8_t *)displacement = (uint8_t)(a->at - displacement - 1);
}

/* rcx: the operand's address. Afterwards it is that of the line's word, and rax is the thread. */
static void dg_emit_line(struct dg_area *a)
{
	static const uint8_t keep_flags[] = { 0x9f, 0x0f, 0x90, 0xc0 }, /* lahf; seto %al */
		hash[] = { 0x48, 0xc1, 0xe9, 0x06, 0x69, 0xc9, 0xb1, 0x79, 0x37, 0x9e, 0xc1, 0xe9, 0x0e, 0x48, 0xb8 },
		/* shr $6, %rcx; imul $0x9e3779b1, %ecx, %ecx; shr $14, %ecx; movabs $lines, %rax */
		word[] = { 0x48, 0x8d, 0x0c, 0x88 }; /* lea (%rax,%rcx,4), %rcx */
	const uint64_t lines = DG_ENGINE_ATOMICS + DG_ATOMIC_LINES_AT;

	dg_emit_own(a, dg_rcx_to_own, &dg_atomic_own.address);
	dg_emit_own(a, dg_rax_to_own, &dg_atomic_own.rax);
	dg_emit(a, keep_flags, sizeof(keep_flags));
	dg_emit_own(a, dg_rax_to_own, &dg_atomic_own.flags);
	dg_emit(a, hash, sizeof(hash));
	dg_emit(a, &lines, sizeof(lines));
	dg_emit(a, word, sizeof(word));
	dg_emit_own(a, dg_rcx_to_own, &dg_atomic_own.line);
	dg_emit_own(a, dg_own_to_rax, &dg_me);
}

/* To the engine, at a point. */
static void dg_emit_entry(struct dg_area *a, const struct dg_point_stub *info)
{
	static const uint8_t rax_to_slot[] = { 0x48, 0x89, 0x81 }, lea_rcx[] = { 0x48, 0x8d, 0x0d }, jump_to[] = { 0xff, 0x25 };

	dg_emit_flags(a);
	dg_emit_own(a, dg_own_to_rcx, &dg_me);
	dg_emit_own(a, dg_own_to_rax, &dg_atomic_own.rax);
	dg_emit_word(a, rax_to_slot, sizeof(rax_to_slot), offsetof(struct dg_rthread, stub));
	dg_emit_relative(a, lea_rcx, sizeof(lea_rcx), (uint64_t)info);
	dg_emit_relative(a, jump_to, sizeof(jump_to), a->slot + 16);
}

/* Without the engine: no line is locked. */
static void dg_emit_pass(struct dg_area *a)
{
	static const uint8_t unlock[] = { 0xf6, 0xc1, 0x01, 0x74, 0x04, 0xc6, 0x41, 0xff, 0x00 }, /* test $1, %cl; je .+6; movb $0, -1(%rcx) */
		thread_pointer[] = { 0x64, 0x48, 0x8b, 0x0c, 0x25, 0, 0, 0, 0 }, lea_rcx[] = { 0x48, 0x8d, 0x89 };

	dg_emit_own(a, dg_own_to_rcx, &dg_atomic_own.line);
	dg_emit(a, unlock, sizeof(unlock));
	dg_emit(a, thread_pointer, sizeof(thread_pointer));
	dg_emit_word(a, lea_rcx, sizeof(lea_rcx), dg_thread_offset(&dg_atomic_own.idle));
	dg_emit_own(a, dg_rcx_to_own, &dg_atomic_own.line);
	dg_emit_flags(a);
	dg_emit_own(a, dg_own_to_rax, &dg_atomic_own.rax);
	dg_emit_own(a, dg_own_to_rcx, &dg_point_saved);
}

/* From the operand's address to right before the instruction, with its line locked. */
static void dg_emit_take(struct dg_area *a, struct dg_point_stub *info)
{
	static const uint8_t known[] = { 0x48, 0x85, 0xc0 }, count[] = { 0x48, 0x83, 0xa8 }, one = 1,
			     lock[] = { 0xf0, 0x0f, 0xba, 0x29, 0x00 }, /* lock btsl $0, (%rcx) */
		own[] = { 0x8b, 0x80 }, same[] = { 0x3b, 0x01 }, mark[] = { 0x64, 0x48, 0x83, 0x0c, 0x25 };
	uint64_t unknown, counted, taken, foreign, done;

	dg_emit_line(a);
	dg_emit(a, known, sizeof(known)); /* test %rax, %rax */
	unknown = dg_emit_short(a, 0x74);
	dg_emit_word(a, count, sizeof(count), offsetof(struct dg_rthread, points)); /* subq $1, points(%rax) */
	dg_emit(a, &one, sizeof(one));
	counted = dg_emit_short(a, 0x74);
	dg_emit(a, lock, sizeof(lock));
	taken = dg_emit_short(a, 0x72);
	dg_emit_word(a, own, sizeof(own), offsetof(struct dg_rthread, line)); /* mov line(%rax), %eax */
	dg_emit(a, same, sizeof(same));                                        /* cmp (%rcx), %eax */
	foreign = dg_emit_short(a, 0x75);
	dg_emit_flags(a);
	dg_emit_own(a, dg_own_to_rax, &dg_atomic_own.rax);
	dg_emit_own(a, dg_own_to_rcx, &dg_point_saved);
	dg_emit(a, "\xe9\0\0\0\0", 5);
	done = a->at;
	dg_emit_here(a, foreign);
	dg_emit_word(a, mark, sizeof(mark), dg_thread_offset(&dg_atomic_own.line)); /* orq $1, line */
	dg_emit(a, &one, sizeof(one));
	dg_emit_here(a, counted);
	dg_emit_here(a, taken);
	dg_emit_entry(a, info);
	dg_emit_here(a, unknown);
	info->pass = a->at;
	dg_emit_pass(a);
	*(uint32_t __attribute__((may_alias)) *)(done - 4) = (uint32_t)(a->at - done);
	info->go = a->at;
}

static void dg_emit_release(struct dg_area *a)
{
	static const uint8_t unlock[] = { 0xc6, 0x01, 0x00 }; /* movb $0, (%rcx) */

	dg_emit_own(a, dg_rcx_to_own, &dg_point_saved);
	dg_emit_own(a, dg_own_to_rcx, &dg_atomic_own.line);
	dg_emit(a, unlock, sizeof(unlock));
	dg_emit_own(a, dg_own_to_rcx, &dg_point_saved);
}

/* Appends a piece; false: its link is out of reach. */
static bool dg_emit_piece(struct dg_area *a, const struct dg_site_code *c)
{
	uint64_t end = a->at + c->count;
	int64_t distance = (int64_t)(c->target - (end + c->more));
	int32_t displacement = (int32_t)distance;

	dg_emit(a, c->bytes, c->count);
	if (!c->link)
		return true;
	dg_copy((void *)(end - sizeof(displacement)), &displacement, sizeof(displacement));
	return displacement == distance;
}

/* For who asks which instruction is executed there, and where one is executed that is not in the text any more. */
static void dg_atomic_note(uint64_t insn, uint64_t at)
{
	struct dg_atomics *all = DG_ATOMICS;

	if (all->sites < DG_ATOMIC_SITES)
		all->site[all->sites++] = (struct dg_atomic_site){ insn, at };
}

static bool dg_atomic_sound(const struct dg_site_patch *p, uint32_t left)
{
	if (p->kind != DG_PATCH_ATOMIC || !p->before || p->before >= left)
		return false;
	for (uint32_t i = 1; i <= p->before; i++) {
		const struct dg_site_code *c = (const struct dg_site_code *)(p + i);

		if (c->kind <= DG_PATCH_ATOMIC || c->kind > DG_PATCH_OPERATION || c->count > sizeof(c->bytes) || (c->link && c->count < 4))
			return false;
	}
	return true;
}

/* The stub of a window; 0: it cannot be made. */
static uint64_t dg_atomic_stub(struct dg_area *a, const struct dg_site_patch *p)
{
	const struct dg_site_code *code = (const struct dg_site_code *)(p + 1);
	uint32_t last = DG_PATCH_CODE, operations = 0;
	struct dg_point_stub *infos = (struct dg_point_stub *)((a->at + 7) & ~7ull), *info = infos;
	uint64_t start;

	for (uint32_t i = 0; i < p->before; i++)
		operations += code[i].kind == DG_PATCH_ADDRESS && (!i || code[i - 1].kind != DG_PATCH_ADDRESS);
	start = a->at = (uint64_t)(infos + operations);
	for (uint32_t i = 0; i < p->before; i++) {
		const struct dg_site_code *c = code + i;

		if (last == DG_PATCH_OPERATION && c->kind != last)
			dg_emit_release(a);
		if (!i || c->at != c[-1].at)
			dg_atomic_note(a->at, c->at);
		if (c->kind == DG_PATCH_ADDRESS && c->kind != last)
			dg_emit_own(a, dg_rcx_to_own, &dg_point_saved);
		if (c->kind == DG_PATCH_OPERATION && c->kind != last) {
			if (last != DG_PATCH_ADDRESS)
				return 0;
			*info = (struct dg_point_stub){ .at = c->at, .number = DG_ATOMIC_NUMBER };
			dg_emit_take(a, info++);
			dg_atomic_note(a->at, c->at);
		}
		if (!dg_emit_piece(a, c))
			return 0;
		last = c->kind;
	}
	if (last == DG_PATCH_OPERATION)
		dg_emit_release(a);
	dg_emit_jump(a, p->resume);
	return start;
}

static bool dg_atomic_start(void)
{
	if (!DG_CONTROL->atomics && dg_map_private(DG_ENGINE_ATOMICS, DG_ATOMIC_LINES_AT + DG_ATOMIC_LINES * sizeof(uint32_t)))
		DG_CONTROL->atomics = DG_ENGINE_ATOMICS;
	return DG_CONTROL->atomics && DG_ATOMICS->areas < DG_ATOMIC_AREAS;
}

static void dg_atomic_patches(struct dg_area *a, const struct dg_site_patch *p, uint32_t count)
{
	if (!dg_atomic_start())
		return;
	DG_ATOMICS->area_low[DG_ATOMICS->areas] = a->start;
	DG_ATOMICS->area_high[DG_ATOMICS->areas++] = a->end;
	for (uint32_t i = 0; i < count; i += p[i].kind == DG_PATCH_ATOMIC ? 1 + p[i].before : 1) {
		uint64_t stub;

		if (!dg_atomic_sound(p + i, count - i) || a->at + (1ull + p[i].before) * DG_ATOMIC_STUB_MOST > a->end)
			continue;
		stub = dg_atomic_stub(a, p + i);
		if (stub)
			dg_patch_window(p + i, stub);
	}
}

/* ---- in the engine ---- */

/* The point of an atomic instruction that the frame is at; NULL: none. */
static const struct dg_point_stub *dg_atomic_of(const struct dg_frame *f)
{
	const struct dg_point_stub *info = f->kind == DG_ENTRY_POINT && f->again_rax ? (const struct dg_point_stub *)f->again_rax : NULL;

	return DG_CONTROL->atomics && info && info->number == DG_ATOMIC_NUMBER ? info : NULL;
}

/* Its holder executes one instruction. */
static void dg_line_lock(uint32_t *word)
{
	uint32_t looks = 0;

	while (__atomic_fetch_or(word, DG_LINE_LOCKED, __ATOMIC_ACQUIRE) & DG_LINE_LOCKED)
		while (__atomic_load_n(word, __ATOMIC_RELAXED) & DG_LINE_LOCKED)
			if (++looks % DG_LINE_SPINS)
				__builtin_ia32_pause();
			else
				dg_sys0(SYS_sched_yield);
}

static void dg_atomic_log(struct dg_rthread *me, uint64_t address, uint64_t at)
{
	struct dg_event *e = dg_event_begin(DG_EV_POINT, address, at, 1, 0);

	if (!e)
		return;
	dg_event_args(e)[0] = DG_POINT_ATOMIC;
	e->result = (int64_t)(me->points_start - me->points);
	dg_event_commit(e);
}

static void dg_atomic_entered(struct dg_frame *f)
{
	struct dg_rthread *me = dg_me;
	struct dg_atomic_own *own = &dg_atomic_own;
	bool locked = own->line & 1;
	uint32_t *word = (uint32_t *)(own->line &= ~1ull);
	const struct dg_event *e;

	if (dg_mode == DG_MODE_REPLAY) {
		e = dg_free() ? NULL : dg_point_next(DG_POINT_ATOMIC);
		if (e && (e->object != own->address || e->site != f->origin))
			dg_diverge(e->object != own->address ? DG_DIFFERS_OBJECT : DG_DIFFERS_SITE, e, 0, e->object, own->address);
		if (e)
			dg_point_take(me, e);
		else
			dg_point_reached();
		*word = DG_LINE_LOCKED;
		return;
	}
	dg_thread_start();
	if (!locked)
		dg_line_lock(word);
	if ((*word | DG_LINE_LOCKED) == me->line)
		return;
	if (*word & ~DG_LINE_LOCKED)
		dg_atomic_log(me, own->address, f->origin);
	*word = me->line;
}

static void dg_atomic_failed(const struct dg_rthread *me)
{
	uint64_t word = dg_atomic_own.line & ~1ull;

	if (DG_CONTROL->atomics && word && *(uint32_t *)word == me->line)
		__atomic_store_n((uint8_t *)word, 0, __ATOMIC_RELEASE);
}

/* The first byte of a window has its jump; no thread can continue at another. */
static uint64_t dg_atomic_way(uint64_t pc)
{
	const struct dg_atomics *all = DG_ATOMICS;

	if (!DG_CONTROL->atomics || !dg_readable(pc, 1) || *(const uint8_t *)pc != 0xcc)
		return pc;
	for (uint32_t i = 0; i < all->sites; i++)
		if (all->site[i].at == pc)
			return all->site[i].insn;
	return pc;
}
