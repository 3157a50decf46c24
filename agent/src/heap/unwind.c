/* Return addresses of the calling thread's stack, by call frame information
 * (cfi.c). libgcc's unwinder takes locks and a microsecond; here the rule of a
 * pc is worked out once and kept in a small table, so that a frame costs a few
 * nanoseconds, and nothing allocates or locks.
 *
 * Code that is not understood ends the walk. A short stack is an honest answer, a
 * wrong one is not.
 */
#include "agent.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

/* From glibc 2.35 on: lock-free, usable in signal handlers. */
extern __typeof__(_dl_find_object) _dl_find_object __attribute__((weak));

/* rbp is only good while it is known; a frame that needs it otherwise ends
 * the walk. */
struct dg_stack_frame {
	uint64_t pc, sp, bp;
	uint64_t slot; /* where pc is on the stack */
	bool bp_known, exact; /* exact: pc itself was interrupted, it follows no call */
};

/* Where _dl_find_object is missing: the objects that were there at the start. */
#define DG_OBJECTS_KEPT 64
static struct dg_known_object {
	uint64_t start, end;
	const uint8_t *header;
} dg_known[DG_OBJECTS_KEPT];
static uint32_t dg_known_count;

static int dg_keep_object(struct dl_phdr_info *info, size_t size, void *unused)
{
	struct dg_known_object o = { .start = UINT64_MAX };

	(void)size;
	(void)unused;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *ph = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_GNU_EH_FRAME)
			o.header = (const uint8_t *)start;
		if (ph->p_type != PT_LOAD)
			continue;
		if (start < o.start)
			o.start = start;
		if (start + ph->p_memsz > o.end)
			o.end = start + ph->p_memsz;
	}
	if (o.header && dg_known_count < DG_OBJECTS_KEPT)
		dg_known[dg_known_count++] = o;
	return 0;
}

/* In the constructor: dl_iterate_phdr takes ld.so's lock, which an allocation
 * must not. */
static void dg_find_libc(void);

static void dg_unwind_start(void)
{
	dg_find_libc();
	if (!_dl_find_object)
		dl_iterate_phdr(dg_keep_object, NULL);
}

/* Header of the object that pc is in; *mapped tells whether one does. */
static const uint8_t *dg_header_of(uint64_t pc, bool *mapped)
{
	struct dl_find_object found;

	*mapped = false;
	if (_dl_find_object) {
		if (_dl_find_object((void *)pc, &found))
			return NULL;
		*mapped = true;
		return found.dlfo_eh_frame;
	}
	for (uint32_t i = 0; i < dg_known_count; i++)
		if (pc >= dg_known[i].start && pc < dg_known[i].end) {
			*mapped = true;
			return dg_known[i].header;
		}
	return NULL;
}

/* The FDE of the function that pc is in, or of the last one before it; NULL
 * if that is not known. */
static const uint8_t *dg_function_at(uint64_t pc)
{
	bool mapped;
	const uint8_t *header = dg_header_of(pc, &mapped);

	return header ? dg_search(header, pc) : NULL;
}

static DG_COLD struct dg_rule dg_find_rule(uint64_t pc)
{
	const uint8_t *fde = dg_function_at(pc);

	return fde ? dg_rule_by_fde(fde, pc) : (struct dg_rule){ .cfa = DG_CFA_UNKNOWN };
}

static struct dg_rule dg_rule_at(uint64_t pc)
{
	struct dg_rule_entry *e = &dg_paths->rules[(pc * 0x9e3779b97f4a7c15ull >> 40) & dg_paths->rules_mask];
	uint64_t bits = __atomic_load_n(&e->rule, __ATOMIC_RELAXED);
	struct dg_rule rule;

	if (DG_LIKELY((__atomic_load_n(&e->key, __ATOMIC_RELAXED) ^ bits) == pc)) {
		__builtin_memcpy(&rule, &bits, sizeof(rule));
		return rule;
	}
	if (bits)
		dg_more_rules();
	rule = dg_find_rule(pc);
	__builtin_memcpy(&bits, &rule, sizeof(bits));
	__atomic_store_n(&e->rule, bits, __ATOMIC_RELAXED);
	__atomic_store_n(&e->key, pc ^ bits, __ATOMIC_RELAXED);
	return rule;
}

/* An object that goes away takes its rules along. */
static uint32_t dg_rules_age;

static void dg_renew_rules(void)
{
	struct dg_path_table *p = dg_paths;
	uint32_t age = __atomic_load_n(&dg_rules_age, __ATOMIC_ACQUIRE);

	if (DG_LIKELY(__atomic_exchange_n(&p->rules_age, age, __ATOMIC_RELAXED) == age))
		return;
	for (uint32_t i = 0; i < DG_RULES; i++)
		__atomic_store_n(&p->rules[i].key, 0, __ATOMIC_RELAXED);
}

static void dg_forget_rules(void)
{
	__atomic_fetch_add(&dg_rules_age, 1, __ATOMIC_RELEASE);
	dg_renew_rules();
}

#ifndef DG_RECORD /* wrap/load.c */
/* The next object at the same place has other rules. */
DG_EXPORT int dlclose(void *handle)
{
	static int (*next)(void *);
	int result;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "dlclose");
	result = next(handle);
	dg_forget_rules();
	return result;
}
#endif

static bool dg_on_stack(uint64_t address, uint64_t from, uint64_t bytes)
{
	return address >= from && !(address & 7) && address + bytes <= dg_stack.high &&
	       address + bytes > address;
}

static uint64_t dg_word_at(uint64_t address)
{
	return *(const uint64_t *)address;
}

/* Offsets of the interrupted registers after the kernel's signal frame's
 * return address (struct ucontext of the x86-64 kernel). */
enum { DG_UC_RBP = 40 + 10 * 8, DG_UC_RSP = 40 + 15 * 8, DG_UC_RIP = 40 + 16 * 8 };

static bool dg_step_signal(struct dg_stack_frame *f)
{
	uint64_t context = f->sp;

	if (!dg_on_stack(context, f->slot, DG_UC_RIP + 8))
		return false;
	f->pc = dg_word_at(context + DG_UC_RIP);
	f->bp = dg_word_at(context + DG_UC_RBP);
	f->sp = dg_word_at(context + DG_UC_RSP);
	f->slot = context + DG_UC_RIP;
	f->bp_known = f->exact = true;
	/* Interrupted on another stack, which is not known to be readable. */
	return f->sp > f->slot && f->sp < dg_stack.high;
}

/* Code without call frame information, such as a JIT's, if it keeps frame
 * pointers: believed only where the next frame's pointer or return address
 * bears it out. */
static bool dg_step_frame_pointer(struct dg_stack_frame *f)
{
	uint64_t bp = f->bp, next, pc;
	bool mapped;

	if (!f->bp_known || !dg_on_stack(bp, f->sp, 16))
		return false;
	next = dg_word_at(bp);
	pc = dg_word_at(bp + 8);
	dg_header_of(pc - 1, &mapped);
	if (!mapped && !(dg_on_stack(next, bp + 16, 16) && pc >= 4096))
		return false;
	f->pc = pc;
	f->slot = bp + 8;
	f->sp = bp + 16;
	f->bp = next;
	f->exact = false;
	return true;
}

static bool dg_cfa_of(const struct dg_stack_frame *f, struct dg_rule rule, uint64_t *cfa)
{
	uint64_t offset = (uint64_t)(int64_t)rule.cfa_offset;

	switch (rule.cfa) {
	case DG_CFA_RSP:
		*cfa = f->sp + offset;
		return true;
	case DG_CFA_RBP:
		*cfa = f->bp + offset;
		return f->bp_known;
	case DG_CFA_RBP_REF:
		if (!f->bp_known || !dg_on_stack(f->bp + offset, f->sp, 8))
			return false;
		*cfa = dg_word_at(f->bp + offset);
		return true;
	}
	return false;
}

static DG_COLD bool dg_no_object(uint64_t pc)
{
	bool mapped;

	dg_header_of(pc, &mapped);
	return !mapped;
}

/* From a frame to its caller's; false at the end of what can be known. */
static bool dg_step(struct dg_stack_frame *f)
{
	struct dg_rule rule = dg_rule_at(f->exact ? f->pc : f->pc - 1);
	uint64_t cfa, saved;

	if (rule.cfa == DG_CFA_SIGNAL)
		return dg_step_signal(f);
	if (rule.cfa == DG_CFA_UNKNOWN)
		return dg_no_object(f->pc) && dg_step_frame_pointer(f);
	if (!dg_cfa_of(f, rule, &cfa) || !dg_on_stack(cfa - 8, f->sp, 8))
		return false;
	if (rule.rbp == DG_RBP_LOST)
		f->bp_known = false;
	if (rule.rbp == DG_RBP_AT_CFA || rule.rbp == DG_RBP_AT_RBP) {
		saved = (rule.rbp == DG_RBP_AT_CFA ? cfa : f->bp) + (uint64_t)(int64_t)rule.rbp_offset;
		f->bp_known = (rule.rbp == DG_RBP_AT_CFA || f->bp_known) && dg_on_stack(saved, f->sp, 8);
		if (f->bp_known)
			f->bp = dg_word_at(saved);
	}
	f->slot = cfa - 8;
	f->pc = dg_word_at(f->slot);
	f->sp = cfa;
	f->exact = false;
	return f->pc != 0;
}

/* The C library, of whose functions one calls main and one a thread's function. */
static uint64_t dg_libc_start, dg_libc_end;

static bool dg_in_libc(uint64_t pc)
{
	return pc - dg_libc_start < dg_libc_end - dg_libc_start;
}

static void dg_find_libc(void)
{
	struct dl_find_object found;

	if (!_dl_find_object || _dl_find_object((void *)getpid, &found))
		return;
	dg_libc_start = (uint64_t)found.dlfo_map_start;
	dg_libc_end = (uint64_t)found.dlfo_map_end;
}

/* Whether nothing but the start of the program or of the thread is left: up to
 * two functions of libc, and the outermost frame. */
static bool dg_is_start(struct dg_stack_frame f)
{
	for (unsigned i = 0; i < 3 && dg_in_libc(f.pc); i++)
		if (!dg_step(&f))
			break;
	return dg_rule_at(f.exact ? f.pc : f.pc - 1).cfa == DG_CFA_END;
}
