/* How the engine starts in a process: in the first constructor of all,
 * when ld.so is done and the program has one thread, and in a fork's child. */
#include "engine/engine.h"
#include "hunt/hunt.h"
#include "syscall.h"
#include "tid.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define DG_SITES_BYTES (8ull << 20)
/* Higher numbers make the kernel's table of descriptors large, which every
 * fork copies. */
#define DG_HIGHEST_FD 8192u
#define DG_TCB 2048u /* bytes searched; struct pthread is longer in every glibc */
#define DG_GUARD_AT (DG_SIGNAL_STACK_AT + DG_SIGNAL_STACK)

extern void *__libc_stack_end;

extern const char dg_text_low[] DG_HIDDEN, dg_text_high[] DG_HIDDEN, dg_int3_at[] DG_HIDDEN, dg_entry_insn[] DG_HIDDEN,
	dg_entry_tsc[] DG_HIDDEN, dg_entry_park[] DG_HIDDEN;
long dg_int3(long what, long a, long b, long c) DG_HIDDEN;

/* ---- the tracer ---- */

static uint32_t dg_number_in(const char *text, const char *name)
{
	uint32_t number = 0;

	for (; *text; text++) {
		const char *t = text, *n = name;

		while (*n && *t == *n)
			t++, n++;
		if (*n)
			continue;
		while (*t == ' ' || *t == '\t')
			t++;
		for (; *t >= '0' && *t <= '9'; t++)
			number = number * 10 + (uint32_t)(*t - '0');
		return number;
	}
	return 0;
}

/* -1: /proc does not tell, as in a chroot. */
static int dg_traced_by(void)
{
	char text[2048];
	long fd = dg_sys4(SYS_openat, AT_FDCWD, "/proc/thread-self/status", O_RDONLY | O_CLOEXEC, 0), n;

	if (fd < 0)
		return -1;
	n = dg_sys3(SYS_read, fd, text, sizeof(text) - 1);
	dg_sys1(SYS_close, fd);
	if (n <= 0)
		return -1;
	text[n] = 0;
	return (int)dg_number_in(text, "TracerPid:");
}

/* An int3 without a tracer would kill the program, whose tracer may be gone. */
static bool dg_tracer_lives(struct dg_control *c)
{
	int tracer;

	if (!c->tracer)
		return false;
	tracer = dg_traced_by();
	if (tracer > 0 || (tracer < 0 && dg_sys2(SYS_kill, c->tracer, 0) != -ESRCH))
		return true;
	c->tracer = 0;
	return false;
}

static long dg_trap(enum dg_trap what, uint64_t a, uint64_t b)
{
	struct dg_control *c = DG_CONTROL;

	/* A replayed process does not outlive its tracer (PTRACE_O_EXITKILL). */
	if (c->mode == DG_MODE_REPLAY ? !c->tracer : !dg_tracer_lives(c))
		return 0;
	return dg_int3(what, (long)a, (long)b, 0);
}

/* ---- threads ---- */

static struct dg_rthread *dg_rthread_number(uint32_t index)
{
	return (struct dg_rthread *)(DG_ENGINE_THREADS + (uint64_t)index * DG_THREAD_SLOT);
}

static struct dg_rthread *dg_rthread_new(uint32_t index)
{
	struct dg_rthread *t = dg_rthread_number(index);
	long at;

	if (!index || index >= DG_RTHREADS)
		return NULL;
	at = dg_sys(SYS_mmap, (long)t, DG_THREAD_SLOT, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);
	if (at != (long)t)
		return NULL;
	dg_sys3(SYS_mprotect, (uint64_t)t + DG_GUARD_AT, DG_PAGE_BYTES, PROT_NONE);
	t->index = index;
	t->engine_sp = (uint64_t)t + DG_THREAD_SLOT;
	t->budget = t->budget_start = DG_BUDGET;
	t->points = t->points_start = DG_POINTS;
	t->line = dg_atomic_line(index);
	t->state = DG_R_STARTING;
	return t;
}

/* Replay: where the thread's events are, before its first one. */
static void dg_rthread_events(struct dg_rthread *t)
{
	const struct dg_replay_thread *logged = dg_image_thread(t->index);

	t->next = logged ? logged->start : 0;
	t->next_end = logged ? logged->end : 0;
}

/* glibc keeps the thread's id in its control block, and writes it into mutexes.
 * So a replay has the recorded one there. */
static uint32_t dg_tcb_tid;

static uint32_t *dg_tcb(uint32_t at)
{
	return (uint32_t *)((uint8_t *)__builtin_thread_pointer() + at);
}

static void dg_tcb_learn(uint32_t tid)
{
	dg_tcb_tid = dg_tid_offset((uint64_t)__builtin_thread_pointer(), DG_TCB, tid);
}

static void dg_tcb_write(uint32_t tid)
{
	if (dg_tcb_tid)
		*dg_tcb(dg_tcb_tid) = tid;
}

/* ---- files ---- */

/* Where the program does not meet it: after what it may have, if there is
 * room, but not far. */
static int dg_fd_high(long fd)
{
	struct rlimit limit = { DG_HIGHEST_FD, DG_HIGHEST_FD }, more;
	uint64_t lowest;
	long high;

	if (fd < 0)
		return -1;
	dg_sys4(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &limit);
	more = (struct rlimit){ limit.rlim_max, limit.rlim_max };
	lowest = limit.rlim_cur < DG_HIGHEST_FD ? limit.rlim_cur : DG_HIGHEST_FD;
	if (lowest + 8 > limit.rlim_max)
		lowest = limit.rlim_max > 16 ? limit.rlim_max - 8 : 8;
	dg_sys4(SYS_prlimit64, 0, RLIMIT_NOFILE, &more, 0);
	high = dg_sys3(SYS_fcntl, fd, F_DUPFD_CLOEXEC, lowest);
	dg_sys4(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, 0);
	dg_sys1(SYS_close, fd);
	return high < 0 ? -1 : (int)high;
}

static int dg_open_high(const char *path, int flags)
{
	return dg_fd_high(dg_sys4(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0));
}

/* Opens a file at the descriptor fd of another one; -1: at a new one. */
static int dg_open_instead(const char *path, int32_t fd)
{
	long opened, at;

	if (fd < 0)
		return dg_open_high(path, O_RDWR);
	opened = dg_sys4(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
	if (opened < 0)
		return -1;
	at = dg_sys3(SYS_dup3, opened, fd, O_CLOEXEC);
	dg_sys1(SYS_close, opened);
	return at < 0 ? -1 : (int)at;
}

/* parents: the descriptor of the parent's log in a fork's child, else -1. */
static bool dg_recording_open(struct dg_control *c, int32_t parents)
{
	struct dg_log_header header = { .magic = DG_RECORD_MAGIC, .version = DG_RECORD_VERSION, .pid = c->pid };

	c->log_fd = dg_open_instead(c->log_path, parents);
	return c->log_fd >= 0 &&
	       dg_sys4(SYS_pwrite64, c->log_fd, &header, sizeof(header), 0) == sizeof(header);
}

static bool dg_image_open(struct dg_control *c)
{
	struct stat file;
	long fd = dg_sys4(SYS_openat, AT_FDCWD, c->log_path, O_RDONLY | O_CLOEXEC, 0), at = -1;
	uint64_t size = 0;

	if (fd < 0)
		return false;
	if (!dg_sys2(SYS_fstat, fd, &file))
		size = (uint64_t)file.st_size;
	if (size && size <= DG_ENGINE_STACKS - DG_ENGINE_IMAGE)
		at = dg_sys(SYS_mmap, (long)DG_ENGINE_IMAGE, (long)size, PROT_READ, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0);
	dg_sys1(SYS_close, fd);
	if (at != (long)DG_ENGINE_IMAGE || !dg_image_sound(size))
		return false;
	if (c->data_path[0]) {
		c->data_fd = dg_open_high(c->data_path, O_RDONLY);
		if (c->data_fd < 0)
			return false;
	}
	c->image = DG_ENGINE_IMAGE;
	c->run = 0;
	c->left = DG_IMAGE->run_count ? ((const struct dg_run *)DG_IMAGE->runs)->events : 0;
	dg_turn_start();
	return true;
}

/* ---- the start ---- */

/* Of the initial stack, as the kernel made it. */
struct dg_initial_facts {
	bool wanted; /* DIAGNOSE_RECORD=1 */
	bool secure;
	bool vdso;   /* the recorder hides it from what it starts (record.Normalise): */
	bool hidden; /* an AT_IGNORE is in its place */
	uint64_t stack_high;
};

static bool dg_same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static struct dg_initial_facts dg_initial_facts(void)
{
	struct dg_initial_facts facts = { .stack_high = (uint64_t)__libc_stack_end };
	const uint64_t *p = __libc_stack_end;

	p += 1 + p[0] + 1;
	for (; *p; p++)
		if (dg_same((const char *)*p, "DIAGNOSE_RECORD=1"))
			facts.wanted = true;
	for (const Elf64_auxv_t *a = (const Elf64_auxv_t *)(p + 1); a->a_type != AT_NULL; a++)
		if (a->a_type == AT_SECURE)
			facts.secure = a->a_un.a_val;
		else if (a->a_type == AT_SYSINFO_EHDR)
			facts.vdso = true;
		else if (a->a_type == AT_IGNORE)
			facts.hidden = true;
	return facts;
}

static bool dg_map_private(uint64_t at, uint64_t bytes)
{
	return dg_sys(SYS_mmap, (long)at, (long)bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0) == (long)at;
}

static uint64_t dg_control_bytes(void)
{
	return (sizeof(struct dg_control) + DG_PAGE_BYTES - 1) & ~(DG_PAGE_BYTES - 1);
}

static void dg_control_fill(struct dg_control *c, uint32_t tracer)
{
	c->version = DG_RECORD_VERSION;
	c->pid = (uint32_t)dg_sys0(SYS_getpid);
	c->tracer = tracer;
	c->trap_pc = (uint64_t)dg_int3_at;
	c->insn_pc = (uint64_t)dg_entry_insn;
	c->tsc_pc = (uint64_t)dg_entry_tsc;
	c->park_pc = (uint64_t)dg_entry_park;
	c->text_low = (uint64_t)dg_text_low;
	c->text_high = (uint64_t)dg_text_high;
	c->patches = DG_ENGINE_SITES;
	c->log_fd = c->data_fd = -1;
	c->log_end = DG_EXTENT;
	c->stop_at = c->fork_at = UINT64_MAX;
	c->ticket = 1;
	c->free_able = 2;
	c->fork_advice = DG_FORK_HAS_ALL;
	c->actions = (uint64_t)dg_actions;
	c->point_able = 1;
	c->magic = DG_RECORD_MAGIC;
}

/* The first thread's event, as those of others are written when they start:
 * parent, tid, thread pointer, stack. */
static void dg_first_event(struct dg_rthread *me)
{
	uint64_t args[5] = { 0, me->real_tid, me->thread_pointer, me->stack_low, me->stack_high };
	const struct dg_event *logged;
	struct dg_event *e;

	if (DG_CONTROL->mode == DG_MODE_RECORD) {
		e = dg_event_begin(DG_EV_START, me->index, 0, 5, 0);
		if (!e)
			return;
		dg_copy(dg_event_args(e), args, sizeof(args));
		dg_event_commit(e);
		return;
	}
	dg_budget_set(me);
	logged = dg_event_await(DG_EV_START, me->index);
	if (logged->args > 1)
		args[1] = me->tid = (uint32_t)dg_logged_args(logged)[1];
	dg_event_take(logged, DG_EV_START, me->index, 0, args, 5);
	dg_tcb_write(me->tid);
}

static bool dg_first_thread(struct dg_control *c, uint64_t stack_high)
{
	struct dg_rthread *me = dg_rthread_new(1);

	if (!me)
		return false;
	me->real_tid = me->tid = (uint32_t)dg_sys0(SYS_gettid);
	me->thread_pointer = (uint64_t)__builtin_thread_pointer();
	me->stack_high = stack_high;
	me->state = DG_R_RUNNING;
	c->threads = 1;
	c->holder = 1;
	c->turns = 1;
	dg_tcb_learn(me->tid);
	if (c->mode == DG_MODE_REPLAY)
		dg_rthread_events(me);
	dg_me = me;
	return true;
}

static bool dg_mode_start(struct dg_control *c, int32_t parents)
{
	if (c->mode == DG_MODE_RECORD && c->stopped)
		return true; /* without a log */
	if (c->mode == DG_MODE_RECORD)
		return dg_recording_open(c, parents);
	return c->mode == DG_MODE_REPLAY && dg_image_open(c);
}

/* On the engine's stack, as everything that may leave other traces on the
 * program's in a replay than in the recording. */
static void dg_op_start(struct dg_frame *f)
{
	struct dg_control *c = DG_CONTROL;

	(void)f;
	dg_signal_start(dg_me);
	dg_first_event(dg_me);
	dg_counter_start();
	dg_patch_sites();
	dg_point_sites();
	if (dg_counter_traps)
		dg_counter_follow();
	dg_wakes_here = c->mode == DG_MODE_REPLAY;
	dg_hunt_start();
	__atomic_store_n(&dg_mode, c->mode, __ATOMIC_RELEASE);
}

/* The agreement with the tracer cannot be kept. A program that should be
 * recorded continues without; the tracer finds in the control that it does. One
 * that should be replayed must not do for real what it would only have seemed to
 * do. */
static void dg_engine_off(struct dg_control *c)
{
	if (c->mode == DG_MODE_REPLAY) {
		c->divergence.thread = dg_me ? dg_me->index : 1;
		c->divergence.reason = DG_DIFFERS_LOG;
		dg_end_of_replay(DG_TRAP_DIVERGED);
	}
	c->mode = DG_MODE_OFF;
	c->stopped = DG_LIMIT_START;
	dg_counter_free();
}

/* What the start has left below the stack pointer says whether it was one of a
 * recording or of a replay. Frames of the program's that do not write to all of
 * their memory would show it. */
__attribute__((noinline)) static void dg_stack_wipe(void)
{
	uint8_t below[16384];

	for (uint64_t i = 0; i < sizeof(below); i++)
		((volatile uint8_t *)below)[i] = 0;
}

static void dg_engine_begin(void);

__attribute__((constructor(101))) void dg_engine_start(void)
{
	dg_engine_begin();
	dg_stack_wipe();
	/* The compiler must not make a jump of that call: a stepped replay leaves out
	 * what the library calls. */
	__asm__ volatile("");
}

__attribute__((noinline)) static void dg_engine_begin(void)
{
	struct dg_initial_facts facts = dg_initial_facts();
	struct dg_control *c = DG_CONTROL;
	int tracer;

	/* A tracer that has not hidden the vDSO is a debugger of the program's. */
	if (!facts.wanted || facts.secure || facts.vdso)
		return;
	tracer = dg_traced_by();
	if (tracer <= 0)
		return;
	if (!dg_map_private(DG_ENGINE_CONTROL, dg_control_bytes()) || !dg_map_private(DG_ENGINE_SITES, DG_SITES_BYTES)) {
		/* An emulator hands LD_PRELOAD on to the program that it runs within its own
		 * process, whose vector is the emulator's making: that process is recorded. */
		if (facts.hidden)
			dg_int3(DG_TRAP_HELLO, 0, 0, 0); /* the tracer reports the error */
		return;
	}
	dg_control_fill(c, (uint32_t)tracer);
	if (!dg_trap(DG_TRAP_HELLO, DG_ENGINE_CONTROL, 0))
		return;
	if (!dg_mode_start(c, -1) || !dg_first_thread(c, facts.stack_high) || !dg_sync_start()) {
		dg_engine_off(c);
		dg_me = NULL;
		return;
	}
	dg_engine(DG_OP_START, 0, 0, 0, 0, 0);
	dg_identify();
}

/* ---- a fork's child ---- */

/* It has of its parent's recording: memory of the parent's threads, which
 * are no more, and extents, into which it must not write. */
static void dg_forget_parent(struct dg_control *c)
{
	for (uint32_t i = 1; i <= c->threads; i++) {
		struct dg_rthread *t = dg_rthread_number(i);

		if (t->extent)
			dg_sys2(SYS_munmap, t->extent, t->extent_size);
		if (t->home && t->home != t->extent)
			dg_sys2(SYS_munmap, t->home, DG_HOME_BYTES);
		t->at = t->end = t->extent = t->extent_size = t->home = 0;
		t->sequence = 0;
		if (t != dg_me)
			t->state = DG_R_NONE;
	}
	if (c->image)
		dg_sys2(SYS_munmap, DG_ENGINE_IMAGE, dg_image_size);
	c->image = 0;
	c->log_fd = c->data_fd = -1;
	c->stopped = c->hunt && DG_HUNT->quiet ? DG_LIMIT_START : 0;
	c->log_end = DG_EXTENT;
	c->data_end = 0;
	c->ticket = 1;
	c->consumed = 0;
	c->stop_at = c->fork_at = UINT64_MAX;
}

/* Called in the child, on the engine's stack of the thread that forked. The
 * child keeps that thread's index. shares: its table of descriptors is its parent's.
 * False: it runs unrecorded. */
static bool dg_engine_forked(bool shares)
{
	struct dg_control *c = DG_CONTROL;
	struct dg_rthread *me = dg_me;
	int32_t parents = shares ? -1 : c->log_fd;

	if (!shares && c->data_fd >= 0)
		dg_sys1(SYS_close, c->data_fd);

	dg_mode = DG_MODE_OFF;
	dg_wakes_here = 0;
	dg_sync_forked();
	dg_forget_parent(c);
	me->real_tid = (uint32_t)dg_sys0(SYS_gettid);
	me->ordinal = 0;
	me->budget = me->budget_start = DG_BUDGET;
	me->carried = 0;
	me->go = DG_GO_WAIT;
	me->state = DG_R_RUNNING;
	if (c->mode == DG_MODE_RECORD) {
		c->pid = (uint32_t)dg_sys0(SYS_getpid);
		me->tid = me->real_tid;
		/* A tracer that is killed leaves the trap without an answer, which
		 * looks like one: the parent's log is not to be written to. */
		c->log_path[0] = c->data_path[0] = 0;
	}
	if (!dg_trap(DG_TRAP_FORKED, DG_ENGINE_CONTROL, 0) || !dg_mode_start(c, parents)) {
		if (parents >= 0)
			dg_sys1(SYS_close, parents);
		dg_engine_off(c);
		return false;
	}
	if (c->mode == DG_MODE_REPLAY) {
		/* A child has one thread, whose id is the process's. */
		me->tid = c->pid;
		dg_tcb_write(me->tid);
		c->holder = me->index;
		dg_rthread_events(me);
		dg_budget_set(me);
	}
	dg_wakes_here = c->mode == DG_MODE_REPLAY || dg_hunting();
	dg_hunt_forked();
	dg_atomic_forked();
	dg_mode = c->mode;
	return true;
}
