/* Objects that the program loads. */
#include "agent.h"

#include <dlfcn.h>

typedef void *dg_dlopen(const char *, int);

static dg_dlopen *dg_next_dlopen(void)
{
	static dg_dlopen *next;
	dg_dlopen *found = __atomic_load_n(&next, __ATOMIC_RELAXED);

	if (!found) {
		found = (dg_dlopen *)(uintptr_t)dlsym(RTLD_NEXT, "dlopen");
		__atomic_store_n(&next, found, __ATOMIC_RELAXED);
	}
	return found;
}

/* An object bound to its own dependencies first would have libc's malloc, but
 * libc's functions that allocate for it (strdup, getline) ours: whatever it
 * frees is then another allocator's. So it is bound as all others are.
 *
 * The call must be the last thing done here, a jump: dlopen looks for the
 * object as its caller's RUNPATH says, and knows the caller by the return
 * address. */
DG_EXPORT void *dlopen(const char *path, int flags)
{
	return dg_next_dlopen()(path, flags & ~RTLD_DEEPBIND);
}
