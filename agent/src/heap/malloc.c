/* glibc's allocation interface. */
#include "agent.h"
#include "heap/hot.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static inline void *dg_or_enomem(void *p)
{
	if (DG_UNLIKELY(!p))
		errno = ENOMEM;
	return p;
}

DG_EXPORT void *malloc(size_t size)
{
	return dg_allocate(size, DG_API_MALLOC, DG_RETURN_SLOT());
}

DG_EXPORT void free(void *p)
{
	dg_release(p, DG_API_MALLOC, DG_RETURN_SLOT());
}

DG_EXPORT void cfree(void *p)
{
	dg_release(p, DG_API_MALLOC, DG_RETURN_SLOT());
}

DG_EXPORT void *calloc(size_t count, size_t each)
{
	bool clean = false;
	size_t size;
	void *p;

	if (DG_UNLIKELY(__builtin_mul_overflow(count, each, &size))) {
		dg_failed(dg_self, UINT64_MAX, DG_RETURN_SLOT());
		return dg_or_enomem(NULL);
	}
	if (size > DG_SMALL_MAX - DG_MIN_CANARY)
		p = dg_allocate_slow(size, 16, DG_API_MALLOC, DG_RETURN_SLOT(), &clean);
	else
		p = dg_allocate(size, DG_API_MALLOC, DG_RETURN_SLOT());
	return DG_UNLIKELY(!p) || clean ? p : memset(p, 0, size);
}

static inline void *dg_realloc(void *p, size_t size, const uint64_t *slot)
{
	if (!p)
		return dg_allocate(size, DG_API_MALLOC, slot);
	/* As glibc does it: freed, and NULL. */
	if (!size) {
		dg_release(p, DG_API_MALLOC, slot);
		return NULL;
	}
	return dg_or_enomem(dg_reallocate(p, size, slot));
}

DG_EXPORT void *realloc(void *p, size_t size)
{
	return dg_realloc(p, size, DG_RETURN_SLOT());
}

DG_EXPORT void *reallocarray(void *p, size_t count, size_t each)
{
	size_t size;

	if (__builtin_mul_overflow(count, each, &size)) {
		dg_failed(dg_self, UINT64_MAX, DG_RETURN_SLOT());
		return dg_or_enomem(NULL);
	}
	return dg_realloc(p, size, DG_RETURN_SLOT());
}

static inline void *dg_aligned(size_t align, size_t size, uint32_t api, const uint64_t *slot)
{
	return dg_allocate_slow(size, align < 16 ? 16 : align, api, slot, NULL);
}

/* glibc rounds an alignment up to a power of two. */
static size_t dg_power_of_two(size_t align)
{
	if (align <= 16)
		return 16;
	if (align > SIZE_MAX / 2 + 1)
		return 0;
	return (align & (align - 1)) ? 1ull << (64 - __builtin_clzll(align)) : align;
}

static inline void *dg_memalign(size_t align, size_t size, const uint64_t *slot)
{
	align = dg_power_of_two(align);
	if (!align) {
		errno = EINVAL;
		return NULL;
	}
	return dg_aligned(align, size, DG_API_MALLOC, slot);
}

DG_EXPORT void *memalign(size_t align, size_t size)
{
	return dg_memalign(align, size, DG_RETURN_SLOT());
}

DG_EXPORT void *aligned_alloc(size_t align, size_t size)
{
	return dg_memalign(align, size, DG_RETURN_SLOT());
}

DG_EXPORT int posix_memalign(void **to, size_t align, size_t size)
{
	int before = errno;
	void *p;

	if (align % sizeof(void *) || !align || align & (align - 1))
		return EINVAL;
	p = dg_aligned(align, size, DG_API_MALLOC, DG_RETURN_SLOT());
	if (!p) {
		errno = before;
		return ENOMEM;
	}
	*to = p;
	return 0;
}

DG_EXPORT void *valloc(size_t size)
{
	return dg_aligned(DG_PAGE, size, DG_API_MALLOC, DG_RETURN_SLOT());
}

DG_EXPORT void *pvalloc(size_t size)
{
	size_t pages;

	if (__builtin_add_overflow(size, DG_PAGE - 1, &pages))
		return dg_or_enomem(NULL);
	pages &= ~(size_t)(DG_PAGE - 1);
	return dg_aligned(DG_PAGE, pages, DG_API_MALLOC, DG_RETURN_SLOT());
}

/* The size asked for: a caller that is told of more writes to it, that is into the
 * canary. */
DG_EXPORT size_t malloc_usable_size(void *p)
{
	struct dg_found f;

	if (!p || !dg_hot.shared)
		return 0;
	f = dg_find((uint64_t)p);
	if (f.word && f.object == (uint64_t)p && dg_state(*f.word) == DG_LIVE)
		return f.size;
	dg_bad_pointer((uint64_t)p, DG_AT_SIZE, DG_RETURN_SLOT());
	return 0;
}

DG_EXPORT int malloc_trim(size_t pad)
{
	uint64_t before;

	(void)pad;
	if (!dg_hot.shared || !dg_lock())
		return 0;
	before = dg_kept.bytes;
	dg_kept_trim(0, 0);
	dg_unlock();
	return before != 0;
}

/* Other threads may map more at any time; under the lock the answer has its
 * place in their order. */
static uint64_t dg_bytes_mapped(void)
{
	bool locked = dg_hot.shared && dg_lock();
	uint64_t bytes = dg_hot.bytes;

	if (locked)
		dg_unlock();
	return bytes;
}

/* Bytes mapped for objects; the rest is counted by `diagnose heap`. */
DG_EXPORT struct mallinfo2 mallinfo2(void)
{
	struct mallinfo2 info;

	memset(&info, 0, sizeof(info));
	info.arena = dg_bytes_mapped();
	info.uordblks = info.arena;
	return info;
}

DG_EXPORT struct mallinfo mallinfo(void)
{
	struct mallinfo info;
	uint64_t bytes = dg_bytes_mapped();

	memset(&info, 0, sizeof(info));
	info.arena = bytes > INT32_MAX ? INT32_MAX : (int)bytes;
	info.uordblks = info.arena;
	return info;
}

DG_EXPORT void malloc_stats(void)
{
}

/* Accepted and without effect, as tuning of another allocator is. */
DG_EXPORT int mallopt(int parameter, int value)
{
	(void)parameter;
	(void)value;
	return 1;
}
