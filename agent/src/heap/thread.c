/* Threads: which heap a thread has, where its stack lies, and what becomes of
 * both when it ends or the process forks. */
#include "agent.h"
#include "syscall.h"
#ifdef DG_RECORD
#include "engine/thread.h"
#endif

#include <pthread.h>
#include <limits.h>
#include <sys/resource.h>

/* Bounds of the running thread's stack; 0 until the first call. Frames
 * outside is a coroutine's or a signal's stack, of which nothing is known. */
static __thread struct dg_stack {
	uint64_t low, high;
} dg_stack __attribute__((tls_model("initial-exec")));

static __thread uint32_t dg_number __attribute__((tls_model("initial-exec")));
/* In dg_attach, or after its last destructor: no heap to be had. */
static __thread bool dg_unattachable __attribute__((tls_model("initial-exec")));

static pthread_key_t dg_key;
static bool dg_key_made;
static uint32_t dg_heap_hint; /* no heap below it is idle; under the lock */

/* More than that is not believed of a main thread: with an unlimited stack,
 * other mappings lie below it. */
#define DG_MAX_MAIN_STACK (1ull << 30)

static void dg_main_stack(void)
{
	struct rlimit limit = { .rlim_cur = RLIM_INFINITY };
	uint64_t size = DG_MAX_MAIN_STACK;

	dg_sys2(SYS_getrlimit, RLIMIT_STACK, &limit);
	if (limit.rlim_cur < size)
		size = limit.rlim_cur;
	dg_stack.high = (uint64_t)__libc_stack_end;
	dg_stack.low = dg_stack.high - size;
}

/* glibc keeps a thread's control block, where the thread pointer points, at
 * the upper end of its stack, and in it the stack's address and size, whose
 * places differ between versions. So they are told by what only they fulfil:
 * they begin below this frame and end just after the control block.
 * pthread_getattr_np would tell, but takes the thread's lock and allocates
 * under it: a thread whose first allocation that is would wait for itself. */
#define DG_STACK_END (1u << 16) /* the control block and all alignment are shorter */

static bool dg_thread_stack(uint64_t self, uint64_t sp)
{
	for (uint32_t at = 0; at + 16 <= DG_CONTROL_BLOCK; at += 8) {
		const uint64_t *field = (const uint64_t *)(self + at);
		uint64_t low = field[0], size = field[1];

		if (low < 1 << 16 || low >= sp || size < 1 << 14 || size >= 1ull << 40)
			continue;
		if (low + size <= self || low + size > self + DG_STACK_END)
			continue;
		dg_stack.low = low;
		dg_stack.high = self;
		return true;
	}
	return false;
}

static void dg_find_stack(bool main_thread)
{
	uint64_t self = (uint64_t)__builtin_thread_pointer();
	uint64_t sp = (uint64_t)__builtin_frame_address(0);

	/* The main thread of a fork's child runs on the stack of the thread that
	 * forked. */
	if ((sp >= self || !dg_thread_stack(self, sp)) && main_thread)
		dg_main_stack();
}

/* Room for one more element of a window; NULL if there is no memory. */
static void *dg_append(struct dg_window *w, uint64_t size)
{
	uint64_t end = (w->used + 1) * size;

	if (end > w->mapped && !dg_grow(w, 1 << 16 > size ? 1 << 16 : size))
		return NULL;
	return (void *)(w->start + w->used * size);
}

static struct dg_heap *dg_heap_number(uint64_t i)
{
	return (struct dg_heap *)dg_root->heaps.start + i;
}

static struct dg_heap *dg_take_heap(void)
{
	struct dg_heap *h;

	for (; dg_heap_hint < dg_root->heaps.used; dg_heap_hint++) {
		h = dg_heap_number(dg_heap_hint);
		if (h->state == DG_HEAP_IDLE)
			return h;
	}
	if ((dg_root->heaps.used + 1) * sizeof(*h) > DG_OFF_THREADS - DG_OFF_HEAPS)
		return NULL;
	h = dg_append(&dg_root->heaps, sizeof(*h));
	if (!h || !dg_heap_init(h))
		return NULL;
	DG_ORDER();
	dg_heap_hint = (uint32_t)++dg_root->heaps.used;
	return h;
}

static uint32_t dg_new_thread(uint32_t heap)
{
	struct dg_thread *t;
	uint32_t number;

	if (!dg_root->threads.used && dg_append(&dg_root->threads, sizeof(*t)))
		dg_root->threads.used = 1; /* thread 0 is the unknown one */
	number = (uint32_t)dg_root->threads.used;
	if (number > DG_THREAD_MASK)
		return 0;
	t = dg_append(&dg_root->threads, sizeof(*t));
	if (!number || !t)
		return 0;
	*t = (struct dg_thread){
		.tid = dg_tid(),
		.state = DG_THREAD_RUNNING,
		.heap = heap,
		.stack_low = dg_stack.low,
		.stack_high = dg_stack.high,
	};
	DG_ORDER();
	dg_root->threads.used++;
	return number;
}

static struct dg_thread *dg_thread_number(uint32_t number)
{
	return (struct dg_thread *)dg_root->threads.start + number;
}

/* Rounds of destructors that ours has seen stand in its value: frees by other
 * keys' destructors, in whatever order, are to meet the thread's own heap. */
static void dg_thread_end(void *rounds)
{
	uintptr_t seen = (uintptr_t)rounds;
	struct dg_heap *h = dg_self;

	if (seen < PTHREAD_DESTRUCTOR_ITERATIONS &&
	    !pthread_setspecific(dg_key, (void *)(seen + 1)))
		return;
#ifdef DG_RECORD
	/* glibc counts threads as they end, and the last one ends the process: from
	 * here to this thread's next system call no other one comes here. */
	if (dg_mode)
		dg_engine(DG_OP_ORDER_BEGIN, dg_number, DG_FAMILY_ENDING, DG_ORDER_GATE, 0, 0);
#endif
	dg_unattachable = true;
	if (!h || !dg_lock())
		return;
	dg_self = NULL;
	/* Ended by a handler or a cancellation in the middle of a call. */
	h->state = h->busy ? DG_HEAP_ABANDONED : DG_HEAP_IDLE;
	if (!h->busy && h - dg_heap_number(0) < dg_heap_hint)
		dg_heap_hint = (uint32_t)(h - dg_heap_number(0));
	if (dg_number)
		dg_thread_number(dg_number)->state = DG_THREAD_ENDED;
	dg_unlock();
}

/* The other threads are gone, perhaps in the middle of a call: what they had
 * is left as it is. */
static void dg_after_fork_child(void)
{
	dg_inherit_locks();
	dg_root->pid = dg_pid();
	for (uint64_t i = 1; i < dg_root->heaps.used; i++) {
		struct dg_heap *h = dg_heap_number(i);

		if (h != dg_self && h->state == DG_HEAP_OWNED)
			h->state = DG_HEAP_ABANDONED;
	}
	for (uint32_t i = 1; i < dg_root->threads.used; i++)
		if (i != dg_number && dg_thread_number(i)->state == DG_THREAD_RUNNING)
			dg_thread_number(i)->state = DG_THREAD_PARENT;
	if (dg_number)
		dg_thread_number(dg_number)->tid = dg_tid();
	dg_unlock_fork();
}

/* Under the lock, once. Calls of libc's that work before it is initialised:
 * both write to static tables that need none. */
static void dg_make_key(void)
{
	dg_key_made = !pthread_key_create(&dg_key, dg_thread_end);
	pthread_atfork(dg_lock_fork, dg_unlock_fork, dg_after_fork_child);
}

static struct dg_heap *dg_attach_locked(void)
{
	struct dg_heap *h = dg_take_heap();

	if (!h)
		return NULL;
	dg_number = dg_new_thread((uint32_t)(h - dg_heap_number(0)));
	h->thread = dg_number;
	h->busy = 0;
	h->state = DG_HEAP_OWNED;
	return h;
}

static DG_COLD struct dg_heap *dg_attach(void)
{
	struct dg_heap *h;
	static bool once;

	if (dg_unattachable || !dg_start())
		return NULL;
	/* What libc allocates in here comes from heap 0. */
	dg_unattachable = true;
	/* A handler came first, and had the thread's first call. */
	if (dg_self) {
		dg_unattachable = false;
		return dg_self;
	}
	dg_paths_attach();
	dg_find_stack(dg_tid() == dg_root->pid);
	if (!dg_lock()) {
		dg_unattachable = false;
		return NULL;
	}
	h = dg_attach_locked();
	dg_unlock();
	if (!__atomic_exchange_n(&once, true, __ATOMIC_RELAXED))
		dg_make_key();
	if (h && dg_key_made)
		pthread_setspecific(dg_key, (void *)1);
	dg_self = h;
	dg_unattachable = !h;
	return h;
}
