/* The remembered steps up the stacks, so that a stack met before costs a
 * few loads: steps, sites and rules (site.c, unwind.c). An entry is one word, or
 * two that check each other, so that none needs a lock and none can be torn.
 *
 * One for all threads; in a recording one for each. Whether a stack is met for the
 * first time decides what code runs, what that leaves in registers and on the
 * stack, and in which order sites get their numbers. Of one thread that follows
 * from what it did before, of several it would follow from their timing, which a
 * replay does not bring back.
 */
#include "agent.h"
#include "syscall.h"

#include <sys/mman.h>

#define DG_RECENT_BITS_FIRST 9
#define DG_RECENT_BITS 18
#define DG_RULES (1u << 14)
/* How many frames the sites of a call, known by its return address, have. A
 * recursive function with three calls of itself (compilers inline one into
 * itself and make a dozen) has 3^8 stacks of eight frames, each of them is
 * walked and kept, and not told apart: dg_count_site. Calls that share
 * an entry share its limit. */
#define DG_CALL_BITS 12

static struct dg_path_table {
	uint32_t recent_shift, recent_least;
	uint32_t recent_pushed; /* out, since the part in use grew */
	uint32_t rules_mask;    /* the part in use, less one; more when entries push each other out */
	uint32_t rules_pushed;
	uint32_t rules_age;
	uint8_t shorter[1 << DG_CALL_BITS] __attribute__((aligned(64))); /* by so many frames than dg_sites.frames */
	uint16_t made[1 << DG_CALL_BITS]; /* sites since; under the sites' lock */
	/* Words to the next return address; 0: not known, or it is the last one. By the
	 * address' low half-word as it is on the stack: the time that a walk takes
	 * is that of its loads, each of which needs what the last one brought, and of
	 * the calculations between them. Only the pages for the code that calls are
	 * ever touched. A step of another address with the same low bits leads to no
	 * known digest. */
	uint16_t steps[1 << 16] __attribute__((aligned(64)));
	/* Rules found before, by pc: key holds pc ^ rule, so that a torn one matches no
	 * pc (Hyatt's trick of transposition tables). */
	struct dg_rule_entry {
		uint64_t key, rule;
	} rules[DG_RULES];
	/* A digest, with the site in its low bits. A small part is in use at first, so
	 * that a small program touches little memory, and more when entries push each
	 * other out. A thread's own has no more than DG_RECENT_BITS_OWN of it. */
	uint64_t recent[1 << DG_RECENT_BITS] __attribute__((aligned(64)));
} dg_paths_first;

static void dg_paths_start(struct dg_path_table *p, uint32_t recent_bits)
{
	p->recent_shift = 64 - DG_RECENT_BITS_FIRST;
	p->recent_least = 64 - recent_bits;
	p->rules_mask = (1u << 9) - 1;
}

#ifdef DG_RECORD
#define DG_RECENT_BITS_OWN 15
_Static_assert(offsetof(struct dg_path_table, recent) + (8u << DG_RECENT_BITS_OWN) <= DG_PATHS_SLOT, "slot");

/* The main thread's, and that of threads that the engine does not know. */
static __thread struct dg_path_table *dg_paths __attribute__((tls_model("initial-exec"))) = &dg_paths_first;

static void dg_paths_attach(void)
{
	uint64_t at;

	if (!dg_mode || !dg_me || dg_me->index == 1)
		return;
	at = dg_paths_own(dg_me->index);
	if ((uint64_t)dg_sys(SYS_mmap, (long)at, DG_PATHS_SLOT, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0) != at)
		return;
	dg_paths = (struct dg_path_table *)at;
	dg_paths_start(dg_paths, DG_RECENT_BITS_OWN);
}
#else
#define dg_paths (&dg_paths_first)

static void dg_paths_attach(void)
{
}
#endif

static void dg_more_rules(void)
{
	struct dg_path_table *p = dg_paths;
	uint32_t mask = p->rules_mask;

	if (mask + 1 == DG_RULES || ++p->rules_pushed <= mask / 2)
		return;
	p->rules_pushed = 0;
	p->rules_mask = mask * 2 + 1;
}
