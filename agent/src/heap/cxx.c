/* C++'s replaceable allocation functions. Ours stand for the default ones of
 * the C++ library, so a program that replaces one of them must find it used
 * where the standard says that a default version calls it ([new.delete]). Then,
 * and when memory runs out and a new_handler or std::bad_alloc is due, the C++
 * library's own version is called. */
#include "agent.h"
#include "heap/hot.h"

#include <dlfcn.h>
#include <stdlib.h>

typedef struct dg_nothrow dg_nothrow; /* std::nothrow_t */

/* True if the dynamic linker found another definition of the symbol. */
#define DG_REPLACED(symbol)                                                           \
	({                                                                            \
		uint64_t dg_bound, dg_own;                                            \
		__asm__("mov " #symbol "@GOTPCREL(%%rip), %0" : "=r"(dg_bound));      \
		__asm__("lea dg_own" #symbol "(%%rip), %0" : "=r"(dg_own));           \
		DG_UNLIKELY(dg_bound != dg_own);                                      \
	})

#define DG_OWN(symbol, type, params)                                                  \
	type dg_own##symbol params                                                    \
		__attribute__((alias(#symbol), visibility("hidden"), used))

/* What another function allocated for this interface is this interface's. */
static DG_COLD void *dg_stamp(void *p, uint32_t api)
{
	struct dg_found f;

	if (!p)
		return NULL;
	f = dg_find((uint64_t)p);
	if (f.word && f.object == (uint64_t)p && dg_state(*f.word) == DG_LIVE)
		*f.word = (*f.word & ~(3ull << DG_WORD_API)) | (uint64_t)api << DG_WORD_API;
	return p;
}

static DG_COLD void *dg_next(const char *symbol)
{
	void *f = dlsym(RTLD_NEXT, symbol);

	/* A caller of operator new has a C++ library, or fails anyway. */
	if (!f)
		abort();
	return f;
}

static DG_COLD void *dg_next_new(const char *symbol, uint32_t api, size_t size, const dg_nothrow *tag)
{
	void *(*next)(size_t, const dg_nothrow *) =
		(void *(*)(size_t, const dg_nothrow *))(uintptr_t)dg_next(symbol);

	return dg_stamp(next(size, tag), api);
}

static DG_COLD void *dg_next_aligned(const char *symbol, uint32_t api, size_t size, size_t align,
				     const dg_nothrow *tag)
{
	void *(*next)(size_t, size_t, const dg_nothrow *) =
		(void *(*)(size_t, size_t, const dg_nothrow *))(uintptr_t)dg_next(symbol);

	return dg_stamp(next(size, align, tag), api);
}

DG_EXPORT void *_Znwm(size_t size);
DG_EXPORT void *_Znam(size_t size);
DG_EXPORT void *_ZnwmRKSt9nothrow_t(size_t size, const dg_nothrow *tag);
DG_EXPORT void *_ZnamRKSt9nothrow_t(size_t size, const dg_nothrow *tag);
DG_EXPORT void *_ZnwmSt11align_val_t(size_t size, size_t align);
DG_EXPORT void *_ZnamSt11align_val_t(size_t size, size_t align);
DG_EXPORT void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t align, const dg_nothrow *tag);
DG_EXPORT void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t align, const dg_nothrow *tag);
DG_EXPORT void _ZdlPv(void *p);
DG_EXPORT void _ZdaPv(void *p);
DG_EXPORT void _ZdlPvm(void *p, size_t size);
DG_EXPORT void _ZdaPvm(void *p, size_t size);
DG_EXPORT void _ZdlPvRKSt9nothrow_t(void *p, const dg_nothrow *tag);
DG_EXPORT void _ZdaPvRKSt9nothrow_t(void *p, const dg_nothrow *tag);
DG_EXPORT void _ZdlPvSt11align_val_t(void *p, size_t align);
DG_EXPORT void _ZdaPvSt11align_val_t(void *p, size_t align);
DG_EXPORT void _ZdlPvmSt11align_val_t(void *p, size_t size, size_t align);
DG_EXPORT void _ZdaPvmSt11align_val_t(void *p, size_t size, size_t align);
DG_EXPORT void _ZdlPvSt11align_val_tRKSt9nothrow_t(void *p, size_t align, const dg_nothrow *tag);
DG_EXPORT void _ZdaPvSt11align_val_tRKSt9nothrow_t(void *p, size_t align, const dg_nothrow *tag);

static inline void *dg_new(size_t size, uint32_t api, const uint64_t *slot, const char *symbol,
			   const dg_nothrow *tag)
{
	void *p = dg_allocate(size, api, slot);

	return DG_LIKELY(p) ? p : dg_next_new(symbol, api, size, tag);
}

static inline void *dg_new_aligned(size_t size, size_t align, uint32_t api, const uint64_t *slot,
				   const char *symbol, const dg_nothrow *tag)
{
	void *p = dg_aligned(align, size, api, slot);

	return DG_LIKELY(p) ? p : dg_next_aligned(symbol, api, size, align, tag);
}

void *_Znwm(size_t size)
{
	return dg_new(size, DG_API_NEW, DG_RETURN_SLOT(), "_Znwm", NULL);
}
DG_OWN(_Znwm, void *, (size_t));

void *_Znam(size_t size)
{
	if (DG_REPLACED(_Znwm))
		return dg_next_new("_Znam", DG_API_NEW_ARRAY, size, NULL);
	return dg_new(size, DG_API_NEW_ARRAY, DG_RETURN_SLOT(), "_Znam", NULL);
}
DG_OWN(_Znam, void *, (size_t));

void *_ZnwmRKSt9nothrow_t(size_t size, const dg_nothrow *tag)
{
	if (DG_REPLACED(_Znwm))
		return dg_next_new("_ZnwmRKSt9nothrow_t", DG_API_NEW, size, tag);
	return dg_new(size, DG_API_NEW, DG_RETURN_SLOT(), "_ZnwmRKSt9nothrow_t", tag);
}

void *_ZnamRKSt9nothrow_t(size_t size, const dg_nothrow *tag)
{
	if (DG_REPLACED(_Znam) || DG_REPLACED(_Znwm))
		return dg_next_new("_ZnamRKSt9nothrow_t", DG_API_NEW_ARRAY, size, tag);
	return dg_new(size, DG_API_NEW_ARRAY, DG_RETURN_SLOT(), "_ZnamRKSt9nothrow_t", tag);
}

void *_ZnwmSt11align_val_t(size_t size, size_t align)
{
	return dg_new_aligned(size, align, DG_API_NEW, DG_RETURN_SLOT(), "_ZnwmSt11align_val_t", NULL);
}
DG_OWN(_ZnwmSt11align_val_t, void *, (size_t, size_t));

void *_ZnamSt11align_val_t(size_t size, size_t align)
{
	if (DG_REPLACED(_ZnwmSt11align_val_t))
		return dg_next_aligned("_ZnamSt11align_val_t", DG_API_NEW_ARRAY, size, align, NULL);
	return dg_new_aligned(size, align, DG_API_NEW_ARRAY, DG_RETURN_SLOT(), "_ZnamSt11align_val_t", NULL);
}
DG_OWN(_ZnamSt11align_val_t, void *, (size_t, size_t));

void *_ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t align, const dg_nothrow *tag)
{
	const char *symbol = "_ZnwmSt11align_val_tRKSt9nothrow_t";

	if (DG_REPLACED(_ZnwmSt11align_val_t))
		return dg_next_aligned(symbol, DG_API_NEW, size, align, tag);
	return dg_new_aligned(size, align, DG_API_NEW, DG_RETURN_SLOT(), symbol, tag);
}

void *_ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t align, const dg_nothrow *tag)
{
	const char *symbol = "_ZnamSt11align_val_tRKSt9nothrow_t";

	if (DG_REPLACED(_ZnamSt11align_val_t) || DG_REPLACED(_ZnwmSt11align_val_t))
		return dg_next_aligned(symbol, DG_API_NEW_ARRAY, size, align, tag);
	return dg_new_aligned(size, align, DG_API_NEW_ARRAY, DG_RETURN_SLOT(), symbol, tag);
}

void _ZdlPv(void *p)
{
	dg_release(p, DG_API_NEW, DG_RETURN_SLOT());
}
DG_OWN(_ZdlPv, void, (void *));

void _ZdaPv(void *p)
{
	if (DG_REPLACED(_ZdlPv))
		_ZdlPv(p);
	else
		dg_release(p, DG_API_NEW_ARRAY, DG_RETURN_SLOT());
}
DG_OWN(_ZdaPv, void, (void *));

void _ZdlPvSt11align_val_t(void *p, size_t align)
{
	(void)align;
	dg_release(p, DG_API_NEW, DG_RETURN_SLOT());
}
DG_OWN(_ZdlPvSt11align_val_t, void, (void *, size_t));

void _ZdaPvSt11align_val_t(void *p, size_t align)
{
	if (DG_REPLACED(_ZdlPvSt11align_val_t))
		_ZdlPvSt11align_val_t(p, align);
	else
		dg_release(p, DG_API_NEW_ARRAY, DG_RETURN_SLOT());
}
DG_OWN(_ZdaPvSt11align_val_t, void, (void *, size_t));

/* The others' default versions call the ones above. */
#define DG_DELETE(name, params, base, api, ...)                                       \
	void name params                                                              \
	{                                                                             \
		if (DG_REPLACED(base))                                                \
			base(__VA_ARGS__);                                            \
		else                                                                  \
			dg_release(p, api, DG_RETURN_SLOT());                         \
	}
#define DG_DELETE_ARRAY(name, params, base, inner, ...)                               \
	void name params                                                              \
	{                                                                             \
		if (DG_REPLACED(base) || DG_REPLACED(inner))                          \
			base(__VA_ARGS__);                                            \
		else                                                                  \
			dg_release(p, DG_API_NEW_ARRAY, DG_RETURN_SLOT());            \
	}
#define DG_UNUSED __attribute__((unused))

DG_DELETE(_ZdlPvm, (void *p, size_t DG_UNUSED size), _ZdlPv, DG_API_NEW, p)
DG_DELETE(_ZdlPvRKSt9nothrow_t, (void *p, const dg_nothrow DG_UNUSED *tag), _ZdlPv, DG_API_NEW, p)
DG_DELETE(_ZdlPvmSt11align_val_t, (void *p, size_t DG_UNUSED size, size_t align),
	  _ZdlPvSt11align_val_t, DG_API_NEW, p, align)
DG_DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *p, size_t align, const dg_nothrow DG_UNUSED *tag),
	  _ZdlPvSt11align_val_t, DG_API_NEW, p, align)
DG_DELETE_ARRAY(_ZdaPvm, (void *p, size_t DG_UNUSED size), _ZdaPv, _ZdlPv, p)
DG_DELETE_ARRAY(_ZdaPvRKSt9nothrow_t, (void *p, const dg_nothrow DG_UNUSED *tag), _ZdaPv, _ZdlPv, p)
DG_DELETE_ARRAY(_ZdaPvmSt11align_val_t, (void *p, size_t DG_UNUSED size, size_t align),
		_ZdaPvSt11align_val_t, _ZdlPvSt11align_val_t, p, align)
DG_DELETE_ARRAY(_ZdaPvSt11align_val_tRKSt9nothrow_t,
		(void *p, size_t align, const dg_nothrow DG_UNUSED *tag),
		_ZdaPvSt11align_val_t, _ZdlPvSt11align_val_t, p, align)
