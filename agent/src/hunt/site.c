/* Points at instructions of the program's: a jump takes the place of an
 * instruction that accesses memory which threads share, to a stub that reaches a
 * point, executes the instruction, and jumps back. The tracer says which
 * instructions; all have at least the five bytes of the jump, so none is moved but
 * the one that is meant.
 *
 * The program must not see a difference: a stub keeps flags and registers, and of
 * the program's memory touches none. A replay has no stubs. There a point is found
 * by its pc, at the n-th time that the thread reaches it since its last event, so
 * the engine counts arrivals by their pc: stubs leave their numbers in a trail of
 * all, by the rest of the thread's points, and the thread counts them when it
 * enters the engine. Between two events of a thread no other one runs, unless
 * from a point on, which is an event.
 *
 * The tracer sees to it that no signal comes while a thread is in a stub, that a fault
 * of the instruction is one at its own address, and that cores have neither jumps
 * nor stubs. */
#include "engine/engine.h"
#include "hunt/hunt.h"
#include "syscall.h"

#include <sys/mman.h>

static bool dg_turns_fine; /* where threads take turns: there are points */

#define DG_POINT_STUB_MOST 384u
#define DG_POINT_TRAIL 65536u
#define DG_POINT_GAP 0x10000ull /* around an area, that the kernel does not join it with another one */

/* The program's rcx while it is in a stub; 0 elsewhere. */
__thread uint64_t dg_point_saved DG_HIDDEN __attribute__((tls_model("initial-exec")));

/* What a stub's points are; the assembler knows the first three. */
struct dg_point_stub {
	uint64_t at;   /* the program's pc there */
	uint64_t go;   /* where the thread continues that was in the engine, */
	uint64_t pass; /* and one that is not to enter it */
	uint64_t number;
};

/* Arrivals at a point of a thread since its last event. */
struct dg_arrivals {
	uint32_t epoch, count;
};

#define DG_ARRIVALS_BYTES ((2ull * DG_HUNT_SITES + 2) * sizeof(struct dg_arrivals))
_Static_assert(DG_ARRIVALS_BYTES <= DG_ARRIVALS_ROOM, "arrivals");

static uint32_t dg_point_epoch[DG_RTHREADS]; /* 0: the thread has no memory for them yet */

static uint16_t *dg_point_trail(void)
{
	return (uint16_t *)(DG_ENGINE_HUNT + DG_HUNT_TRAIL_AT);
}

static struct dg_arrivals *dg_point_arrivals(uint32_t index)
{
	return (struct dg_arrivals *)dg_arrivals_room(index);
}

static void dg_point_forget(const struct dg_rthread *me)
{
	if (dg_point_epoch[me->index] && !++dg_point_epoch[me->index])
		dg_point_epoch[me->index] = 1; /* an entry that has it is 4 billion events old */
}

static bool dg_point_memory(const struct dg_rthread *me)
{
	if (dg_point_epoch[me->index])
		return true;
	if (!dg_map_private((uint64_t)dg_point_arrivals(me->index), DG_ARRIVALS_ROOM))
		return false;
	dg_point_epoch[me->index] = 1;
	return true;
}

/* Takes over the last `passed` arrivals from the trail; returns how many of them
 * were at instructions. Of a longer trail than there is nothing is known: a thread that
 * is alone has that, and is not preempted before its next event. */
static uint64_t dg_point_passed_by(const struct dg_rthread *me, uint64_t passed)
{
	struct dg_arrivals *arrivals = dg_point_arrivals(me->index);
	uint16_t *trail = dg_point_trail();
	uint32_t epoch;
	uint64_t found = 0;

	if (!DG_HUNT->sites_set || !passed || !dg_point_memory(me))
		return 0;
	if (passed > DG_POINT_TRAIL)
		passed = DG_POINT_TRAIL;
	epoch = dg_point_epoch[me->index];
	for (uint64_t i = 0; i < passed; i++) {
		uint16_t *number = trail + (me->points + i) % DG_POINT_TRAIL;
		struct dg_arrivals *a = arrivals + *number;

		if (!*number)
			continue;
		*a = (struct dg_arrivals){ .epoch = epoch, .count = a->epoch == epoch ? a->count + 1 : 1 };
		*number = 0;
		found++;
	}
	return found;
}

/* The thread continues at a pc, where its turn ended by the state there. It has passed the point that follows the last instruction, if there
 * is one, and a replay counts an arrival at the pc when it continues. */
static void dg_point_passed_again(const struct dg_rthread *me, uint64_t pc)
{
	const struct dg_point_site *p = (const struct dg_point_site *)(DG_ENGINE_HUNT + DG_HUNT_SITES_AT);

	for (uint32_t i = 0; DG_HUNT->sites_set && i < DG_HUNT->sites_done; i++)
		if (p[i].insn && p[i].behind && p[i].at + p[i].length == pc && dg_point_memory(me))
			dg_point_arrivals(me->index)[2 * i + 2] = (struct dg_arrivals){ .epoch = dg_point_epoch[me->index], .count = 1 };
}

static uint64_t dg_point_arrival(const struct dg_rthread *me, const struct dg_point_stub *stub)
{
	const struct dg_arrivals *a = dg_point_arrivals(me->index) + stub->number;

	return dg_point_epoch[me->index] && a->epoch == dg_point_epoch[me->index] ? a->count : 0;
}

static void dg_point_give_back(const struct dg_frame *f, struct dg_ucontext *uc)
{
	const struct dg_point_stub *stub = (const struct dg_point_stub *)f->again_rax;

	if (f->kind == DG_ENTRY_POINT && stub && f->rip == f->origin)
		uc->context.registers[DG_REG_RIP] = stub->go;
}

/* Whether a point's jump is at a pc of code that is executed, so that it is a point
 * already. */
static bool dg_point_jumps(uint64_t pc)
{
	uint8_t jump[DG_JUMP_BYTES];
	uint64_t to;
	int32_t distance;

	if (!DG_HUNT->sites_set || *(const uint8_t *)pc != 0xe9)
		return false;
	dg_copy(jump, (const void *)pc, sizeof(jump));
	dg_copy(&distance, jump + 1, sizeof(distance));
	to = pc + sizeof(jump) + (uint64_t)(int64_t)distance;
	for (uint32_t i = 0; i < DG_HUNT->areas; i++)
		if (to >= DG_HUNT->area_low[i] && to < DG_HUNT->area_high[i])
			return true;
	return false;
}

/* ---- stubs ---- */

static void dg_emit_word(struct dg_area *a, const void *opcode, uint64_t count, uint64_t word)
{
	uint32_t low = (uint32_t)word;

	dg_emit(a, opcode, count);
	dg_emit(a, &low, sizeof(low));
}

static uint32_t dg_thread_offset(const void *variable)
{
	uint64_t at = (uint64_t)variable;

	/* Else compilers load no more than half of the offset, which linkers cannot relax. */
	__asm__("" : "+r"(at));
	return (uint32_t)(at - (uint64_t)__builtin_thread_pointer());
}

/* The code of a point. Its struct precedes it. */
static void dg_emit_point(struct dg_area *a, struct dg_point_stub *info)
{
	static const uint8_t rcx_to_own[] = { 0x64, 0x48, 0x89, 0x0c, 0x25 }, own_to_rcx[] = { 0x64, 0x48, 0x8b, 0x0c, 0x25 },
			     rax_to_slot[] = { 0x48, 0x89, 0x81 }, slot_to_rax[] = { 0x48, 0x8b, 0x81 },
			     slot_to_rcx[] = { 0x48, 0x8b, 0x89 }, less_one[] = { 0x48, 0x8d, 0x40, 0xff, 0x48, 0x89, 0x81 },
			     low_of_rax[] = { 0x0f, 0xb7, 0xc0, 0x48, 0xb9 }, to_trail[] = { 0x66, 0xc7, 0x04, 0x41 },
			     clear_own[] = { 0x64, 0x48, 0xc7, 0x04, 0x25 }, lea_rcx[] = { 0x48, 0x8d, 0x0d },
			     jump_to[] = { 0xff, 0x25 }, jump_if_none[] = { 0xe3, 0 }, jump_over[] = { 0xeb, 13 };
	const uint32_t me = dg_thread_offset(&dg_me), saved = dg_thread_offset(&dg_point_saved), none = 0;
	const uint64_t points = offsetof(struct dg_rthread, points), slot = offsetof(struct dg_rthread, stub);
	const uint64_t trail = (uint64_t)dg_point_trail();
	const uint16_t number = (uint16_t)info->number;
	uint64_t nobody, enters;

	dg_emit_word(a, rcx_to_own, sizeof(rcx_to_own), saved);
	dg_emit_word(a, own_to_rcx, sizeof(own_to_rcx), me);
	nobody = a->at + 1;
	dg_emit(a, jump_if_none, sizeof(jump_if_none));
	dg_emit_word(a, rax_to_slot, sizeof(rax_to_slot), slot);
	dg_emit_word(a, slot_to_rax, sizeof(slot_to_rax), points);
	dg_emit_word(a, less_one, sizeof(less_one), points);
	dg_emit(a, low_of_rax, sizeof(low_of_rax)); /* movzwl %ax, %eax; movabs $trail, %rcx */
	dg_emit(a, &trail, sizeof(trail));
	dg_emit(a, to_trail, sizeof(to_trail)); /* movw $number, (%rcx,%rax,2) */
	dg_emit(a, &number, sizeof(number));
	dg_emit_word(a, own_to_rcx, sizeof(own_to_rcx), me);
	dg_emit_word(a, slot_to_rcx, sizeof(slot_to_rcx), points);
	enters = a->at + 1;
	dg_emit(a, jump_if_none, sizeof(jump_if_none));
	dg_emit(a, jump_over, sizeof(jump_over));
	*(uint8_t *)enters = (uint8_t)(a->at - enters - 1);
	dg_emit_relative(a, lea_rcx, sizeof(lea_rcx), (uint64_t)info);
	dg_emit_relative(a, jump_to, sizeof(jump_to), a->slot + 16);
	info->pass = a->at;
	dg_emit_word(a, own_to_rcx, sizeof(own_to_rcx), me);
	dg_emit_word(a, slot_to_rax, sizeof(slot_to_rax), slot);
	*(uint8_t *)nobody = (uint8_t)(a->at - nobody - 1);
	dg_emit_word(a, own_to_rcx, sizeof(own_to_rcx), saved);
	dg_emit_word(a, clear_own, sizeof(clear_own), saved);
	dg_emit(a, &none, sizeof(none));
	info->go = a->at;
}

/* The instruction, which means the same address from here; false: it is out of
 * reach. */
static bool dg_emit_insn(struct dg_area *a, struct dg_point_site *p)
{
	int32_t was, distance;
	int64_t moved;

	p->insn = a->at;
	dg_emit(a, p->bytes, p->length);
	if (!p->relative)
		return true;
	dg_copy(&was, p->bytes + p->relative, sizeof(was));
	moved = (int64_t)was + (int64_t)(p->at - p->insn);
	distance = (int32_t)moved;
	dg_copy((void *)(p->insn + p->relative), &distance, sizeof(distance));
	return distance == moved;
}

static struct dg_point_stub *dg_point_info(struct dg_area *a, uint64_t at, uint64_t number)
{
	struct dg_point_stub *info = (struct dg_point_stub *)((a->at + 7) & ~7ull);

	*info = (struct dg_point_stub){ .at = at, .number = number };
	a->at = (uint64_t)(info + 1);
	return info;
}

static bool dg_point_set(struct dg_area *a, struct dg_point_site *p, uint32_t index)
{
	const uint64_t resume = p->at + p->length;
	uint8_t bytes[sizeof(p->bytes)];
	struct dg_point_stub *before = dg_point_info(a, p->at, 2ull * index + 1), *behind = NULL;
	uint64_t start;
	int32_t distance;

	if (p->behind)
		behind = dg_point_info(a, resume, 2ull * index + 2);
	start = a->at;
	dg_emit_point(a, before);
	if (!dg_emit_insn(a, p))
		return false;
	if (behind)
		dg_emit_point(a, behind);
	dg_emit_jump(a, resume);
	distance = (int32_t)(start - (p->at + DG_JUMP_BYTES));
	for (uint32_t i = 0; i < p->length; i++)
		bytes[i] = 0xcc;
	bytes[0] = 0xe9;
	dg_copy(bytes + 1, &distance, sizeof(distance));
	return dg_text_write(p->at, bytes, p->length);
}

static void dg_point_cluster(uint32_t first, uint32_t count)
{
	struct dg_point_site *p = (struct dg_point_site *)(DG_ENGINE_HUNT + DG_HUNT_SITES_AT) + first;
	uint64_t size = (count * (uint64_t)DG_POINT_STUB_MOST + 2 * DG_POINT_GAP) & ~(DG_POINT_GAP - 1), start;
	struct dg_hunt *h = DG_HUNT;
	struct dg_area a;

	if (h->areas == DG_HUNT_AREAS)
		return;
	start = dg_area_search(p[0].at, p[count - 1].at, size + 2 * DG_POINT_GAP);
	if (!start)
		return;
	dg_sys3(SYS_mprotect, start, DG_POINT_GAP, PROT_NONE);
	dg_sys3(SYS_mprotect, start + DG_POINT_GAP + size, DG_POINT_GAP, PROT_NONE);
	h->area_low[h->areas] = start;
	h->area_high[h->areas++] = start + size + 2 * DG_POINT_GAP;
	a = (struct dg_area){ .start = start + DG_POINT_GAP, .end = start + DG_POINT_GAP + size, .slot = start + DG_POINT_GAP };
	((uint64_t *)a.slot)[2] = (uint64_t)dg_entry_point_stub;
	a.at = a.start + 64;
	dg_texts_open(p, sizeof(*p), count);
	for (uint32_t i = 0; i < count && a.at + DG_POINT_STUB_MOST <= a.end; i++) {
		if (dg_point_set(&a, p + i, first + i))
			h->sites_set++;
		else
			p[i].insn = 0;
	}
	dg_texts_close();
	dg_sys3(SYS_mprotect, a.start, size, PROT_READ | PROT_EXEC);
}

static void dg_point_sites(void)
{
	struct dg_hunt *h = DG_HUNT;
	uint32_t to;

	if (DG_CONTROL->mode != DG_MODE_RECORD || DG_CONTROL->hunt != DG_ENGINE_HUNT || (dg_by_turns && !dg_turns_fine))
		return;
	to = h->sites < DG_HUNT_SITES ? h->sites : DG_HUNT_SITES;
	dg_clusters((const void *)(DG_ENGINE_HUNT + DG_HUNT_SITES_AT), sizeof(struct dg_point_site), h->sites_done, to, dg_point_cluster, NULL);
	h->sites_done = to;
}

/* Takes the jumps away. A thread in a stub continues after its instruction. */
static void dg_point_restore(void)
{
	struct dg_point_site *p = (struct dg_point_site *)(DG_ENGINE_HUNT + DG_HUNT_SITES_AT);
	struct dg_hunt *h = DG_HUNT;

	dg_texts_open(p, sizeof(*p), h->sites_done);
	for (uint32_t i = 0; i < h->sites_done; i++)
		if (p[i].insn && dg_readable(p[i].at, p[i].length) && dg_point_jumps(p[i].at))
			dg_text_write(p[i].at, p[i].bytes, p[i].length);
	dg_texts_close();
	h->sites_set = 0;
}
