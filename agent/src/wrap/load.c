/* dlopen and dlclose in a program that is recorded: libc serialises them. */
#include "agent.h"
#include "engine/thread.h"
#include "wrap/next.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

DG_NEXT(void *, dlopen, (const char *, int));
DG_NEXT(int, dlclose, (void *));

static bool dg_has_search_path(const struct link_map *map)
{
	for (const ElfW(Dyn) *d = map ? map->l_ld : NULL; d && d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_RUNPATH || d->d_tag == DT_RPATH)
			return true;
	return false;
}

/* Whether dlopen depends on its caller: it finds names without a slash by
 * the caller's search path, and $ORIGIN by the caller's place. */
static bool dg_caller_counts(const char *path, const void *caller)
{
	struct link_map *map = NULL;
	Dl_info info;

	if (!path)
		return false;
	if (strchr(path, '$'))
		return true;
	if (strchr(path, '/'))
		return false;
	return !dladdr1(caller, &info, (void **)&map, RTLD_DL_LINKMAP) || dg_has_search_path(map);
}

static void *dg_open_object(const char *path, int flags, long site)
{
	struct dg_ordered o = { .family = DG_FAMILY_OBJECTS, .site = site };
	void *result;

	bool ordered = dg_orders();

	if (ordered)
		dg_order_enter(&o);
	result = DG_CALL(dlopen)(path, flags);
	if (result && !(flags & RTLD_NOLOAD))
		dg_engine(DG_OP_OBJECTS, 0, 0, 0, 0, 0);
	if (ordered)
		dg_order_left(&o);
	return result;
}

/* Not bound to its own dependencies first, see load.c; and where it matters which code
 * calls, a jump. Then only the order of the calls is kept, not of what they do, and
 * the object's own system calls are not intercepted before the next dlopen. */
DG_EXPORT void *dlopen(const char *path, int flags)
{
	flags &= ~RTLD_DEEPBIND;
	if (!dg_engaged())
		return DG_CALL(dlopen)(path, flags);
	if (!dg_caller_counts(path, __builtin_return_address(0)))
		return dg_open_object(path, flags, DG_CALLER());
	dg_engine(DG_OP_OBJECTS, 1, 0, 0, 0, 0);
	if (dg_orders())
		dg_engine(DG_OP_ORDER_BEGIN, DG_FAMILY_OBJECTS, DG_FAMILY_OBJECTS, DG_ORDER_GATE, DG_CALLER(), 0);
	return DG_CALL(dlopen)(path, flags);
}

/* The next object at the same place has other rules: see unwind.c. */
static int dg_close_object(void *handle, long site)
{
	struct dg_ordered o = { .family = DG_FAMILY_OBJECTS, .site = site };
	int result;

	dg_order_enter(&o);
	result = DG_CALL(dlclose)(handle);
	dg_order_left(&o);
	return result;
}

DG_EXPORT int dlclose(void *handle)
{
	int result = dg_orders() ? dg_close_object(handle, DG_CALLER()) : DG_CALL(dlclose)(handle);

	dg_forget_rules();
	return result;
}

/* glibc loads the unwinder where the first thread is cancelled or leaves by
 * pthread_exit. Other threads need the locks that it has meanwhile, and no event
 * says which thread had them first. So it exists before there is a second thread. */
static void dg_load_unwinder(void)
{
	static bool loaded;
	int error = errno;

	if (!loaded)
		DG_CALL(dlopen)("libgcc_s.so.1", RTLD_NOW);
	loaded = true;
	errno = error;
}
