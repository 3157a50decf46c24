/* Atomic operations after their points: access.S jumps here. They are the
 * processor's own. All that is left of the memory orders on x86-64 is whether a
 * store is sequentially consistent; every other operation is at least what any
 * order asks for, as it is where a compiler makes the instruction. */
#include "tsan.h"

#define DG_SEQ_CST 5 /* memory_order_seq_cst */

#define DG_FETCH(bits, type, operation) \
	type __tsan_real_atomic##bits##_##operation(volatile type *a, type v, int order) DG_OWN; \
	type __tsan_real_atomic##bits##_##operation(volatile type *a, type v, int order) \
	{ \
		(void)order; \
		return __atomic_##operation(a, v, __ATOMIC_SEQ_CST); \
	}

#define DG_ATOMIC(bits, type) \
	type __tsan_real_atomic##bits##_load(const volatile type *a, int order) DG_OWN; \
	void __tsan_real_atomic##bits##_store(volatile type *a, type v, int order) DG_OWN; \
	type __tsan_real_atomic##bits##_exchange(volatile type *a, type v, int order) DG_OWN; \
	int __tsan_real_atomic##bits##_compare_exchange(volatile type *a, type *c, type v, int order, int failed) DG_OWN; \
	type __tsan_real_atomic##bits##_compare_exchange_val(volatile type *a, type c, type v, int order, int failed) DG_OWN; \
	type __tsan_real_atomic##bits##_load(const volatile type *a, int order) \
	{ \
		(void)order; \
		return __atomic_load_n(a, __ATOMIC_SEQ_CST); \
	} \
	void __tsan_real_atomic##bits##_store(volatile type *a, type v, int order) \
	{ \
		if (order == DG_SEQ_CST) \
			__atomic_store_n(a, v, __ATOMIC_SEQ_CST); \
		else \
			__atomic_store_n(a, v, __ATOMIC_RELEASE); \
	} \
	type __tsan_real_atomic##bits##_exchange(volatile type *a, type v, int order) \
	{ \
		(void)order; \
		return __atomic_exchange_n(a, v, __ATOMIC_SEQ_CST); \
	} \
	int __tsan_real_atomic##bits##_compare_exchange(volatile type *a, type *c, type v, int order, int failed) \
	{ \
		(void)order, (void)failed; \
		return __atomic_compare_exchange_n(a, c, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
	} \
	type __tsan_real_atomic##bits##_compare_exchange_val(volatile type *a, type c, type v, int order, int failed) \
	{ \
		(void)order, (void)failed; \
		__atomic_compare_exchange_n(a, &c, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
		return c; \
	} \
	DG_FETCH(bits, type, fetch_add) \
	DG_FETCH(bits, type, fetch_sub) \
	DG_FETCH(bits, type, fetch_and) \
	DG_FETCH(bits, type, fetch_or) \
	DG_FETCH(bits, type, fetch_xor) \
	DG_FETCH(bits, type, fetch_nand)

DG_ATOMIC(8, unsigned char)
DG_ATOMIC(16, unsigned short)
DG_ATOMIC(32, unsigned int)
DG_ATOMIC(64, unsigned long)

/* Of 16 bytes there is one instruction, which the compiler makes of __sync
 * builtins alone; the others are calls of libatomic, which may use a lock. */
typedef unsigned __int128 dg_wide;

static dg_wide dg_wide_swap(volatile dg_wide *a, dg_wide c, dg_wide v)
{
	return __sync_val_compare_and_swap(a, c, v);
}

dg_wide __tsan_real_atomic128_load(const volatile dg_wide *a, int order) DG_OWN;
dg_wide __tsan_real_atomic128_load(const volatile dg_wide *a, int order)
{
	(void)order;
	return dg_wide_swap((volatile dg_wide *)a, 0, 0);
}

int __tsan_real_atomic128_compare_exchange(volatile dg_wide *a, dg_wide *c, dg_wide v, int order, int failed) DG_OWN;
int __tsan_real_atomic128_compare_exchange(volatile dg_wide *a, dg_wide *c, dg_wide v, int order, int failed)
{
	dg_wide was = dg_wide_swap(a, *c, v);

	(void)order, (void)failed;
	if (was == *c)
		return 1;
	*c = was;
	return 0;
}

dg_wide __tsan_real_atomic128_compare_exchange_val(volatile dg_wide *a, dg_wide c, dg_wide v, int order, int failed) DG_OWN;
dg_wide __tsan_real_atomic128_compare_exchange_val(volatile dg_wide *a, dg_wide c, dg_wide v, int order, int failed)
{
	(void)order, (void)failed;
	return dg_wide_swap(a, c, v);
}

/* becomes: from the value `was` and the argument v. A first guess of *a that is torn
 * is only a guess. */
#define DG_WIDE(operation, becomes) \
	dg_wide __tsan_real_atomic128_##operation(volatile dg_wide *a, dg_wide v, int order) DG_OWN; \
	dg_wide __tsan_real_atomic128_##operation(volatile dg_wide *a, dg_wide v, int order) \
	{ \
		dg_wide was = *a, found; \
		\
		(void)order; \
		while ((found = dg_wide_swap(a, was, becomes)) != was) \
			was = found; \
		return was; \
	}

DG_WIDE(exchange, v)
DG_WIDE(fetch_add, was + v)
DG_WIDE(fetch_sub, was - v)
DG_WIDE(fetch_and, was & v)
DG_WIDE(fetch_or, was | v)
DG_WIDE(fetch_xor, was ^ v)
DG_WIDE(fetch_nand, ~(was & v))

void __tsan_real_atomic128_store(volatile dg_wide *a, dg_wide v, int order) DG_OWN;
void __tsan_real_atomic128_store(volatile dg_wide *a, dg_wide v, int order)
{
	dg_wide was = *a, found;

	(void)order;
	while ((found = dg_wide_swap(a, was, v)) != was)
		was = found;
}

void __tsan_atomic_thread_fence(int order) DG_OWN;
void __tsan_atomic_thread_fence(int order)
{
	if (order == DG_SEQ_CST)
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	else
		__atomic_thread_fence(__ATOMIC_ACQ_REL);
}

void __tsan_atomic_signal_fence(int order) DG_OWN;
void __tsan_atomic_signal_fence(int order)
{
	(void)order;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}
