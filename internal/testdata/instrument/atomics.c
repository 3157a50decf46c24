// Every atomic operation of C, by C11, by __atomic and by __sync builtins, on all sizes and with all
// orders that each may have: what it returns and what it leaves goes into a sum.
// FLAGS: -mcx16 -w -latomic
#include <stdatomic.h>
#include <stdio.h>

static unsigned long sum;

static void take_long(unsigned long x)
{
	sum = (sum ^ x) * 0x9e3779b97f4a7c15ul + 1;
}

#define take(x) take_long((unsigned long)(x))
#define ORDERS(X) X(relaxed) X(consume) X(acquire) X(release) X(acq_rel) X(seq_cst)
#define LOADS(X) X(relaxed) X(consume) X(acquire) X(seq_cst)
#define STORES(X) X(relaxed) X(release) X(seq_cst)

#define LOAD(o) take(atomic_load_explicit(a, memory_order_##o));
#define STORE(o) \
	atomic_store_explicit(a, *a + 3, memory_order_##o); \
	take(*a);
#define MODIFY(o) \
	take(atomic_exchange_explicit(a, (T)(*a * 5 + 1), memory_order_##o)); \
	take(atomic_fetch_add_explicit(a, 77, memory_order_##o)); \
	take(atomic_fetch_sub_explicit(a, 99, memory_order_##o)); \
	take(atomic_fetch_or_explicit(a, 0x21, memory_order_##o)); \
	take(atomic_fetch_and_explicit(a, (T)~0x8, memory_order_##o)); \
	take(atomic_fetch_xor_explicit(a, 0x55, memory_order_##o)); \
	take(*a);
#define COMPARE(o) \
	c = *a; \
	take(atomic_compare_exchange_strong_explicit(a, &c, (T)(c + 9), memory_order_##o, memory_order_relaxed)); \
	take(atomic_compare_exchange_strong_explicit(a, &c, 1, memory_order_##o, memory_order_relaxed)); \
	take(c); \
	while (!atomic_compare_exchange_weak_explicit(a, &c, (T)(c + 7), memory_order_##o, memory_order_relaxed)) \
		; \
	take(c); \
	c = (T)(*a + 1); \
	take(atomic_compare_exchange_weak_explicit(a, &c, 1, memory_order_##o, memory_order_relaxed)); \
	take(c);

#define SIZE(name, type) \
	static void name(void) \
	{ \
		typedef type T; \
		static _Atomic T object = (T)0x1234567890abcdeful; \
		_Atomic T *a = &object; \
		T c, plain = (T)0xfedcba9876543210ul, *p = &plain; \
		LOADS(LOAD) STORES(STORE) ORDERS(MODIFY) ORDERS(COMPARE) \
		take(++*a), take((*a)--), *a += 3, *a |= 4; \
		take(*a); \
		take(__atomic_fetch_nand(p, (T)0x3c, __ATOMIC_SEQ_CST)), take(__atomic_nand_fetch(p, (T)0x5a, __ATOMIC_RELAXED)); \
		take(__atomic_add_fetch(p, (T)1, __ATOMIC_RELEASE)), take(__atomic_xor_fetch(p, (T)2, __ATOMIC_ACQ_REL)); \
		take(__sync_fetch_and_add(p, (T)5)), take(__sync_sub_and_fetch(p, (T)6)), take(__sync_fetch_and_or(p, (T)7)); \
		take(__sync_fetch_and_nand(p, (T)0x18)), take(__sync_and_and_fetch(p, (T)~0x40)); \
		take(__sync_bool_compare_and_swap(p, plain, (T)11)), take(__sync_val_compare_and_swap(p, (T)11, (T)12)); \
		take(__sync_val_compare_and_swap(p, (T)11, (T)13)), take(__sync_lock_test_and_set(p, (T)14)), take(plain); \
		__sync_lock_release(p); \
		take(plain); \
	}

SIZE(bytes, unsigned char)
SIZE(negative, signed char)
SIZE(shorts, unsigned short)
SIZE(ints, int)
SIZE(longs, unsigned long)

typedef unsigned __int128 wide;

static void take_wide(wide x)
{
	take((unsigned long)x);
	take((unsigned long)(x >> 64));
}

/* The only builtins of 16 bytes that are not calls of libatomic. */
static void wides(void)
{
	static wide object;
	wide *p = &object, big = (wide)0x0123456789abcdef << 64 | 0xfedcba9876543210;

	take_wide(__sync_val_compare_and_swap(p, 0, big));
	take_wide(__sync_fetch_and_add(p, big)), take_wide(__sync_sub_and_fetch(p, 3));
	take_wide(__sync_fetch_and_or(p, (wide)5 << 70)), take_wide(__sync_fetch_and_xor(p, big));
	take_wide(__sync_fetch_and_and(p, ~(wide)0xff)), take_wide(__sync_fetch_and_nand(p, big));
	take(__sync_bool_compare_and_swap(p, object, 4)), take(__sync_bool_compare_and_swap(p, 5, 6));
	take_wide(__sync_lock_test_and_set(p, big));
	take_wide(object);
}

static void others(void)
{
	static atomic_flag flag = ATOMIC_FLAG_INIT;
	static _Atomic(char *) pointer;
	static _Atomic double real = 1.5;
	static _Atomic _Bool yes;
	static char text[8];

	take(atomic_flag_test_and_set(&flag)), take(atomic_flag_test_and_set_explicit(&flag, memory_order_acquire));
	atomic_flag_clear(&flag);
	take(atomic_flag_test_and_set(&flag));
	atomic_store(&pointer, text);
	take((unsigned long)(atomic_fetch_add(&pointer, 3) - text)), take((unsigned long)(pointer - text));
	real += 2.25, real *= 3;
	take((unsigned long)(real * 100));
	take(atomic_exchange(&yes, 1)), take(yes);
#define FENCE(o) atomic_thread_fence(memory_order_##o), atomic_signal_fence(memory_order_##o);
	ORDERS(FENCE)
	__sync_synchronize();
}

int main(void)
{
	bytes(), negative(), shorts(), ints(), longs(), wides(), others();
	printf("%016lx\n", sum);
	return 0;
}
