/* What the parts of the engine, which records and replays, know of each other
 * and of the wrappers.
 *
 * The recording library has two translation units in C. agent.c and the
 * wrap_*.c run on the program's stack, as libc's functions would. engine.c and
 * its parts run on a stack of the engine's own, entered through engine/entry.S only,
 * and use general registers only (-mgeneral-regs-only), for whoever makes a
 * system call expects its vector registers to stay. So the program's stack and
 * registers are the same in a recording and in a replay, although different
 * code runs in between.
 *
 * Nothing in the engine calls libc. Its own system calls are dg_sys (syscall.h).
 */
#ifndef DG_ENGINE_H
#define DG_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

#define DG_HIDDEN __attribute__((visibility("hidden")))

/* The calling thread's; NULL before the engine knows the thread. Defined in
 * engine.c. */
extern __thread struct dg_rthread *dg_me DG_HIDDEN __attribute__((tls_model("initial-exec")));

#define DG_CONTROL ((struct dg_control *)DG_ENGINE_CONTROL)

/* enum dg_mode. 0 also while the engine has not started: then every wrapper
 * calls the real function. */
extern uint32_t dg_mode DG_HIDDEN;

/* Not 0: a thread that wakes others enters the engine for that (wrap/mutex.c), as no thread
 * sleeps in the kernel where one thread runs at a time: in replays, and in
 * recordings that hunt. */
extern uint32_t dg_wakes_here DG_HIDDEN;

/* More threads than one, as far as the calling thread's events tell: what libc
 * serialises by locks of its own is an event then. */
extern uint32_t dg_many DG_HIDDEN;

/* Where a thread's memory of stacks is, once it allocates: paths.c. */
static inline uint64_t dg_paths_own(uint32_t index)
{
	return DG_ENGINE_PATHS + (uint64_t)index * DG_PATHS_SLOT;
}

/* ---- engine/entry.S ---- */

/* Runs operation op (enum dg_op) on the engine's stack: dg_call_table[op](frame).
 * The operation's arguments are frame->rsi, rdx, rcx, r8, r9 in C's order
 * after op; its result is frame->rax. `site` of events is the return address
 * of whoever called the exported function: pass it as an argument where the
 * wrapper did not tail-call. */
long dg_engine(long op, long a, long b, long c, long d, long e) DG_HIDDEN;

/* ---- the operations of dg_engine; each is `static void dg_op_NAME(struct dg_frame *f)` ---- */
enum dg_op {
	DG_OP_MUTEX_LOCK, DG_OP_RWLOCK, DG_OP_SPIN, DG_OP_COND_WAIT, DG_OP_SEM, DG_OP_BARRIER, DG_OP_ONCE, DG_OP_GUARD,
	DG_OP_REAL,          /* an event around a call of the real function: wrap/real.c */
	DG_OP_ORDER_BEGIN, DG_OP_ORDER_END, /* calls that libc serialises */
	DG_OP_HEAP,          /* one of the agent's own locks was taken (recording), is wanted (replay) */
	DG_OP_VALUE,         /* a call whose result alone counts */
	DG_OP_CREATE_BEGIN, DG_OP_CREATE_END, DG_OP_THREAD_START, DG_OP_JOIN_BEGIN, DG_OP_JOIN_END, DG_OP_DETACH, DG_OP_CANCEL,
	DG_OP_YIELD,         /* replay: for what another thread holds that no event orders */
	DG_OP_ORDER_WAIT, DG_OP_ORDER_WAKE, /* recording: for a lock of libc's */
	DG_OP_OBJECTS,       /* dlopen loaded something */
	DG_OP_START,         /* the engine's own */
	DG_OP_RELEASED,      /* replay: a mutex was given back */
	DG_OPS
};

/* The budget of mutexes (dg_rthread.budget) where nothing limits it. */
#define DG_BUDGET (1ull << 62)
/* The same of points of the code (dg_rthread.points). */
#define DG_POINTS (1ull << 62)

#ifdef DG_ENGINE_UNIT /* what only the engine's parts have */

/* Called by engine/entry.S at a point of the code, when dg_rthread.points is used up. The
 * frame has all that the program has, which it gets back, and the point's address
 * as its origin. */
void dg_point_entered(struct dg_frame *f) DG_HIDDEN;

/* ---- engine/atomic.c ---- */
struct dg_area;
struct dg_ucontext;
static void dg_atomic_patches(struct dg_area *a, const struct dg_site_patch *p, uint32_t count);
static uint32_t dg_atomic_line(uint32_t index);
static void dg_atomic_forked(void);
/* A signal is given back: a thread at the point of an instruction continues in its stub. At the
 * instruction's own address it would arrive once more if another thread gets the signal, and a
 * replay arrives once. */
static void dg_point_give_back(const struct dg_frame *f, struct dg_ucontext *uc);
/* The instruction that a thread executes has failed: its line is not to stay locked. */
static void dg_atomic_failed(const struct dg_rthread *me);
/* Where a handler returns to, for an address of the program that a jump to a stub has replaced. */
static uint64_t dg_atomic_way(uint64_t pc);

/* ---- engine/log.c: recording ---- */

/* What a payload takes. */
#define DG_PAYLOAD_ROOM(length) (sizeof(struct dg_payload) + (((uint64_t)(length) + 7) & ~7ull))

/* Room for an event of at most so many payload bytes (the sum of their
 * DG_PAYLOAD_ROOM) after args arguments; the header is filled but for ticket, result
 * and length. NULL: recording has stopped (no room on disk); continue without. */
static struct dg_event *dg_event_begin(enum dg_kind kind, uint64_t object, uint64_t site, uint32_t args, uint64_t payload_bytes);
static uint64_t *dg_event_args(struct dg_event *e);
/* Appends a payload to an event that was begun and has no ticket yet; data may
 * be NULL to leave the bytes to the caller. Returns where the bytes go. */
static void *dg_event_payload(struct dg_event *e, enum dg_payload_kind kind, uint64_t address, const void *data, uint32_t length);
/* Takes a ticket unless the event has one, and makes the event part of the log. */
static void dg_event_commit(struct dg_event *e);
static uint64_t dg_ticket(void);

/* ---- engine/image.c, engine/turn.c: replay ---- */

/* The next event of the calling thread in the log, without waiting; NULL: none. */
static const struct dg_event *dg_event_peek(void);
/* The same, after futex calls, to which a replay may not come. */
static const struct dg_event *dg_event_hard(void);
/* Passes the right to run to whom the schedule says and waits until the calling
 * thread's next event is the next of all. Returns it; the caller checks and
 * consumes it. Never returns if the log has no further event of this thread:
 * then the thread stays where it is, as it did when the recording ended. */
static const struct dg_event *dg_event_await(enum dg_kind kind, uint64_t object);
/* Compares kind, object, site, skipped, args; a difference is a divergence
 * and does not return. Then consumes the event: it counts as done. */
static void dg_event_take(const struct dg_event *logged, enum dg_kind kind, uint64_t object, uint64_t site,
			  const uint64_t *args, uint32_t count);
static const uint64_t *dg_logged_args(const struct dg_event *e);
static const struct dg_payload *dg_logged_payload(const struct dg_event *e, uint32_t i); /* NULL: no such */
static const void *dg_payload_bytes(const struct dg_payload *p);
static void dg_payload_write(const struct dg_event *e); /* writes every DG_PAYLOAD_OUT to its address */
__attribute__((noreturn)) static void dg_diverge(enum dg_reason reason, const struct dg_event *expected, uint64_t place,
						 uint64_t want, uint64_t got);
/* Gives the right to run away without an event, for a thread that cannot continue
 * before others did something that the log does not order (a futex). Returns when
 * it has the right again; the caller looks and may call again. */
static void dg_turn_yield(enum dg_kind kind, uint64_t object);
/* Another thread that waits in dg_turn_yield, each in its turn; 0: none. */
static uint32_t dg_turn_other(uint32_t me);
/* engine/lazy.c. For a thread whose event is the next of all (dg_event_await) and
 * cannot be yet: another runs on to its next event, first of all `whoever` (0:
 * no thread in particular). False: no thread is left, or this replay is not lazy, where
 * no thread lags. Events must be taken after that, not before. */
static bool dg_turn_catch_up(uint32_t whoever);
static bool dg_turn_owes(uint32_t index); /* was the last to have a mutex, and may have had it more often */
static uint32_t dg_turn_thread(uint32_t tid); /* the thread with this id if it lags (has yet to run to its next event); 0: none */
static uint32_t dg_turn_comes_to(enum dg_kind kind, uint64_t object); /* the lagging thread whose next event this is */
/* The program continues: every way out of the engine, except where the thread ends. */
static void dg_turn_leave(void);
/* After a thread's DG_EV_EXIT: gives the right to run away for ever, and
 * returns. */
static void dg_turn_end(void);
/* Where the tracer sends a thread (control.park_pc) that is where the
 * recording has it at its end, a fault or the middle of a computation: gives
 * the right to run away and waits for ever, as dg_event_await does for a thread
 * without a further event. The tracer has set rsp as at a function's entry,
 * and rdi says what for (enum dg_parked). */
__attribute__((noreturn)) static void dg_park(void);

/* ---- engine/point.c: replay ---- */
static const struct dg_event *dg_point_of(const struct dg_event *e);
static void dg_point_count(struct dg_rthread *me);  /* me->points, by the thread's next event */
static void dg_point_hold(struct dg_rthread *me);   /* takes the points right after the event before */
static void dg_point_before(struct dg_rthread *me); /* the thread reaches an event */
static bool dg_point_leave(struct dg_rthread *me);  /* true: the program continues to a point */
static void dg_point_upcoming(struct dg_rthread *me);
__attribute__((noreturn)) static void dg_point_here(void);

/* ---- engine/start.c ---- */
static long dg_trap(enum dg_trap what, uint64_t a, uint64_t b); /* 0 without a tracer */
static struct dg_rthread *dg_rthread_new(uint32_t index); /* maps its slot; NULL: ENOMEM */
static struct dg_rthread *dg_rthread_number(uint32_t index);
static void dg_rthread_events(struct dg_rthread *t); /* replay: a new thread's events, before its first dg_event_await */
static void dg_tcb_write(uint32_t tid); /* replay: gives the calling thread's control block the recorded tid */
/* In a fork's child, on the engine's stack: a recording (or an image) of its
 * own. False: it continues without, dg_mode being DG_MODE_OFF. */
static bool dg_engine_forked(bool shares);
/* engine/patch.c: patches control.patches from patches_done to patch_count. */
static void dg_patch_sites(void);
bool dg_turn_may_end(void) DG_HIDDEN; /* wrap/turn.c: whether code of libc's is the program's, as far as the calling thread is concerned */
void dg_identify(void) DG_HIDDEN; /* wrap/start.c: gives the heap the recorded pid and tid */
void dg_engine_start(void) DG_HIDDEN; /* the first constructor (-z initfirst); sets dg_mode and dg_me */

/* ---- engine/thread.c ---- */

/* Around a clone with CLONE_THREAD, in its stub, before and after the
 * instruction. dg_thread_cloning makes the thread known to the engine, in the
 * child's dg_me, too (tls: its thread pointer), and returns 0, or the negative
 * errno that the call shall have without being made. dg_thread_cloned returns what
 * the program shall see; parent_tid: where the kernel stored the tid, or 0. */
static long dg_thread_cloning(uint64_t flags, uint64_t tls, uint64_t site);
static long dg_thread_cloned(long result, uint64_t parent_tid, uint64_t site);
/* Whether the calling thread is about to make the clone of a thread that others
 * know of already. */
static bool dg_thread_creates(void);
/* The first entry of a thread, whatever it comes for: dg_me->state is
 * DG_R_STARTING. Writes DG_EV_START; a replay waits here for the first turn. */
static void dg_thread_start(void);
/* The system call exit, with f as it came. */
__attribute__((noreturn)) static void dg_thread_exit(struct dg_frame *f, uint64_t site);
/* In a fork's child: of all threads, only dg_me is left. */
static void dg_thread_forked(void);
/* Before a system call that may block: others may go where this thread kept
 * them from going until it came here. */
static void dg_gates_open(void);

/* ---- engine/signal.c ---- */

/* Called by engine/entry.S before the engine is left if dg_me->pending: arranges that the
 * program gets the signal at frame's place before its next instruction. */
void dg_leave(struct dg_frame *f) DG_HIDDEN;
/* For operations that block: whether a signal waits for this thread. After
 * EINTR: commit an event with DG_EVENT_INTERRUPTED (replay: the log has it) and
 * call dg_again, then return: engine/entry.S delivers the signal and the program's
 * call is made once more. */
static bool dg_interrupted(void);
static void dg_again(struct dg_frame *f);
/* Replay: at the end of dg_event_take; if the thread waits before it continues, at
 * the end of that, too. What comes next for this thread may be a
 * signal: then dg_leave has one to deliver, or the controller is asked to place it. */
static void dg_signal_upcoming(void);
/* Replay: whether the controller places a signal before the thread's next event. */
static bool dg_signal_comes(void);
/* Replay: e is a thread's next event after a futex call that it did not make. If it
 * is a signal that came there, the thread leaves the engine with it. */
static void dg_signal_passed(const struct dg_event *e);
/* Once, in the main thread, before anything else of the process runs. */
static void dg_signal_start(struct dg_rthread *me);
/* In every other thread, before its first event: the kernel's signal frames go to
 * the thread's slot from now on. me->mask is what its creator blocked, the
 * program's stack is known, me->state is no more DG_R_STARTING. */
static void dg_signal_thread_start(struct dg_rthread *me);
/* Before its last event. */
static void dg_signal_thread_end(struct dg_rthread *me);
/* In a fork's child: the signals kept are the parent's. */
static void dg_signal_forked(struct dg_rthread *me);
/* The calls of class DG_CALL_SIGNAL: rt_sigaction, rt_sigprocmask, sigaltstack,
 * rt_sigsuspend, pause; makes, logs and replays them. The ticket of a call that
 * sends a signal (kill, tgkill, tkill, rt_sigqueueinfo, rt_tgsigqueueinfo) must
 * be taken before it is made: the handler sees everything done before. */
struct dg_call;
static void dg_signal_call(struct dg_frame *f, const struct dg_call *c);

/* ---- engine/syscall.c, engine/patch.c: how a system call comes here ----
 *
 * A patched site jumps to a stub. The kernel destroys rcx and r11 in any case,
 * so the stub needs no memory of the program and no stack:
 *
 *	moved instructions from before the call
 *	origin:	lea  info(%rip), %rcx
 *		jmp  *dg_entry_syscall
 *	go:	moved instructions from after it; jmp back
 *	info:	struct dg_stub
 *
 * engine/entry.S: dg_entry_syscall may use r11 (dg_me), saves everything into a frame
 * on the engine's stack, rcx (the address of info) as f->rcx, kind
 * DG_ENTRY_SYSCALL; calls dg_system_call(f), which sets rip (info->go), origin,
 * again_*, rax, rcx and r11; and leaves to f->rip with rcx = f->rip. With dg_me
 * NULL, or dg_mode 0, it executes the instruction itself: lea -128(%rsp),%rsp;
 * push %rcx; syscall; pop %rcx; lea 128(%rsp),%rsp; jmp *(%rcx).
 *
 * At control.insn_pc the tracer has set rcx to the address of the ud2: the same,
 * with kind DG_ENTRY_INSN; dg_system_call finds the site. Without dg_me:
 * continues at rcx + 2.
 *
 * A stub of DG_PATCH_CLONE enters twice, with infos of kind DG_STUB_BEFORE
 * (whose go is the instruction in the stub, or skip if it shall not be executed)
 * and DG_STUB_AFTER (rax is the kernel's result). A child (rax 0) does not make
 * the second: it may share the engine's stack with its parent. Without dg_me
 * the stub's entry with kind DG_STUB_BEFORE or DG_STUB_AFTER only continues at
 * info->go. */
enum dg_stub_kind { DG_STUB_CALL = 0, DG_STUB_BEFORE = 1, DG_STUB_AFTER = 2 };

struct dg_stub {
	uint64_t go;     /* where the program continues */
	uint64_t resume; /* address after the instruction in the program's text: the site of events */
	uint64_t origin; /* what makes the call again */
	uint64_t skip;   /* DG_STUB_BEFORE: after the instruction */
	uint64_t kind;   /* enum dg_stub_kind */
};

void dg_system_call(struct dg_frame *f) DG_HIDDEN; /* called by engine/entry.S */

/* The one place where the engine makes system calls that the program asked for
 * and that may block. Returns DG_NOT_MADE without having made it if a signal
 * waits for this thread (dg_interrupted). A handler that finds the thread's pc
 * in [dg_blocking_low, dg_blocking_insn] (before it, or sent back to it by the
 * kernel to make it again: SA_RESTART) keeps the siginfo and sets pc =
 * dg_blocking_done and rax = DG_NOT_MADE: the call is made again after the
 * program's handler ran. Elsewhere the kernel's -EINTR stands. */
#define DG_NOT_MADE (-512l)
long dg_blocking(long nr, const uint64_t args[6], const uint32_t *pending) DG_HIDDEN;
extern const char dg_blocking_low[] DG_HIDDEN, dg_blocking_insn[] DG_HIDDEN, dg_blocking_done[] DG_HIDDEN;

/* ---- small things ---- */

#define DG_ARITHMETIC_FLAGS 0x8d5ull /* of rflags: CF, PF, AF, ZF, SF, OF */
static uint64_t dg_digest(const void *bytes, uint64_t length, uint64_t seed); /* fast, not cryptographic; Go has the same */
static void dg_copy(void *to, const void *from, uint64_t length);             /* rep movsb */
static bool dg_readable(uint64_t address, uint64_t length);                   /* by process_vm_readv on itself where it is in doubt */

/* ---- engine/counter.c ---- */

static void dg_counter_start(void); /* once, when the process's first patches are made */
/* There is code whose rdtsc does not reach the engine by itself. */
static void dg_counter_trap(void);
/* In any thread, when it passes: traps for it as for the others. */
static void dg_counter_follow(void);

#endif

#endif
