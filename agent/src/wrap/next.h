/* libc's functions, which those of the same name here replace. They are found when
 * the library starts, so that a thread's first call of one is as every other. */
#ifndef DG_WRAP_NEXT_H
#define DG_WRAP_NEXT_H

#include "agent.h"

#include <dlfcn.h>

struct dg_next {
	const char *name;
	void **to;
};

/* dg_next_NAME, of the type of a function with these parameters. */
#define DG_NEXT(type, name, params)                                                                                    \
	static type(*dg_next_##name) params;                                                                           \
	static const struct dg_next dg_next_entry_##name __attribute__((used, section("dg_nexts"))) = {                \
		#name, (void **)&dg_next_##name }

/* What a program calls before the library started, or what came with a library
 * that was loaded later, is looked up then. */
#define DG_CALL(name)                                                                                                  \
	(DG_LIKELY(dg_next_##name) ? dg_next_##name :                                                                  \
				     ((void)(*(void **)&dg_next_##name = dlsym(RTLD_NEXT, #name)), dg_next_##name))

/* The function itself. Its name in C is another, for libc's headers give some of
 * these another name in the object (scanf) or a body (putchar). */
#define DG_WRAP(type, name, params)                                                                                    \
	DG_NEXT(type, name, params);                                                                                   \
	DG_EXPORT type dg_wrap_##name params __asm__(#name);                                                           \
	DG_EXPORT type dg_wrap_##name params

/* For functions with a variable number of arguments, which pass them to another. */
#define DG_WRAP_ONLY(type, name, params)                                                                               \
	DG_EXPORT type dg_wrap_##name params __asm__(#name);                                                           \
	DG_EXPORT type dg_wrap_##name params

#define DG_CALLER() ((long)__builtin_return_address(0))

/* Whether what this thread does is recorded or replayed. */
static inline bool dg_engaged(void)
{
	return dg_mode && dg_me && !dg_me->raw;
}

#endif
