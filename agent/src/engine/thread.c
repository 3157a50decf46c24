/* Threads: their indices, their stacks, and the order in which they come and go.
 *
 * Every thread is glibc's own, made by its pthread_create with a stack of ours,
 * and ended by its pthread_join. What glibc does to lists that all threads share
 * (the list of stacks, the free of a thread's TLS vector) it does inside of
 * creations and joins only, and these exclude each other here (dg_threads_gate):
 * so the lists depend on the order of events alone. A thread that is detached is
 * joinable for glibc; it is joined by a later creation (reaped), for at its own end
 * no event would order what glibc does.
 *
 * The kernel clears a word when a thread is gone. That is dg_rthread.real_tid,
 * and not the one in glibc's control block, which is cleared by who joins: when
 * the kernel is done is no event. */
#include "engine/engine.h"
#include "engine/free.h"
#include "hunt/hunt.h"
#include "syscall.h"
#include "engine/thread.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>

#define DG_GONE_SECONDS 10

uint32_t dg_many;

/* What the engine knows of a thread besides its dg_rthread. */
struct dg_fact {
	uint32_t ended;  /* futex: its DG_EV_EXIT is in the log */
	uint32_t flags;  /* enum dg_creation_flag */
	uint32_t begun;  /* reached the wrapper's start routine: whoever joins it asks us */
	uint32_t joiner; /* index of the thread that waits for it, or joined it */
	uint32_t joins;  /* index of the thread that it waits for */
	uint32_t parent;
	struct dg_stack_slots stack;
	uint32_t creating; /* index of the thread that it is creating */
	uint32_t cloned;   /* that one's DG_EV_CREATED is in the log */
	uint32_t gates;    /* families that it keeps until its next system call: bits */
	uint32_t next;     /* in the list of threads to be reaped */
};

static struct dg_fact dg_facts[DG_RTHREADS];
static uint32_t dg_live = 1;
static uint32_t dg_reap_first, dg_reap_last;

static struct dg_fact *dg_fact(const struct dg_rthread *t)
{
	return &dg_facts[t->index];
}

static struct dg_gate dg_threads_gate;
static struct dg_gate dg_families[DG_FAMILIES];

static void dg_gates_open(void)
{
	struct dg_fact *mine = dg_fact(dg_me);
	uint32_t gates = mine->gates;

	mine->gates = 0;
	for (; gates; gates &= gates - 1)
		dg_gate_open(&dg_families[__builtin_ctz(gates)]);
}

static bool dg_thread_creates(void)
{
	return dg_fact(dg_me)->creating && !dg_fact(dg_me)->cloned;
}

/* ---- threads that ended ---- */

static void dg_reap_add(uint32_t index)
{
	dg_facts[index].next = 0;
	if (dg_reap_last)
		dg_facts[dg_reap_last].next = index;
	else
		dg_reap_first = index;
	dg_reap_last = index;
}

/* Detached threads of ours alone; others are ended by glibc. */
static bool dg_reapable(const struct dg_fact *fact)
{
	return (fact->flags & (DG_CREATE_DETACHED | DG_CREATE_OWN_STACK | DG_CREATE_INTERNAL)) == DG_CREATE_DETACHED &&
	       fact->begun;
}

/* Waits until the kernel is done with a thread whose last event is over, and
 * makes glibc believe it. */
static void dg_thread_gone(struct dg_rthread *t)
{
	struct timespec second = { 1, 0 };
	uint32_t tid;

	for (int i = 0; (tid = __atomic_load_n(&t->real_tid, __ATOMIC_ACQUIRE)); i++) {
		if (i == DG_GONE_SECONDS && !dg_recording())
			dg_diverge(DG_DIFFERS_THREAD, NULL, 0, 0, t->index);
		dg_sys4(SYS_futex, &t->real_tid, FUTEX_WAIT, tid, &second);
	}
	if (dg_tcb_tid)
		*(uint32_t *)(t->thread_pointer + dg_tcb_tid) = 0;
	/* Its first page stays: who it was may be asked. */
	dg_sys3(SYS_madvise, (uint64_t)t + DG_GUARD_AT + DG_PAGE_BYTES, DG_THREAD_SLOT - DG_GUARD_AT - DG_PAGE_BYTES,
		MADV_DONTNEED);
}

static void dg_reap(struct dg_creation *c)
{
	struct dg_rthread *t;

	c->reaps = 0;
	while (dg_reap_first && c->reaps < DG_REAPS) {
		t = dg_rthread_number(dg_reap_first);
		dg_reap_first = dg_fact(t)->next;
		if (!dg_reap_first)
			dg_reap_last = 0;
		dg_thread_gone(t);
		c->reap[c->reaps] = t->index;
		c->reap_pointer[c->reaps++] = t->thread_pointer;
	}
}

/* ---- creation ---- */

static struct dg_rthread *dg_thread_new(uint32_t flags)
{
	uint32_t index = dg_free() ? dg_free_index() : DG_CONTROL->threads + 1;
	struct dg_rthread *t = dg_rthread_new(index);
	struct dg_fact *fact = &dg_facts[index % DG_RTHREADS];

	if (!t)
		return NULL;
	*fact = (struct dg_fact){ .flags = flags, .parent = dg_me->index };
	t->mask = dg_me->mask;
	if (!dg_recording())
		dg_rthread_events(t);
	return t;
}

/* From here on others may meet it. */
static void dg_thread_known(struct dg_rthread *t)
{
	dg_fact(dg_me)->creating = t->index;
	dg_fact(dg_me)->cloned = 0;
	if (t->index > DG_CONTROL->threads)
		__atomic_store_n(&DG_CONTROL->threads, t->index, __ATOMIC_RELEASE);
	dg_live++;
	dg_many = 1;
	dg_turns_more();
}

static void dg_thread_unmade(uint32_t index)
{
	struct dg_rthread *t = dg_rthread_number(index);

	dg_slots_free(&dg_fact(t)->stack);
	dg_fact(t)->ended = 1;
	__atomic_store_n(&t->state, DG_R_ENDED, __ATOMIC_SEQ_CST);
	if (--dg_live == 1)
		dg_many = 0;
}

/* Writes or awaits an event without payloads; NULL: no log any more. */
static const struct dg_event *dg_event_plain(enum dg_kind kind, uint64_t object, uint64_t site, int64_t result,
					     const uint64_t *args, uint32_t count)
{
	const struct dg_event *logged;
	struct dg_event *e;

	if (!dg_recording()) {
		logged = dg_event_await(kind, object);
		dg_event_take(logged, kind, object, site, args, count);
		return logged;
	}
	e = dg_event_begin(kind, object, site, count, 0);
	if (!e)
		return NULL;
	e->result = result;
	if (count)
		dg_copy(dg_event_args(e), args, count * sizeof(uint64_t));
	dg_event_commit(e);
	return e;
}

/* The turn in a replay, the lock in a recording. */
static void dg_threads_enter(enum dg_kind kind, uint64_t object)
{
	const struct dg_event *logged;

	if (dg_recording()) {
		if (dg_hunting() && kind != DG_EV_ORDER)
			dg_hunt_arrive(kind, object);
		dg_gate_take(&dg_threads_gate, true);
		return;
	}
	logged = dg_event_await(kind, object);
	dg_gate_await(&dg_threads_gate);
	dg_gate_retake(&dg_threads_gate, logged);
}

static long dg_create(struct dg_creation *c, uint64_t site)
{
	uint64_t args[4 + DG_REAPS] = { 0 };
	struct dg_rthread *t;

	dg_threads_enter(DG_EV_CREATE, DG_CONTROL->threads + 1);
	dg_reap(c);
	t = dg_thread_new((uint32_t)c->flags);
	if (t && !(c->flags & DG_CREATE_OWN_STACK) && !dg_stack_take(&dg_fact(t)->stack, c))
		t = NULL;
	c->index = t ? t->index : 0;
	if (t) {
		t->stack_low = c->flags & DG_CREATE_OWN_STACK ? c->own_low : c->stack_low;
		t->stack_high = t->stack_low + c->size;
		t->start = c->start;
		t->argument = c->argument;
		args[0] = t->stack_low;
		args[1] = t->stack_high;
	}
	args[2] = c->start;
	args[3] = c->flags;
	for (uint64_t i = 0; i < c->reaps; i++)
		args[4 + i] = c->reap[i];
	dg_event_plain(DG_EV_CREATE, c->index, site, t ? 0 : EAGAIN, args, (uint32_t)(4 + c->reaps));
	if (t)
		dg_thread_known(t);
	return t ? 0 : EAGAIN;
}

/* Answers 0 or an errno; the lock is kept either way. */
static void dg_op_create_begin(struct dg_frame *f)
{
	f->rax = (uint64_t)dg_create((struct dg_creation *)f->rsi, f->rdx);
}

static void dg_event_created(uint32_t index, uint64_t site, long error, uint64_t *tid)
{
	const struct dg_event *logged;

	if (dg_recording()) {
		if (dg_hunting() && !error) {
			dg_lockstep_created();
			dg_hunt_arrive(DG_EV_CREATED, index);
		}
		dg_event_plain(DG_EV_CREATED, index, site, error, tid, 1);
		return;
	}
	logged = dg_event_await(DG_EV_CREATED, index);
	if (logged->args)
		*tid = dg_logged_args(logged)[0];
	dg_event_take(logged, DG_EV_CREATED, index, site, tid, 1);
}

static struct dg_rthread **dg_me_of(uint64_t thread_pointer)
{
	uint64_t from_pointer = (uint64_t)&dg_me - (uint64_t)__builtin_thread_pointer();

	return (struct dg_rthread **)(thread_pointer + from_pointer);
}

/* creation, what glibc's pthread_create returned, site, the thread pointer. */
static void dg_op_create_end(struct dg_frame *f)
{
	struct dg_creation *c = (struct dg_creation *)f->rsi;
	struct dg_fact *mine = dg_fact(dg_me);
	uint64_t tid = 0;

	if (mine->creating) {
		/* A clone that did not come by its stub. */
		if (!f->rdx && !mine->cloned) {
			dg_rthread_number(mine->creating)->thread_pointer = f->r8;
			*dg_me_of(f->r8) = dg_rthread_number(mine->creating);
		}
		if (!mine->cloned)
			dg_event_created(mine->creating, f->rcx, (long)f->rdx, &tid);
		if (f->rdx)
			dg_thread_unmade(mine->creating);
	}
	mine->creating = 0;
	for (uint64_t i = 0; i < c->reaps; i++)
		dg_slots_free(&dg_facts[c->reap[i] % DG_RTHREADS].stack);
	dg_gate_open(&dg_threads_gate);
}

/* The program's, or glibc's for itself: by a way past the wrappers. */
static long dg_create_internal(uint64_t site)
{
	struct dg_creation c = { .flags = DG_CREATE_INTERNAL | DG_CREATE_OWN_STACK };
	long error = dg_create(&c, site);

	for (uint64_t i = 0; i < c.reaps; i++)
		dg_reap_add((uint32_t)c.reap[i]);
	if (error)
		dg_gate_open(&dg_threads_gate);
	return error;
}

/* What became of the clone in the recording, which this thread's next events say. */
static long dg_created_logged(uint32_t index)
{
	const struct dg_event *e;
	uint64_t at = dg_me->next;

	while (at < dg_me->next_end) {
		e = (const struct dg_event *)at;
		if (!dg_event_sound(e, dg_me->next_end))
			dg_diverge(DG_DIFFERS_LOG, e, 0, 0, 0);
		if (e->kind == DG_EV_CREATED && e->object == index)
			return (long)e->result;
		at += e->length;
	}
	return 0;
}

static long dg_thread_cloning(uint64_t flags, uint64_t tls, uint64_t site)
{
	struct dg_fact *mine = dg_fact(dg_me);
	struct dg_rthread *t;
	long error;

	/* It would have this thread's thread-local memory, and so its dg_me. */
	if (!(flags & CLONE_SETTLS))
		return -ENOSYS;
	if (!mine->creating && (error = dg_create_internal(site)))
		return -error;
	t = dg_rthread_number(mine->creating);
	t->thread_pointer = tls;
	t->mask = dg_me->mask;
	*dg_me_of(tls) = t;
	error = dg_recording() ? 0 : dg_created_logged(t->index);
	return error ? dg_thread_cloned(-error, 0, site) : 0;
}

static long dg_thread_cloned(long result, uint64_t parent_tid, uint64_t site)
{
	struct dg_fact *mine = dg_fact(dg_me);
	uint32_t index = mine->creating;
	struct dg_rthread *t = dg_rthread_number(index);
	uint64_t tid = result < 0 ? 0 : (uint64_t)result;

	/* Refused before, and dealt with. */
	if (!index || mine->cloned)
		return result;
	if (!dg_recording() && result < 0 && !dg_created_logged(index))
		dg_diverge(DG_DIFFERS_THREAD, dg_event_peek(), 0, index, (uint64_t)result);
	dg_event_created(index, site, result < 0 ? -result : 0, &tid);
	mine->cloned = 1;
	if (result < 0) {
		*dg_me_of(t->thread_pointer) = NULL;
	} else {
		t->tid = (uint32_t)tid;
		result = (long)tid;
		/* The child runs already in a recording, and the kernel wrote it. */
		if (parent_tid && !dg_recording())
			*(uint32_t *)parent_tid = t->tid;
	}
	if (dg_fact(t)->flags & DG_CREATE_INTERNAL) {
		if (result < 0)
			dg_thread_unmade(index);
		mine->creating = 0;
		dg_gate_open(&dg_threads_gate);
	}
	return result;
}

/* ---- the new thread ---- */

static void dg_thread_start(void)
{
	struct dg_rthread *me = dg_me;
	uint64_t args[5] = { dg_fact(me)->parent, 0, me->thread_pointer, me->stack_low, me->stack_high };
	const struct dg_event *logged;

	if (me->state != DG_R_STARTING)
		return;
	me->real_tid = (uint32_t)dg_sys0(SYS_gettid);
	if (dg_hunting())
		dg_hunt_begin();
	dg_signal_thread_start(me);
	if (dg_recording()) {
		args[1] = me->tid = me->real_tid;
		dg_event_plain(DG_EV_START, me->index, 0, 0, args, 5);
	} else {
		dg_budget_set(me);
		logged = dg_event_await(DG_EV_START, me->index);
		if (logged->args > 1)
			args[1] = me->tid = (uint32_t)dg_logged_args(logged)[1];
		dg_event_take(logged, DG_EV_START, me->index, 0, args, 5);
		dg_tcb_write(me->tid);
	}
	me->state = DG_R_RUNNING;
	dg_signal_thread_start(me);
}

/* From the wrapper's start routine. */
static void dg_op_thread_start(struct dg_frame *f)
{
	(void)f;
	dg_thread_start();
	dg_fact(dg_me)->begun = 1;
}

static void dg_thread_ends(uint64_t site)
{
	struct dg_rthread *me = dg_me;
	struct dg_fact *mine = dg_fact(me);

	dg_threads_enter(DG_EV_EXIT, me->index);
	dg_event_plain(DG_EV_EXIT, me->index, site, 0, NULL, 0);
	dg_live--;
	if (dg_reapable(mine))
		dg_reap_add(me->index);
	__atomic_store_n(&mine->ended, 1, __ATOMIC_RELEASE);
	dg_gate_open(&dg_threads_gate);
	if (dg_recording())
		dg_sys3(SYS_futex, &mine->ended, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

static void dg_thread_exit(struct dg_frame *f, uint64_t site)
{
	struct dg_rthread *me = dg_me;
	uint64_t status = f->rdi;

	dg_signal_thread_end(me);
	dg_gates_open();
	if (dg_fact(me)->stack.count)
		dg_stack_strip(me, f->rsp);
	else if (me->index == 1)
		dg_stack_strip_main(me, f->rsp);
	dg_thread_ends(site);
	dg_signal_thread_end(me);
	/* One that glibc waits for by itself, as its word says. */
	if (me->index == 1 || dg_fact(me)->begun)
		dg_sys1(SYS_set_tid_address, &me->real_tid);
	dg_sys2(SYS_munmap, dg_paths_own(me->index), DG_PATHS_SLOT);
	if (dg_recording()) {
		if (me->extent)
			dg_sys2(SYS_munmap, me->extent, me->extent_size);
		me->extent = me->at = me->end = 0;
		__atomic_store_n(&me->state, DG_R_ENDED, __ATOMIC_SEQ_CST);
		if (dg_hunting())
			dg_hunt_end();
	} else {
		dg_turn_end();
	}
	for (;;)
		dg_sys1(SYS_exit, status);
}

/* ---- a fork's child ---- */

static void dg_gate_forget(struct dg_gate *g)
{
	if (g->owner != dg_me->index)
		*g = (struct dg_gate){ 0 };
	else
		g->word = 1;
}

static void dg_thread_forked(void)
{
	for (uint32_t i = 1; i <= DG_CONTROL->threads; i++) {
		if (i == dg_me->index)
			continue;
		dg_slots_free(&dg_facts[i].stack);
		dg_facts[i] = (struct dg_fact){ .ended = 1, .flags = DG_CREATE_DETACHED };
	}
	dg_gate_forget(&dg_threads_gate);
	for (uint32_t i = 0; i < DG_FAMILIES; i++)
		dg_gate_forget(&dg_families[i]);
	dg_reap_first = dg_reap_last = 0;
	dg_live = 1;
	dg_many = 0;
}
