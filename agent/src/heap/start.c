/* What must stand before the first allocation. The first call may come from
 * the dynamic linker, before any constructor and before libc is initialised:
 * the environment is found on the initial stack, and only raw system calls are
 * made. */
#include "agent.h"
#include "syscall.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ld.so's: where the kernel put argc. Set before ld.so calls anybody. */
extern void *__libc_stack_end;

enum { DG_NOT_STARTED = 0, DG_STARTED = 1 };

/* 0, DG_STARTED, or the negative tid of the thread that is at it. */
static int dg_start_state;

struct dg_initial {
	const char *options; /* NULL: not set */
	bool secure;         /* set-user-ID and the like: the environment is not to be trusted */
	const uint8_t *random; /* 16 bytes from the kernel; NULL: none */
};

static const char *dg_value_of(const char *entry, const char *name)
{
	while (*name)
		if (*entry++ != *name++)
			return NULL;
	return *entry == '=' ? entry + 1 : NULL;
}

/* argc, argv, NULL, environment, NULL, auxiliary vector: the System V ABI's
 * initial process stack. */
static struct dg_initial dg_read_initial(void)
{
	struct dg_initial initial = { .options = NULL };
	const uint64_t *p = __libc_stack_end;

	p += 1 + p[0] + 1;
	for (; *p; p++)
		if (!initial.options)
			initial.options = dg_value_of((const char *)*p, "DIAGNOSE_OPTIONS");
	for (const Elf64_auxv_t *a = (const Elf64_auxv_t *)(p + 1); a->a_type != AT_NULL; a++)
		if (a->a_type == AT_SECURE)
			initial.secure = a->a_un.a_val;
		else if (a->a_type == AT_RANDOM)
			initial.random = (const uint8_t *)a->a_un.a_val;
	return initial;
}

/* The kernel's random bytes are also libc's stack guard and pointer guard: of
 * both only a mixture is used, so that a guard that leaks tells neither. */
static uint64_t dg_secret(const uint8_t *random)
{
	uint64_t half[2], x;

	if (!random)
		return DG_DEFAULT_CANARY;
	memcpy(half, random, sizeof(half));
	x = half[0] ^ (half[1] << 32 | half[1] >> 32);
	x = (x ^ x >> 32) * DG_CANARY_FACTOR;
	x ^= x >> 29;
	return x ? x : DG_DEFAULT_CANARY;
}

static DG_COLD bool dg_start_once(void)
{
	struct dg_initial initial = dg_read_initial();
	struct dg_options options;

	dg_options(&options, initial.secure ? NULL : initial.options);
#ifdef DG_RECORD
	options.check_interval_ms = 0; /* while other threads run, at a time of the clock's choosing: it would not come again */
#endif
	if (!options.canary)
		options.canary = dg_secret(initial.random);
	if (!dg_map_root())
		return false;
	dg_root->options = options;
	dg_root->pid = dg_pid();
	if (!dg_heaps_start())
		return false;
	dg_sites_start();
	DG_ORDER();
	dg_root->ready = 1;
	return true;
}

static bool dg_start(void)
{
	int state = __atomic_load_n(&dg_start_state, __ATOMIC_ACQUIRE);
	int mine;

	if (DG_LIKELY(state == DG_STARTED))
		return true;
	mine = -(int)dg_tid();
	for (;;) {
		state = DG_NOT_STARTED;
		if (__atomic_compare_exchange_n(&dg_start_state, &state, mine, false,
						__ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
			break;
		if (state == DG_STARTED)
			return true;
		/* A signal handler that interrupted the start gets no memory. */
		if (state == mine)
			return false;
		dg_sys0(SYS_sched_yield);
	}
	/* A start that failed for lack of memory is tried again by the next call. */
	state = dg_start_once() ? DG_STARTED : DG_NOT_STARTED;
	__atomic_store_n(&dg_start_state, state, __ATOMIC_RELEASE);
	return state == DG_STARTED;
}

/* Registered by the constructor, that is before the C library's start code
 * registers the destructors of all libraries: so it runs after those. */
static void dg_at_exit(int status, void *unused)
{
	(void)unused;
	if (!dg_start())
		return;
	/* Where an error ends the process, its thread may be at a check, and its
	 * handler wait for this one. */
	if (!__atomic_load_n(&dg_ended, __ATOMIC_RELAXED))
		dg_check_all(DG_AT_EXIT);
	if (status || !dg_root->options.exitcode || !dg_root->error_count)
		return;
	/* What libc would still do. */
	fflush(NULL);
	_exit((int)dg_root->options.exitcode);
}

__attribute__((constructor)) static void dg_construct(void)
{
	if (!dg_start())
		return;
	dg_unwind_start();
	/* What the main thread's heap needs to know is asked of the kernel before
	 * the program may forbid itself such questions (seccomp). */
	dg_tid_learn();
	free(malloc(1));
	on_exit(dg_at_exit, NULL);
}
