/* clone and its kin, exit and execve.
 *
 * A child with memory of its own is made here: it continues with a copy of the
 * engine's stack, and a recording of its own. One that borrows its parent's
 * memory (vfork, posix_spawn) makes its calls straight to the kernel; what it
 * writes into its parent's memory is in the parent's event. A new thread is
 * made in the stub, in both modes: engine/thread.c has its events. */
#include "engine/engine.h"
#include "engine/table.h"
#include "syscall.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>

#define DG_CLONE_ARGS 88u /* struct clone_args of Linux 5.7 */

/* What a clone call asks for, whichever it is. */
struct dg_clone {
	uint64_t flags;
	uint64_t stack; /* the child's stack pointer; 0: as the parent's */
	uint64_t args[DG_CLONE_ARGS / 8]; /* as clone3 has them */
};

enum { DG_CLONE_FLAGS, DG_CLONE_PIDFD, DG_CLONE_CHILD_TID, DG_CLONE_PARENT_TID, DG_CLONE_SIGNAL, DG_CLONE_STACK, DG_CLONE_STACK_SIZE, DG_CLONE_TLS };

static bool dg_clone_of(const struct dg_call *c, struct dg_clone *k)
{
	const uint64_t *a = c->args;

	*k = (struct dg_clone){ .flags = 0 };
	if (c->nr == SYS_clone3) {
		uint64_t size = dg_least(a[1], DG_CLONE_ARGS);

		if (!dg_readable(a[0], size))
			return false;
		dg_copy(k->args, (const void *)a[0], size);
		k->flags = k->args[DG_CLONE_FLAGS] | k->args[DG_CLONE_SIGNAL];
		if (k->args[DG_CLONE_STACK])
			k->stack = k->args[DG_CLONE_STACK] + k->args[DG_CLONE_STACK_SIZE];
		return true;
	}
	if (c->nr == SYS_clone) {
		k->flags = a[0];
		k->stack = a[1];
		k->args[DG_CLONE_PARENT_TID] = k->args[DG_CLONE_PIDFD] = a[2];
		k->args[DG_CLONE_CHILD_TID] = a[3];
		k->args[DG_CLONE_TLS] = a[4];
		return true;
	}
	/* A child of vfork would have the engine's stack in common with its parent.
	 * It has to do nothing but to exec, so it may as well have its own. */
	k->flags = SIGCHLD | (c->nr == SYS_vfork ? CLONE_VFORK : 0);
	return true;
}

static uint64_t dg_parent_tid(const struct dg_clone *k)
{
	return k->flags & CLONE_PARENT_SETTID ? k->args[DG_CLONE_PARENT_TID] : 0;
}

/* ---- children with memory of their own ---- */

static long dg_fork_make(const struct dg_call *c, struct dg_clone *k)
{
	uint64_t flags = k->flags & ~(uint64_t)CLONE_VM;

	if (c->nr == SYS_clone3) {
		k->args[DG_CLONE_STACK] = k->args[DG_CLONE_STACK_SIZE] = 0;
		return dg_sys2(SYS_clone3, k->args, dg_least(c->args[1], DG_CLONE_ARGS));
	}
	return dg_sys(SYS_clone, (long)flags, 0, (long)k->args[DG_CLONE_PARENT_TID], (long)k->args[DG_CLONE_CHILD_TID],
		      (long)k->args[DG_CLONE_TLS], 0);
}

static void dg_fork_event(const struct dg_call *c, const struct dg_clone *k, uint64_t ticket, long result)
{
	struct dg_event *e = dg_event_begin(DG_EV_FORK, 0, c->site, 1, 2 * DG_PAYLOAD_ROOM(4));

	if (!e)
		return;
	dg_event_args(e)[0] = k->flags;
	e->ticket = ticket;
	if (result > 0 && dg_parent_tid(k))
		dg_event_payload(e, DG_PAYLOAD_OUT, dg_parent_tid(k), (const void *)dg_parent_tid(k), 4);
	if (result > 0 && k->flags & CLONE_PIDFD)
		dg_event_payload(e, DG_PAYLOAD_OUT, k->args[DG_CLONE_PIDFD], (const void *)k->args[DG_CLONE_PIDFD], 4);
	e->result = result;
	dg_event_commit(e);
}

/* In the recordings of both, once. */
static void dg_fork_limit(const struct dg_call *c, bool *told)
{
	if (!dg_memory_shared || *told)
		return;
	*told = true;
	dg_limit(DG_LIMIT_SHARED, c->site, "shared anonymous memory: what other processes write there is not recorded", NULL);
}

static const struct dg_event *dg_fork_await(const struct dg_call *c, const struct dg_clone *k)
{
	const struct dg_event *e;

	dg_limits_pass();
	e = dg_event_await(DG_EV_FORK, 0);
	dg_event_take(e, DG_EV_FORK, 0, c->site, &k->flags, 1);
	return e;
}

static void dg_fork_child(struct dg_frame *f, const struct dg_call *c, const struct dg_clone *k)
{
	const struct dg_event *e;

	dg_memory_word = 0; /* whoever had it did not come along */
	dg_thread_forked();
	dg_signal_forked(dg_me);
	f->rax = 0;
	if (k->stack)
		f->rsp = k->stack;
	if (!dg_engine_forked(k->flags & CLONE_FILES))
		return;
	if (DG_CONTROL->mode == DG_MODE_RECORD) {
		dg_fork_event(c, k, 0, 0);
		dg_fork_limit(c, &(bool){ false });
		return;
	}
	e = dg_fork_await(c, k);
	if (e->result)
		dg_diverge(DG_DIFFERS_KIND, e, 0, (uint64_t)e->result, 0);
	dg_limits_pass();
}

/* The parent of a vfork would wait for a child that is to be traced. */
static void dg_fork_replay(struct dg_frame *f, const struct dg_call *c, const struct dg_clone *k)
{
	const struct dg_event *e = dg_fork_await(c, k);
	bool real = DG_CONTROL->fork_thread == dg_me->index && DG_CONTROL->fork_at == dg_me->ordinal;
	struct dg_clone alone = *k;

	f->rax = (uint64_t)e->result;
	if (real) {
		alone.flags &= ~(uint64_t)CLONE_VFORK;
		alone.args[DG_CLONE_FLAGS] &= ~(uint64_t)CLONE_VFORK;
		if (!dg_fork_make(c, &alone)) {
			dg_fork_child(f, c, k); /* which compares k with the log */
			return;
		}
	}
	dg_payload_write(e);
}

static void dg_fork(struct dg_frame *f, const struct dg_call *c, struct dg_clone *k)
{
	static bool told;
	uint64_t ticket;
	long result;

	if (DG_CONTROL->mode == DG_MODE_REPLAY) {
		dg_fork_replay(f, c, k);
		return;
	}
	dg_fork_limit(c, &told);
	ticket = dg_ticket();
	result = dg_fork_make(c, k);
	if (!result) {
		dg_fork_child(f, c, k);
		return;
	}
	dg_fork_event(c, k, ticket, result);
	f->rax = (uint64_t)result;
}

/* ---- children that borrow their parent's memory ---- */

/* Where such a child leaves traces: its parent's stack, of which it has
 * structures, and the thread's own variables, errno above all. Copies of them
 * lie in a window of the engine's. The parent's thread pointer is the child's. */
#define DG_BORROWED_STACK 8192u
#define DG_BORROWED_BELOW 4096u /* of the thread pointer: variables */
#define DG_BORROWED_ABOVE 2304u /* the thread control block */
#define DG_BORROWED_RANGES 3u   /* stack, around the thread pointer, errno */

struct dg_borrowed {
	uint64_t flags, nr, pid, ticket;
	struct {
		uint64_t address, length;
	} range[DG_BORROWED_RANGES];
	uint8_t bytes[DG_BORROWED_STACK + DG_BORROWED_BELOW + DG_BORROWED_ABOVE + 8];
};
_Static_assert(sizeof(struct dg_borrowed) <= DG_COPY_WINDOW, "borrowed");

static struct dg_borrowed *dg_borrowed_window(void)
{
	return (struct dg_borrowed *)dg_copy_window(dg_me);
}

/* libc's, and the bytes around the thread pointer as far as they are mapped. */
static void dg_borrowed_variables(struct dg_borrowed *b)
{
	uint64_t tp = (uint64_t)__builtin_thread_pointer(), page = tp & ~(DG_PAGE_BYTES - 1);
	uint64_t low = (tp - DG_BORROWED_BELOW) & ~7ull, high = (tp + DG_BORROWED_ABOVE) & ~7ull;
	uint64_t at = (uint64_t)__errno_location() & ~7ull;

	if (!dg_readable(low, page - low))
		low = page;
	if (high > page + DG_PAGE_BYTES && !dg_readable(high - 8, 8))
		high = page + DG_PAGE_BYTES;
	b->range[1].address = low;
	b->range[1].length = high - low;
	b->range[2].address = at;
	b->range[2].length = at >= low && at < high ? 0 : 8;
}

static bool dg_borrowed_save(const struct dg_frame *f, const struct dg_clone *k, long nr)
{
	struct dg_borrowed *b = dg_borrowed_window();
	uint64_t stack = f->rsp, high = dg_me->stack_high, at = 0;

	if (dg_sys(SYS_mmap, (long)b, sizeof(*b), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
	    (long)b)
		return false;
	b->flags = k->flags;
	b->nr = (uint64_t)nr;
	b->pid = (uint64_t)dg_sys0(SYS_getpid);
	b->ticket = dg_ticket();
	b->range[0].address = stack;
	b->range[0].length = stack < high ? dg_least(DG_BORROWED_STACK, high - stack) & ~7ull : 0;
	dg_borrowed_variables(b);
	for (uint32_t i = 0; i < DG_BORROWED_RANGES; i++) {
		dg_copy(b->bytes + at, (const void *)b->range[i].address, b->range[i].length);
		at += b->range[i].length;
	}
	return true;
}

/* Runs of words that changed. */
static void dg_borrowed_changes(const struct dg_borrowed *b, struct dg_pieces *s)
{
	const uint64_t *before = (const uint64_t *)(const void *)b->bytes;

	s->count = 0;
	s->out = true;
	for (uint32_t i = 0; i < DG_BORROWED_RANGES; i++) {
		const uint64_t *now = (const uint64_t *)b->range[i].address;
		uint64_t words = b->range[i].length / 8;

		for (uint64_t w = 0; w < words; w++) {
			uint64_t from = w;

			while (w < words && now[w] != before[w])
				w++;
			if (w > from)
				dg_piece_out(s, (uint64_t)(now + from), (w - from) * 8);
		}
		before += words;
	}
}

static void dg_borrowed_end(struct dg_frame *f, const struct dg_call *c, long result)
{
	struct dg_borrowed *b = dg_borrowed_window();
	struct dg_pieces s;
	struct dg_event *e;
	uint32_t many;

	dg_borrowed_changes(b, &s);
	many = s.count < DG_PAYLOADS_MOST ? s.count : DG_PAYLOADS_MOST;
	e = dg_event_begin(DG_EV_FORK, 0, c->site, 1, dg_pieces_room(&s, 0, many));
	if (e) {
		dg_event_args(e)[0] = b->flags;
		e->ticket = b->ticket;
		dg_pieces_log(e, &s, 0, many);
		e->result = result;
		dg_event_commit(e);
	}
	dg_sys2(SYS_munmap, b, sizeof(*b));
	dg_turns_borrowed();
	f->rax = (uint64_t)result;
}

/* ---- the stub of __clone and __clone3 ---- */

/* What the stub's instruction is about to make; 0: nothing that the engine
 * hears of. */
enum { DG_CLONING_NOTHING = 0, DG_CLONING_THREAD = 1, DG_CLONING_BORROWER = 2 };

static void dg_clone_before(struct dg_frame *f, struct dg_call *c, const struct dg_stub *stub)
{
	struct dg_rthread *me = dg_me;
	struct dg_clone k;
	const struct dg_event *e;
	long refused;

	me->cloning = DG_CLONING_NOTHING;
	me->cloning_nr = (uint32_t)c->nr;
	if (!dg_clone_of(c, &k))
		return; /* the kernel reports the error */
	if (k.flags & CLONE_THREAD) {
		refused = dg_thread_cloning(k.flags, k.args[DG_CLONE_TLS], c->site);
		me->cloning = DG_CLONING_THREAD;
		if (refused) {
			f->rax = (uint64_t)refused;
			f->rip = stub->skip;
		}
		return;
	}
	if (!(k.flags & CLONE_VM)) {
		f->rip = stub->skip;
		dg_fork(f, c, &k);
		return;
	}
	if (DG_CONTROL->mode == DG_MODE_REPLAY) {
		f->rip = stub->skip;
		e = dg_fork_await(c, &k);
		dg_payload_write(e);
		f->rax = (uint64_t)e->result;
		return;
	}
	dg_counter_unless_traced();
	if (!dg_borrowed_save(f, &k, c->nr))
		return;
	me->cloning = DG_CLONING_BORROWER;
	me->raw++;
}

static void dg_clone_after(struct dg_frame *f, struct dg_call *c)
{
	struct dg_rthread *me = dg_me;
	uint32_t cloning = me->cloning;
	long result = (long)f->rax;
	struct dg_clone k;

	c->nr = me->cloning_nr;
	c->row = dg_rows + c->nr;
	/* A borrower that has a borrower of its own comes here, too. */
	if (me->raw && (cloning != DG_CLONING_BORROWER || dg_sys0(SYS_getpid) != (long)dg_borrowed_window()->pid))
		return;
	me->cloning = DG_CLONING_NOTHING;
	if (cloning == DG_CLONING_BORROWER) {
		me->raw--;
		dg_borrowed_end(f, c, result);
	} else if (cloning == DG_CLONING_THREAD && dg_clone_of(c, &k)) {
		f->rax = (uint64_t)dg_thread_cloned(result, dg_parent_tid(&k), c->site);
	}
}

/* In the stub flags come from the kernel's result, which is another in each run, and a replay makes no call for a borrower. The program
 * would have them in r11, by which the end of a turn is found. */
static void dg_clone_stub(struct dg_frame *f, struct dg_call *c, const struct dg_stub *stub)
{
	f->rflags &= ~DG_ARITHMETIC_FLAGS;
	if (stub->kind == DG_STUB_AFTER)
		dg_clone_after(f, c);
	else
		dg_clone_before(f, c, stub);
}

/* ---- ends ---- */

static void dg_exit_group(const struct dg_call *c)
{
	struct dg_event *e;
	const struct dg_event *logged;

	if (DG_CONTROL->mode == DG_MODE_RECORD) {
		e = dg_event_begin(DG_EV_END, 0, c->site, 0, 0);
		if (e) {
			e->result = (int64_t)c->args[0];
			dg_event_commit(e);
		}
	} else {
		logged = dg_event_await(DG_EV_END, 0);
		/* What others had still to do, they do now or never. */
		while (dg_turn_catch_up(0))
			;
		dg_event_take(logged, DG_EV_END, 0, c->site, NULL, 0);
		if (logged->result != (int64_t)c->args[0])
			dg_diverge(DG_DIFFERS_ARGUMENT, logged, 0, (uint64_t)logged->result, c->args[0]);
	}
	dg_trap(DG_TRAP_EXIT, c->args[0], 0);
	for (;;)
		dg_sys1(SYS_exit_group, c->args[0]);
}

/* If it succeeds, the recording of this program image ends with the event; if
 * not, the call's own event follows. */
static void dg_execute(struct dg_frame *f, const struct dg_call *c)
{
	uint64_t path = c->args[c->nr == SYS_execveat ? 1 : 0], length = 0;
	const struct dg_event *logged;
	struct dg_event *e;

	while (length < DG_PATH_MOST && ((length && (path + length) & 4095) || dg_readable(path + length, 1)) &&
	       ((const char *)path)[length])
		length++;
	if (DG_CONTROL->mode == DG_MODE_REPLAY) {
		logged = dg_event_await(DG_EV_EXEC, 0);
		dg_event_take(logged, DG_EV_EXEC, 0, c->site, c->args, 0);
		dg_call_replay(f, c);
		return;
	}
	dg_counter_unless_traced();
	e = dg_event_begin(DG_EV_EXEC, 0, c->site, 0, DG_PAYLOAD_ROOM(length));
	if (e) {
		dg_event_payload(e, DG_PAYLOAD_TEXT, path, (const void *)path, (uint32_t)length);
		dg_event_commit(e);
	}
	dg_call_record(f, c);
}

static void dg_thread_call(struct dg_frame *f, const struct dg_call *c)
{
	struct dg_clone k;

	switch (c->nr) {
	case SYS_exit:
		dg_thread_exit(f, c->site);
	case SYS_exit_group:
		dg_exit_group(c);
		return;
	case SYS_execve:
	case SYS_execveat:
		dg_execute(f, c);
		return;
	}
	if (!dg_clone_of(c, &k)) {
		dg_call_answer(f, c, -EFAULT);
		return;
	}
	/* Only a stub that executes the instruction itself can give a child that
	 * shares memory a stack of its own. glibc's are known; others are not. */
	if (k.flags & CLONE_VM && !(k.flags & CLONE_VFORK && !k.stack)) {
		if (DG_CONTROL->mode == DG_MODE_RECORD)
			dg_limit(DG_LIMIT_SITE, c->site, "a thread made past libc is refused", c);
		dg_call_refuse(f, c, -ENOSYS);
		return;
	}
	k.args[DG_CLONE_FLAGS] &= ~(uint64_t)CLONE_VM;
	dg_fork(f, c, &k);
}
