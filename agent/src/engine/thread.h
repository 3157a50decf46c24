/* What the wrappers of thread functions and the engine's part for threads hand
 * to each other. */
#ifndef DG_THREAD_H
#define DG_THREAD_H

#include <stdbool.h>
#include <stdint.h>

/* How many threads that ended come free with the creation of one: more than
 * one, so that they do not pile up. */
#define DG_REAPS 4

struct dg_creation {
	/* From the wrapper */
	uint64_t start, argument;
	uint64_t size, guard; /* of the stack, as the attributes say */
	uint64_t flags;       /* enum dg_creation_flag */
	uint64_t own_low;     /* DG_CREATE_OWN_STACK */
	/* From the engine */
	uint64_t index;
	uint64_t stack_low; /* as pthread_attr_setstack takes it */
	uint64_t reaps;
	uint64_t reap[DG_REAPS];         /* indices */
	uint64_t reap_pointer[DG_REAPS]; /* their thread pointers, which is what pthread_t is */
};

/* Of a thread whose stack is ours. */
struct dg_thread_facts {
	uint64_t guard;
	bool detached;
};

/* engine/thread.c; runs on any stack. */
bool dg_thread_ask(uint64_t thread, struct dg_thread_facts *facts) __attribute__((visibility("hidden")));

enum dg_join { DG_JOIN_WAIT = 0, DG_JOIN_TRY = 1, DG_JOIN_TIMED = 2 };

/* What DG_OP_JOIN_BEGIN and its kin answer when the thread is not the engine's:
 * glibc's function alone does it. */
#define DG_NOT_OURS (-1l)

/* What libc serialises by one lock, for a lock of ours in its place. 0: it has a
 * lock of its own, which the wrapper has taken (a FILE's). */
enum dg_family {
	DG_FAMILY_NONE = 0,
	DG_FAMILY_FILES, /* the list of all FILEs */
	DG_FAMILY_RANDOM,
	DG_FAMILY_TIME,
	DG_FAMILY_LOCALE,
	DG_FAMILY_ENVIRONMENT,
	DG_FAMILY_NAMES, /* users, hosts, services */
	DG_FAMILY_LOG,
	DG_FAMILY_OBJECTS, /* dlopen */
	DG_FAMILY_EXIT,    /* what runs at exit */
	DG_FAMILY_KEYS,
	DG_FAMILY_TEXT,    /* message catalogues, regular expressions */
	DG_FAMILY_CANCEL,
	DG_FAMILY_ENDING,  /* from a thread's last destructor to its next system call */
	DG_FAMILY_FORK,
	DG_FAMILIES
};

/* How many threads wait for a lock of libc's that one of ours gives back. */
extern uint32_t dg_order_waiters __attribute__((visibility("hidden")));

/* How long: until DG_OP_ORDER_END, or only until the thread asks the kernel for
 * something, because that may wait for another thread of the same family. */
enum dg_order_how { DG_ORDER_WHOLE = 0, DG_ORDER_GATE = 1 };

#endif
