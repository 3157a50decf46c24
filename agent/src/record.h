/* What a recording consists of, and what the process, while it records or is
 * replayed, shares with the tracer outside of it. agent/reclayout.go mirrors this
 * file and a test compares both.
 *
 * A log file is a page of struct dg_log_header, then extents, which tile the
 * file in steps of DG_EXTENT bytes. An extent belongs to one thread and holds
 * whole events, one after the other; an event with length 0 ends it. Extents
 * of a thread follow each other by their sequence; of two with the same one the
 * one at the lower offset counts (engine/log.c). An event's length is stored
 * last, so whatever kills the process leaves a log that ends between events.
 *
 * Every event has a ticket, from one counter of the process. For whatever
 * several threads order among themselves (a lock, memory, a file descriptor)
 * the ticket is taken while the thread has it, so tickets give one total order
 * that agrees with what happened. (The time-stamp counter would do as well and
 * costs more where it is virtualised; and it must trap, for programs read it.)
 */
#ifndef DG_RECORD_H
#define DG_RECORD_H

#include <stddef.h>
#include <stdint.h>

#define DG_RECORD_MAGIC 0x64726f6365726764ull /* "dgrecord" in memory order */
#define DG_RECORD_VERSION 3u

/* The engine's own range. It is outside of what a replay is compared by. */
#define DG_ENGINE_BASE 0x21a000000000ull /* DG_BASE + 0x1a000000000 */
#define DG_ENGINE_CONTROL (DG_ENGINE_BASE)
#define DG_ENGINE_HUNT (DG_ENGINE_BASE + 0x0000400000ull)    /* struct dg_hunt, if the tracer made one */
#define DG_ENGINE_SITES (DG_ENGINE_BASE + 0x0001000000ull)   /* patch table: struct dg_site_patch[] */
#define DG_ENGINE_ATOMICS (DG_ENGINE_BASE + 0x0070000000ull) /* struct dg_atomics, if atomic instructions are patched */
#define DG_ENGINE_SYNC (DG_ENGINE_BASE + 0x0080000000ull)    /* which thread waits for which variable: see sync.h */
#define DG_ENGINE_THREADS (DG_ENGINE_BASE + 0x0100000000ull) /* one slot a thread, DG_THREAD_SLOT bytes each */
#define DG_ENGINE_PATHS (DG_ENGINE_BASE + 0x0200000000ull)   /* one slot a thread, DG_PATHS_SLOT bytes each: paths.c */
#define DG_ENGINE_LOG (DG_ENGINE_BASE + 0x1000000000ull)     /* recording: an extent is mapped at its offset in the file */
#define DG_ENGINE_IMAGE (DG_ENGINE_BASE + 0x2000000000ull)   /* replay: the image, see dg_replay_header; recording: engine/window.c */
#define DG_ENGINE_STACKS (DG_ENGINE_BASE + 0x3000000000ull) /* stacks of the program's threads: these are compared */
#define DG_ENGINE_END (DG_ENGINE_BASE + 0x6000000000ull)     /* = DG_BASE + DG_STEP */

#define DG_THREAD_SLOT 65536u /* struct dg_rthread at its start; the engine's stack grows down from its end */
#define DG_SIGNAL_STACK_AT 4096u /* in the slot: where the kernel's signal frames go, whatever the thread does */
#define DG_SIGNAL_STACK 16384u
#define DG_RTHREADS (1u << 16)
#define DG_PATHS_SLOT 0xe0000u
#define DG_EXTENT 65536u      /* extents start at multiples of it in the log; the first at DG_EXTENT */
#define DG_STACK_SLOT 0x1000000ull /* a program thread's stack is in slots of 16 MiB, guard included */

enum dg_mode { DG_MODE_OFF = 0, DG_MODE_RECORD = 1, DG_MODE_REPLAY = 2 };

struct dg_log_header {
	uint64_t magic;
	uint32_t version;
	uint32_t pid;
	uint64_t reserved[6];
};

struct dg_extent {
	uint64_t magic;    /* DG_EXTENT_MAGIC, stored last */
	uint32_t thread;   /* its index */
	uint32_t sequence; /* 0, 1, 2, ... of this thread */
	uint64_t size;     /* bytes with this header, a multiple of DG_EXTENT */
	uint64_t reserved;
};
#define DG_EXTENT_MAGIC 0x746e657478656764ull /* "dgextent" */
#define DG_EXTENT_IDLE 0x656c646978656764ull  /* "dgexidle": so many bytes that are none at the moment */

/* What an event's object, result and arguments are is said at its kind.
 * "at" events have no further meaning than their place in the order. */
enum dg_kind {
	DG_EV_NONE = 0,
	/* Threads. object: index of the thread concerned */
	DG_EV_START = 1,  /* first of every thread; args: parent, tid, thread pointer, stack low, stack high */
	DG_EV_EXIT = 2,   /* last of a thread that ended; object: own index */
	/* From before the creation; result: EAGAIN if there is no index or no stack to be had. args: stack low, stack high,
	 * start routine, enum dg_creation_flag, then the indices of ended threads whose stacks come free with it */
	DG_EV_CREATE = 3,
	DG_EV_JOIN = 4,   /* result: errno; args: what it asks, see thread.h */
	DG_EV_DETACH = 5, /* result: errno */
	DG_EV_CREATED = 6, /* the clone of DG_EV_CREATE's thread; result: errno; args: tid. Its object is the same */
	DG_EV_CANCEL = 7, /* result: errno */
	/* Synchronisation. object: the variable's address; result: what the call
	 * returned; args[0]: operation, see enum dg_sync */
	DG_EV_MUTEX = 8,
	DG_EV_RWLOCK = 9,
	DG_EV_SPIN = 10,
	DG_EV_COND = 11,
	DG_EV_SEM = 12,
	DG_EV_BARRIER = 13,
	DG_EV_ONCE = 14,
	DG_EV_GUARD = 15, /* a C++ static local's */
	DG_EV_HEAP = 16,  /* one of the agent's own locks; object: its level */
	DG_EV_ORDER = 17, /* a library call that libc serialises by itself (stdio, rand, dlopen); object: what it is about */
	DG_EV_VALUE = 18, /* a call whose result alone counts (random_device); payload has what it wrote */
	/* The thread was preempted between two events, and what follows it did later. object: pc, as far as it is known;
	 * args: enum dg_point, count */
	DG_EV_POINT = 19,
	/* The kernel */
	DG_EV_SYSCALL = 24, /* object: number; args: as many as the table has; payloads: what it wrote */
	DG_EV_TSC = 25,     /* result: the counter; args[0]: rdtscp's processor */
	DG_EV_FORK = 26,    /* ticket from before; result: pid; args[0]: clone's flags. In the child: its first event, result 0 */
	DG_EV_EXEC = 27,    /* written before an execve that may succeed; payload: path. If events follow, it failed */
	/* Signals. object: number; payload 0: siginfo_t; args: enum dg_signal_place, pc, digest of registers, of the stack,
	 * of data, bytes of data left out, handler, flags of the action, its mask. Payload 1: DG_PAYLOAD_REGISTERS; and of
	 * DG_SIGNAL_ASYNC payload 2: DG_PAYLOAD_RANGES, then DG_PAYLOAD_WORDS. The digest of registers is of the 18 general ones as the payload has
	 * them, then of xmm0 to xmm15; that of data continues from range to range (the seed is the digest so far, at first 0) */
	DG_EV_SIGNAL = 32,
	DG_EV_SIGNAL_END = 33, /* the handler returned; object: number */
	/* Notes */
	DG_EV_LIMIT = 40, /* something that this recording cannot bring back; object: enum dg_limit; payload: text */
	DG_EV_END = 41,   /* exit_group; result: status */
	DG_KINDS = 42,
};

enum dg_creation_flag {
	DG_CREATE_DETACHED = 1,
	DG_CREATE_OWN_STACK = 2, /* the program gave it a stack */
	DG_CREATE_INTERNAL = 4,  /* by the C library for itself, or by a clone of the program's */
};

enum dg_sync {
	DG_SYNC_LOCK = 1,
	DG_SYNC_TRY = 2,
	DG_SYNC_TIMED = 3,
	DG_SYNC_READ = 4,
	DG_SYNC_TRY_READ = 5,
	DG_SYNC_TIMED_READ = 6,
	DG_SYNC_WAIT = 7,
	DG_SYNC_TIMED_WAIT = 8,
	DG_SYNC_GET = 9,   /* sem_getvalue: result is the value */
	DG_SYNC_INIT = 11, /* once, guard: this thread runs the initialiser */
	DG_SYNC_FOUND = 12, /* the same, where one thread runs at a time: another thread has run it */
	DG_SYNC_REAL = 13, /* glibc's own function did it (robust, priority, shared between processes) */
};

/* Where a preemption is, since the thread's event before. */
enum dg_point {
	DG_POINT_EVENT = 0, /* right after that event, before the program's next instruction; count is 0 */
	DG_POINT_CODE = 1,  /* at the count-th arrival at a point of the code, whichever: dg_rthread.points */
	DG_POINT_PC = 2,    /* at the count-th arrival at pc */
	/* At pc, where the state has the digests: a turn's end. args[2..5]: digest of registers, of the stack, of data, bytes of data left out;
	 * args[6]: digest of the vector registers, as the recorder's tracer has it. Payloads as of DG_SIGNAL_ASYNC, without the first */
	DG_POINT_STATE = 3,
	/* At a patched atomic instruction, before it is executed: the first access after those of another thread to its line. Result: at which
	 * point of the code since the thread's event before; object: the operand's address; site: the instruction's. engine/atomic.c */
	DG_POINT_ATOMIC = 4,
};

/* What a thread is sent to control.park_pc for. */
enum dg_parked {
	DG_PARKED_END = 0,   /* it has ended */
	DG_PARKED_POINT = 1, /* it is at a point of class DG_POINT_PC or DG_POINT_STATE, and asks DG_TRAP_UNPARK after it */
	DG_PARKED_TURN = 2,  /* recording: its turn ends here; rsi: digest of its vector registers. hunt/turns.c */
};

enum dg_signal_place {
	DG_SIGNAL_EVENT = 1, /* right after the event before it, before the program's next instruction */
	DG_SIGNAL_ASYNC = 2, /* at pc, where the state has these digests */
	DG_SIGNAL_FAULT = 3, /* raised by the instruction at pc: comes by itself */
};

enum dg_limit {
	DG_LIMIT_DISK = 1,    /* no room: the recording ends here */
	DG_LIMIT_SYSCALL = 2, /* a call that the table does not have, or not with these arguments */
	DG_LIMIT_SHARED = 3,  /* memory that another process writes */
	DG_LIMIT_SITE = 5,    /* a system call that could not be intercepted */
	DG_LIMIT_PLACE = 6,   /* a signal where no replay finds its place: the recording ends here */
	DG_LIMIT_TRACER = 7,  /* the recorder is gone: the recording ends here */
	DG_LIMIT_START = 8,   /* the engine could not start */
	DG_LIMIT_TRACED = 9,  /* the program traces this process itself: the recording ends here */
	DG_LIMIT_FILES = 10,  /* the process's limit on the size of files (RLIMIT_FSIZE): the recording ends here */
	DG_LIMIT_SIZE = 11,   /* the log has the size that the user allows, or all that it can have: the recording ends here */
};

/* Flags of an event. What a thread waits for ends later than the code before it: of
 * events that may take their time, the ticket of when the thread came there is one
 * more argument, the last. */
#define DG_EVENT_EXTRA 8u       /* in an image alone, a point: no event of the log; neither ordinals nor control.consumed count it */
#define DG_EVENT_INTERRUPTED 1u /* did not happen: a signal came first; the call is made again */
#define DG_EVENT_ARRIVED 4u     /* has that argument */
#define DG_EVENT_RAISED 16u     /* in an image alone, of a free replay: a signal that comes when the controller raises it, or an event of its handler */
#define DG_EVENT_SOFT 2u        /* futex: a replay may have it where the log does not, and the other way round */

#define DG_TICKET_PENDING 0x7fffffffffffffffull

struct dg_event {
	uint32_t length; /* bytes with this header, args and payloads, a multiple of 8; stored last */
	uint8_t kind;
	uint8_t flags;
	uint8_t args;     /* uint64_t that follow */
	uint8_t payloads; /* struct dg_payload that follow those */
	uint64_t ticket;  /* DG_TICKET_PENDING: the process ended before the event had its place in the order; the thread's last */
	uint64_t object;
	uint64_t site;    /* return address of the call; a system call: address after its instruction */
	int64_t result;
	uint64_t skipped; /* mutexes taken on the fast path since the event before: no events */
};

/* Padded with zeros to a multiple of 8 bytes, as the next one follows. */
struct dg_payload {
	uint64_t address; /* in the process */
	uint32_t length;  /* bytes that follow; DG_PAYLOAD_DIGEST: 8 */
	uint32_t kind;
};

/* In a log, not in a replay's image: an event that is much like an earlier full one
 * of its extent, its base, which has the same site, kind, flags, number of
 * arguments and, if any, one payload of the same kind. What follows, each
 * of 8 bytes, is what `more` says, in the order of its bits, then the arguments that
 * differ, and the payload's bytes, padded. The payload's address is the base's;
 * or, where that is the value of an argument of the base (of the first such), that
 * argument's. */
struct dg_short {
	uint32_t length; /* bytes with this header, a multiple of 8, + DG_SHORT; in the upper half the base's offset in the extent / 8; stored last */
	uint8_t args;    /* bits: arguments that follow */
	uint8_t more;    /* bits: enum dg_short_more */
	uint16_t bytes;  /* of the payload, at most DG_SHORT_BYTES */
	uint32_t ticket; /* less that of the thread's event before */
	int32_t result;
};
#define DG_SHORT 1u
#define DG_SHORT_BYTES 512u
#define DG_SHORT_ARGS 8u

enum dg_short_more {
	DG_SHORT_OBJECT = 1,  /* the object differs */
	DG_SHORT_RESULT = 2,  /* the result is too large for the header */
	DG_SHORT_SKIPPED = 4, /* it is not 0 */
};

enum dg_payload_kind {
	DG_PAYLOAD_OUT = 1,    /* written by the kernel or the library: a replay writes it again */
	DG_PAYLOAD_DIGEST = 2, /* dg_digest of what the program handed out, then its length in bytes: 16 bytes */
	DG_PAYLOAD_TEXT = 3,   /* for people: a path, a limit */
	DG_PAYLOAD_FILE = 4,   /* struct dg_mapped: what a mapping of a file has */
	DG_PAYLOAD_INFO = 5,   /* a signal's siginfo_t, 128 bytes */
	DG_PAYLOAD_REGISTERS = 6, /* struct dg_signal_state */
	DG_PAYLOAD_RANGES = 7, /* struct dg_range[]: the live stack, then the data, of the digests */
	DG_PAYLOAD_WORDS = 8,  /* the first bytes of such ranges, as they were: a replay tells by them sooner */
	DG_PAYLOAD_WRITTEN = 9, /* for people: the bytes written to descriptor 1 or 2, if the control says keep_output */
};

/* What a signal interrupted. */
struct dg_signal_state {
	uint64_t registers[18]; /* r8-r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, rflags, as struct sigcontext has them */
	uint64_t flags;         /* the bits of rflags that count; the others are 0 above */
	uint64_t err, trapno, cr2; /* of a fault; else 0 */
	uint64_t mask;          /* signals that the program blocked */
};

struct dg_range {
	uint64_t address, length;
};

/* mmap of a file: where its bytes are. */
struct dg_mapped {
	uint64_t data;   /* offset in the recording's file `data`; UINT64_MAX: not kept, map the path */
	uint64_t length; /* bytes there; the mapping's rest is zero */
	uint64_t device, inode, size, mtime_ns; /* of the file */
	char path[216];  /* NUL-terminated */
};

/* A place where the program asks the kernel, and how it is made to ask the
 * engine instead. Written by the tracer, applied by the engine. */
struct dg_site_patch {
	uint64_t at;     /* address of the first byte replaced */
	uint64_t resume; /* address after the syscall instruction, where the program is when the call returns */
	uint32_t kind;   /* enum dg_patch */
	uint32_t length; /* bytes replaced, at least 5 unless DG_PATCH_TRAP */
	uint32_t before; /* of these, bytes of whole instructions before the syscall instruction; they are moved */
	uint32_t after;  /* and after it; moved as well */
};

enum dg_patch {
	DG_PATCH_JUMP = 1,  /* a jump to a stub near by: moved instructions, the engine, moved instructions, back */
	DG_PATCH_TRAP = 2,  /* ud2 in the syscall instruction's place: the tracer sends the thread to the engine */
	DG_PATCH_CLONE = 3, /* as JUMP, but the instruction is executed in the stub, with the engine before and after it */
	DG_PATCH_TSC = 4,   /* as JUMP, for rdtsc or rdtscp */
	DG_PATCH_TSC_TRAP = 5, /* one that stays, and stands for all in this object that do: the counter traps from then on */
	/* A window with atomic instructions: `before` entries follow, struct dg_site_code, with the code that is executed in its place. resume:
	 * the window's end; after: the CRC-32 (IEEE) of the program's own bytes */
	DG_PATCH_ATOMIC = 6,
	DG_PATCH_CODE = 7,      /* instructions around an atomic one */
	DG_PATCH_ADDRESS = 8,   /* what computes the address of the next atomic instruction's operand in rcx; flags stay */
	DG_PATCH_OPERATION = 9, /* the atomic instruction */
};

/* A piece of the code of a DG_PATCH_ATOMIC. Pieces of one kind in a row are one. */
struct dg_site_code {
	uint64_t at;     /* the instruction's own address */
	uint64_t target; /* of the link */
	uint32_t kind;   /* enum dg_patch */
	uint8_t count;   /* of bytes */
	uint8_t link;    /* 1: the last four bytes are a displacement to the target */
	uint8_t more;    /* bytes of the same instruction in the next entry: the displacement counts from their end */
	uint8_t reserved;
	uint8_t bytes[8];
};

/* At DG_ENGINE_ATOMICS: the places of the stubs of atomic instructions, and the last thread of each line. */
#define DG_ATOMIC_AREAS 64u
#define DG_ATOMIC_SITES 65536u
#define DG_ATOMIC_LINES_AT 0x1000000ull /* uint32_t[DG_ATOMIC_LINES], by a hash of the address / 64 */
#define DG_ATOMIC_LINES (1u << 18)

/* Where an instruction of a window is executed, and where the program has it. An atomic one is there twice: before its line is locked, and after. */
struct dg_atomic_site {
	uint64_t insn, at;
};

struct dg_atomics {
	uint32_t areas, sites;
	uint64_t area_low[DG_ATOMIC_AREAS], area_high[DG_ATOMIC_AREAS];
	struct dg_atomic_site site[DG_ATOMIC_SITES];
};

/* Between the process and its tracer. The process executes int3 at
 * control.trap_pc with rbx = DG_TRAP_MAGIC, rax = enum dg_trap, rdi, rsi, rdx =
 * arguments; the answer comes in rax. Nothing is asked if no tracer is there. */
#define DG_TRAP_MAGIC 0x646961676e6f7365ull

enum dg_trap {
	DG_TRAP_HELLO = 1,    /* rdi: address of the control; the tracer fills mode, paths and patch table. Answer 1: continue, 0: off */
	DG_TRAP_OBJECTS = 2,  /* objects were loaded: the tracer appends to the patch table. Answer: new count */
	DG_TRAP_FORKED = 3,   /* in a fork's child: as HELLO for a recording of its own */
	DG_TRAP_EXIT = 4,     /* exit_group is next; rdi: status. All threads stand or run still */
	DG_TRAP_ARM = 5,      /* replay: rdi: thread's index, rsi: address of its next event, an asynchronous signal */
	DG_TRAP_LAST = 6,     /* replay: rdi: thread's index; it has no further events and runs on to its end */
	DG_TRAP_DIVERGED = 7, /* replay: control.divergence is filled. No answer is expected */
	DG_TRAP_FINISHED = 8, /* replay: every thread waits and the log is at its end */
	DG_TRAP_MOMENT = 9,   /* replay: rdi: thread's index; it has done event control.stop_at */
	/* Of a replay that may diverge from the recording */
	DG_TRAP_LEFT = 10,    /* rdi: thread's index; it has left it: control.free, control.divergence */
	DG_TRAP_FATAL = 11,   /* rdi: thread's index, rsi: the signal that it ends the process with */
	DG_TRAP_STUCK = 12,   /* rsi: enum dg_stuck. No answer is expected */
	DG_TRAP_UNPARK = 13,  /* rdi: thread's index; it continues from where it was parked */
	DG_TRAP_READY = 14,   /* a quiet hunt's, before the program's first instruction. Answer 1: a fork of the process continues, with
			       * what struct dg_hunt says by then, and this one asks again; 0: it continues itself */
	DG_TRAP_TRACED = 15,  /* the program is about to trace a process of its own; rdi: the thread's id, 0: the calling process.
			       * Answer 1: the recorder has let the process go; 0: it has not */
	DG_TRAP_SHARED = 17,  /* the process has memory that others write, of which a recording has nothing */
	DG_TRAP_REFUSED = 16, /* a call is not passed on to the kernel; rdi: its number, and << 32 the errno that it is answered
			       * with, 0 if it is answered as done; rsi: the ordinal of its event, and << 48 the thread's index */
};

/* control.free */
enum dg_free { DG_FREE_NOT = 0, DG_FREE_MAY = 1, DG_FREE_IS = 2 };

/* control.fork_advice; 0: this engine does not know */
enum dg_fork_advice {
	DG_FORK_HAS_ALL = 1, /* a fork of the program has all of its memory */
	DG_FORK_ADVISED = 2, /* the program has advised the kernel otherwise */
};

enum dg_stuck {
	DG_STUCK_BLOCKED = 0, /* every thread waits for another */
	DG_STUCK_INPUT = 1,   /* some wait for something outside of the process */
	DG_STUCK_CYCLE = 2,   /* some wait for each other's locks */
	DG_STUCK_EVENTS = 3,  /* control.free_most, dg_hunt.most */
};

/* A recording in which one thread runs at a time, and which thread runs next is chosen by the
 * engine: hunt/hunt.c. A decision is made where a thread reaches an event, or to
 * a point of the code, or has to wait. What makes it do otherwise than
 * DG_HUNT_PLAN without a plan would is written down: these, as a plan, make the
 * same choices again. */
enum dg_hunt_strategy {
	DG_HUNT_NOT = 0,
	DG_HUNT_RANDOM = 1, /* any that is ready */
	DG_HUNT_PCT = 2,    /* the one of the highest priority; depth - 1 times among length steps the running one's becomes the lowest */
	DG_HUNT_DELAY = 3,  /* one runs until it waits, but depth times among length steps the next one's turn comes */
	DG_HUNT_PLAN = 4,   /* one runs until it waits, but where the plan says otherwise */
	DG_HUNT_TURNS = 5,  /* no hunt: each in its turn, which time ends. Clocks, waits and random bytes are real */
};

/* At the thread's step so `to` is next. */
struct dg_decision {
	uint32_t thread, to;
	uint64_t step; /* the thread's own, from 1 */
	uint32_t at;   /* enum dg_kind that it was at */
	uint32_t flags;
};
#define DG_DECISION_PREEMPTS 1u /* the thread could have continued */

#define DG_HUNT_DECISIONS 32768u /* of either list */
#define DG_HUNT_PLAN_AT 4096u    /* struct dg_decision[], from struct dg_hunt on */
#define DG_HUNT_MADE_AT 0x100000u
#define DG_HUNT_TRAIL_AT 0x1c0000u /* uint16_t[65536]: numbers of the points that were last reached, by struct dg_rthread.points */
#define DG_HUNT_SITES_AT 0x200000u /* struct dg_point_site[] */
#define DG_HUNT_SITES 32767u       /* of these, at most: each has two numbers, and 0 is none */
#define DG_HUNT_AREAS 8u
#define DG_HUNT_BYTES 0x400000u

/* At DG_ENGINE_HUNT. */
struct dg_hunt {
	uint32_t strategy; /* enum dg_hunt_strategy */
	uint32_t depth;
	uint64_t seed;
	uint64_t length; /* steps that a run has, about */
	uint64_t most;   /* steps; 0: no limit */
	uint64_t clock;  /* what the clocks say: ns since 1970. It advances with each operation, and where no thread can run */
	uint32_t chance; /* DG_HUNT_RANDOM: of a preemption at a point of the code, of 65,536 */
	uint32_t quiet;  /* 1: without a log */
	int32_t processor; /* that all threads are to run on; -1: any. DG_HUNT_TURNS: that they run on, once there are two */
	uint32_t planned;  /* decisions of the plan: by thread, then step */
	/* What came of it */
	uint64_t steps;    /* decisions of all threads, points of the code included */
	uint64_t points;   /* of these, points of the code */
	uint64_t switches; /* to another thread */
	uint32_t made;     /* decisions written down */
	uint32_t missing;  /* and those that found no room */
	uint32_t unused;   /* decisions of the plan that were not to be had */
	uint32_t most_ready; /* threads at one time */
	uint64_t state;    /* of the random numbers */
	/* Points at instructions of the program's, which a jump to a stub stands for */
	uint32_t sites, sites_done; /* of the table: told by the tracer, seen to by the engine */
	uint32_t sites_set;         /* those that have their jump */
	uint32_t areas;             /* where the stubs are: */
	uint64_t area_low[DG_HUNT_AREAS], area_high[DG_HUNT_AREAS];
	/* DG_HUNT_TURNS. The tracer sets `over`; all else is the engine's */
	uint64_t turn;       /* number of the current one */
	uint64_t turn_length; /* ns */
	uint32_t turn_over;  /* 1: it ends at the running thread's next event */
	uint32_t turn_exact; /* 1: it ends at an instruction, 0: at an event, if one comes soon */
	uint32_t turn_idle;  /* no thread can run */
	uint32_t turn_alone; /* so many in a row were to end when no other thread could run */
	uint64_t placed;     /* turns that ended at an instruction */
	uint64_t misplaced;  /* of these, those whose state is not all known: another place may look the same */
	uint64_t put_off;    /* and ends that were put off for that */
};
_Static_assert(sizeof(struct dg_decision) == 24, "decision");

/* DG_HUNT_TURNS: a timer sends it to the thread whose turn is over. The tracer takes it, and no program sees it. No
 * program uses it (signal(7)). */
#define DG_TURN_SIGNAL 16 /* SIGSTKFLT */
#define DG_TURN_VALUE 0x6e727574u /* of its siginfo */

/* An instruction of the program's that accesses memory which threads share, of five
 * bytes or more. It is executed in a stub, after a point; a replay has no stubs, and
 * finds the point by its pc (DG_POINT_PC). */
struct dg_point_site {
	uint64_t at;
	uint64_t insn; /* where it is executed; 0: it has no jump */
	uint8_t length;
	uint8_t relative; /* offset of its displacement from the next instruction; 0: it has none */
	uint8_t behind;   /* 1: there is a point after it as well */
	uint8_t reserved[5];
	uint8_t bytes[16]; /* as the program has it */
};
_Static_assert(sizeof(struct dg_point_site) == 40, "point");

struct dg_divergence {
	uint32_t thread;
	uint32_t reason; /* enum dg_reason */
	uint64_t ordinal;  /* of the thread's event */
	uint64_t expected; /* address of the logged event; 0: the log has no more */
	uint64_t pc, sp;   /* the program's */
	uint64_t place;    /* argument's or payload's number */
	uint64_t want, got; /* what differs */
	struct dg_event event; /* what the thread reached, as far as it is known */
	uint64_t args[6];
};

enum dg_reason {
	DG_DIFFERS_NONE = 0,
	DG_DIFFERS_KIND = 1,
	DG_DIFFERS_OBJECT = 2,
	DG_DIFFERS_SITE = 3,
	DG_DIFFERS_ARGUMENT = 4,
	DG_DIFFERS_DATA = 5,    /* digest of the bytes written */
	DG_DIFFERS_SKIPPED = 6, /* number of mutexes taken since the event before */
	DG_DIFFERS_MAPPING = 7, /* memory could not be had at the recorded address, or its file changed */
	DG_DIFFERS_STATE = 8,   /* the synchronisation variable cannot be taken as the log says */
	DG_DIFFERS_THREAD = 9,  /* could not be created, or the schedule names one that is not there */
	DG_DIFFERS_LOG = 10,    /* an event here that is impossible: the log is damaged */
};

/* At DG_ENGINE_CONTROL; private memory. */
struct dg_control {
	uint64_t magic;
	uint32_t version;
	uint32_t mode; /* enum dg_mode */
	uint32_t pid;      /* recording: own; replay: the recorded one */
	uint32_t tracer;   /* its pid; 0: none */
	uint64_t trap_pc;  /* address of the int3 */
	uint64_t insn_pc;  /* where the tracer sends a thread that is at a trapping instruction: ud2 */
	uint64_t tsc_pc;   /* the same for rdtsc; rax of the stub's frame tells rdtscp by its bytes */
	uint64_t text_low, text_high;   /* the engine's entries: a thread there is in the engine */
	uint64_t patches;  /* address of struct dg_site_patch[] */
	uint32_t patch_count, patches_done;
	int32_t log_fd, data_fd;
	uint32_t threads;  /* indices given; 0 is no thread, 1 the main thread */
	uint32_t stopped;  /* recording ended early: enum dg_limit */
	uint64_t log_end;  /* offset of the next extent */
	uint64_t data_end;
	uint64_t park_pc;  /* replay: dg_park. The tracer sends a thread there, on the engine's stack, that has ended */
	uint64_t stop_at;  /* replay: DG_TRAP_MOMENT when stop_thread has done its event of this ordinal; UINT64_MAX: never */
	uint64_t ticket;   /* the next one; a cache line of its own */
	uint64_t reserved1[6];
	/* Replay: how often a thread got the right to run, equal in every replay of a schedule. 0: this engine does not count */
	uint64_t turns;
	uint64_t image;    /* address of struct dg_replay_header */
	uint64_t run;      /* index into its runs */
	uint64_t left;     /* events left of this run */
	uint32_t holder;   /* index of the thread that may run */
	uint32_t echo;     /* write what goes to descriptors 1 and 2 */
	uint64_t consumed; /* events in all: progress */
	uint64_t fork_at;  /* fork_thread's event of that ordinal forks for real; UINT64_MAX: none does */
	uint32_t fork_thread;
	uint32_t stop_thread;
	struct dg_divergence divergence;
	char log_path[1024];  /* recording: created by the tracer, opened by the engine. Replay: the image */
	char data_path[1024];
	uint64_t log_limit; /* recording: bytes that the log may have; 0: no limit */
	uint32_t lazy;      /* replay: code between two events runs as late as it may, not as early: engine/turn.c */
	uint32_t point_able; /* replay: 1: this engine knows points */
	uint64_t raised;     /* free replay: index of the thread that the controller raises a signal in; the engine clears it */
	uint32_t keep_output; /* recording: the log has the bytes that are written to descriptors 1 and 2 */
	uint32_t reserved5;
	uint64_t actions;    /* of the program's signals: struct dg_action[], by number */
	uint64_t fork_advice; /* enum dg_fork_advice */
	uint64_t clock_pc;  /* recording: the vDSO's clock_gettime, which is hidden from the program; 0: none */
	uint32_t free;       /* replay: enum dg_free */
	uint32_t free_first; /* where the log is over, this thread goes first: the one that failed */
	uint64_t free_most;  /* value of consumed that is not passed; 0: no limit */
	uint64_t made_up;    /* results of calls that the log does not have */
	uint32_t free_order; /* the schedule is not the recorded one, so what it relies on is looked at */
	uint32_t free_able;  /* 1: this engine can; 2: it knows raised as well */
	uint64_t hunt;       /* recording: address of struct dg_hunt; 0: threads run as the kernel has them */
	uint64_t atomics;    /* address of struct dg_atomics; 0: no atomic instruction is patched */
};

/* What the replay controller makes of a log: per thread its events in a row,
 * and the schedule. At DG_ENGINE_IMAGE, read-only. */
struct dg_replay_header {
	uint64_t magic;
	uint32_t version;
	uint32_t threads;   /* length of the table, index 0 unused */
	uint64_t table;     /* address of struct dg_replay_thread[] */
	uint64_t runs;      /* address of struct dg_run[]: the order of events */
	uint64_t run_count;
	uint64_t events;
	uint64_t size;      /* bytes of the image */
};

struct dg_replay_thread {
	uint64_t start, end; /* addresses of its events; the last may be cut off: end is after the last whole one */
	uint64_t skipped;    /* mutexes it took on the fast path after its last event; UINT64_MAX: unknown */
	uint64_t points;     /* events with DG_EVENT_EXTRA among them */
};

/* So many events of this thread come next. */
struct dg_run {
	uint32_t thread;
	uint32_t events;
};

/* What a thread of the program has; at DG_ENGINE_THREADS + index * DG_THREAD_SLOT. */
struct dg_rthread {
	uint64_t budget;   /* mutexes that may be taken without an event; counts down, see wrap/mutex.c */
	uint32_t index;
	uint32_t tid;      /* the recorded one */
	uint32_t real_tid; /* the kernel's */
	uint32_t state;    /* enum dg_rstate */
	uint64_t engine_sp; /* top of its engine stack */
	uint64_t inside;    /* address of its struct dg_frame while it is in the engine; 0: it is not */
	uint64_t ordinal;   /* of its last event, from 1 */
	uint64_t budget_start; /* value of budget after the last event */
	/* Recording: the extent in use */
	uint64_t at, end;
	uint64_t extent, extent_size;
	uint32_t sequence;
	uint32_t raw;       /* > 0: system calls of this thread go straight to the kernel (child of a vfork) */
	/* Replay */
	uint64_t next, next_end;
	uint32_t go;        /* futex: 1 when it may run */
	uint32_t waits_for; /* enum dg_kind it is at; 0: runs */
	uint64_t waits_object;
	/* Start of a new thread */
	uint64_t start, argument;
	uint64_t stack_low, stack_high; /* of the program's stack, guard not included */
	uint64_t thread_pointer;
	/* Signals held back until the thread leaves the engine */
	uint32_t pending;   /* how many */
	uint32_t delivering;
	uint64_t timer_returned; /* recording: when its last handler of a timer's signal returned, CLOCK_MONOTONIC in ns: the tracer spaces these signals */
	/* What the program set; the kernel has something else, see engine/signal.c */
	uint64_t mask;               /* signals that it blocks */
	uint64_t alt_low, alt_size;  /* its stack for handlers */
	uint32_t alt_flags;
	uint32_t yields;             /* replay: it looks for a change that no event orders */
	uint64_t carried;            /* replay: `skipped` of futex events that it passed over */
	uint32_t cloning, cloning_nr; /* what the stub of a clone is about to make, and by which call: engine/fork.c */
	uint64_t home;               /* recording: the extent that is used again and again */
	uint64_t arrived; /* recording: the ticket for DG_EVENT_ARRIVED of an operation that it is in; 0: it did not wait */
	/* Replay, control.lazy */
	uint64_t holds; /* address of the mutex after whose release it gives the right away; 0: none */
	uint32_t fresh; /* has taken an event, and has not left the engine since */
	uint32_t behind; /* what comes after its last event has still to be run */
	uint32_t counter_traps; /* rdtsc traps for it */
	uint32_t cond_sequence; /* replay: of a condition variable (sync.h), when the thread began to wait for it */
	/* Points of the code (DG_POINT_CODE) to be passed before the engine is entered; counts down */
	uint64_t points;
	uint64_t points_start; /* value of points after the last event */
	uint8_t infos[8][128]; /* siginfo_t */
	uint64_t stub[3]; /* rax, r11 and the struct dg_point_stub on entry from one of a point */
	uint32_t line;    /* the word of a line that is this thread's, while it executes an atomic instruction there: engine/atomic.c */
	uint32_t reserved;
};

enum dg_rstate { DG_R_NONE = 0, DG_R_STARTING = 1, DG_R_RUNNING = 2, DG_R_WAITING = 3, DG_R_ENDED = 4 };

/* What the program had when it entered the engine, and gets when it leaves. */
struct dg_frame {
	uint64_t rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t rip, rsp, rflags; /* where it continues */
	/* What to execute if the call must be made again: the stub or the function's entry. DG_ENTRY_POINT: the program's pc */
	uint64_t origin;
	uint64_t again_rax, again_rsp; /* rax and rsp for that. DG_ENTRY_POINT: the struct dg_point_stub, 0: a call of the program's */
	uint64_t kind;   /* enum dg_entry */
};

enum dg_entry { DG_ENTRY_SYSCALL = 1, DG_ENTRY_CALL = 2, DG_ENTRY_TSC = 3, DG_ENTRY_INSN = 4, DG_ENTRY_SIGNAL = 5, DG_ENTRY_POINT = 6 };

_Static_assert(sizeof(struct dg_event) == 48, "event");
_Static_assert(sizeof(struct dg_payload) == 16, "payload");
_Static_assert(sizeof(struct dg_short) == 16, "short event");
_Static_assert(sizeof(struct dg_extent) == 32, "extent");
_Static_assert(sizeof(struct dg_site_patch) == 32, "patch");
_Static_assert(sizeof(struct dg_site_code) == 32, "code");
_Static_assert(sizeof(struct dg_atomics) <= DG_ATOMIC_LINES_AT, "atomics");
_Static_assert(sizeof(struct dg_run) == 8, "run");
_Static_assert(offsetof(struct dg_control, ticket) % 64 == 0, "ticket on a line of its own");
_Static_assert(sizeof(struct dg_rthread) < 4096, "thread slot");

#endif
