/* What keeps a compiler from seeing through the bugs of this table. */
#ifndef HIDE_H
#define HIDE_H

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#define PLAIN __attribute__((noinline, optnone))
#else
#define NOINLINE __attribute__((noinline, noipa))
#define PLAIN __attribute__((noinline, optimize(0)))
#endif

/* hide returns its argument as a pointer to who knows what: no allocation is
 * elided, no size is known, no store to freed memory is dead. A macro, because
 * the lines of an inlined function would mix with those of the call. */
#define hide(...) \
    ({ \
        __typeof__(__VA_ARGS__) hidden_ = (__VA_ARGS__); \
        __asm__ volatile("" : "+r"(hidden_) : : "memory"); \
        hidden_; \
    })

/* done comes after a call that must not become a jump, and after stores
 * that must have happened. */
#define done() __asm__ volatile("" : : : "memory")

#endif
