/* What the engine knows of the kernel's calls: a row each, engine/table.c.
 * replay/record/eventlog/syscalls.go has the same rows for people, and a test compares them. */
#ifndef DG_ENGINE_TABLE_H
#define DG_ENGINE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/* How a call is replayed. */
enum dg_call_class {
	DG_CALL_UNKNOWN = 0, /* not in the table: made, its result logged, and a limit named */
	DG_CALL_EMULATE = 1, /* not made in a replay: result and memory come from the log */
	DG_CALL_AGAIN = 2,   /* made in a replay too, for what it does to the process itself */
	DG_CALL_MEMORY = 3,  /* made under one lock, and in a replay again at the recorded address */
	DG_CALL_THREAD = 4,  /* clone and its kin, exit, execve: engine/fork.c */
	DG_CALL_SIGNAL = 5,  /* engine/signal.c */
	DG_CALL_SPECIAL = 6, /* a function of its own in engine/syscall.c */
	DG_CALL_REFUSE = 7,  /* answered with ENOSYS: the kernel would write memory at times of its own choosing */
	DG_CALL_LIMIT = 8,   /* made, result logged, and a limit named: what it does is not brought back */
};

/* iReplayer's classes (section 3.3): what its in-situ replay may do with a call. */
enum dg_call_paper {
	DG_PAPER_NONE = 0,
	DG_PAPER_REPEATABLE = 1,  /* gives the same again by itself */
	DG_PAPER_RECORDABLE = 2,  /* its result is recorded and given again */
	DG_PAPER_REVOCABLE = 3,   /* changes what can be set back: a file's position */
	DG_PAPER_DEFERRABLE = 4,  /* destroys what could be needed: close, munmap */
	DG_PAPER_IRREVOCABLE = 5, /* reaches the world outside */
};

/* Memory that a call writes, or reads. `count` is the argument that counts. */
enum dg_part_how {
	DG_PART_NONE = 0,
	DG_OUT_FIXED,    /* size bytes if the result is not negative */
	DG_OUT_POSITIVE, /* size bytes if the result is positive */
	DG_OUT_RESULT,   /* result times size bytes, at most as many as `count` says */
	DG_OUT_COUNTED,  /* `count` times size bytes if the result is not negative */
	DG_OUT_BITS,     /* a bit for each of `count`, in longs */
	DG_OUT_VALUED,   /* as many bytes as `count` points at, at most as many as before, and that length */
	DG_OUT_VECTOR,   /* result bytes over an array of `count` iovecs */
	DG_OUT_MESSAGE,  /* a msghdr: name, data, control */
	DG_OUT_MESSAGES, /* an array of result mmsghdrs */
	DG_OUT_SENT,     /* sendmmsg: the lengths in result mmsghdrs */
	DG_OUT_REMAINS,  /* size bytes, if EINTR came */
	DG_OUT_TIMEOUT,  /* size bytes of time left, unless the arguments were wrong */
	DG_OUT_MSGRCV,   /* result bytes after a long */
	DG_OUT_IOCTL, DG_OUT_FCNTL, DG_OUT_PRCTL, DG_OUT_IPC, DG_OUT_CAPABILITIES, DG_OUT_RESIDENT, DG_OUT_HANDLE,
	DG_OUT_PTRACE,
	DG_IN,           /* this and what follows is read by the kernel, if the call succeeds */
	DG_IN_FIXED = DG_IN,
	DG_IN_TEXT,      /* a path, NUL-terminated; read before most errors, too */
	DG_IN_RESULT,    /* result bytes */
	DG_IN_COUNTED,   /* `count` times size bytes */
	DG_IN_VECTOR,    /* result bytes over an array of `count` iovecs */
	DG_IN_MESSAGE,
	DG_IN_MESSAGES,
};

#define DG_FUTEX_WAIT2 455
#define DG_PARTS 5
#define DG_ROWS 472u

struct dg_part {
	uint8_t how;
	uint8_t arg;   /* the pointer */
	uint8_t count;
	uint8_t reserved;
	uint32_t size;
};

struct dg_row {
	const char *name;
	uint8_t class_; /* enum dg_call_class */
	uint8_t paper;  /* enum dg_call_paper */
	uint8_t args;
	uint8_t reserved[5];
	struct dg_part parts[DG_PARTS];
};

/* A call that the program makes. */
struct dg_call {
	long nr;
	uint64_t args[6];
	uint64_t site;
	const struct dg_row *row;
	/* Recording, where there are several threads: engine/call.c */
	uint64_t ticket;  /* from before the call; 0: the event has the one from after it */
	uint64_t arrived; /* for DG_EVENT_ARRIVED */
};

/* Whether a call's result is an error. */
static inline bool dg_failed(long result)
{
	return (unsigned long)result >= -4095ul;
}

#endif
