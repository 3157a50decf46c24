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
 * elided, no size is known, no store to freed memory is dead. */
#ifdef __cplusplus
template <typename T> static inline T *hide(T *p)
{
    __asm__ volatile("" : "+r"(p) : : "memory");
    return p;
}
#else
#define hide(p) \
    ({ \
        __typeof__(p) hidden_ = (p); \
        __asm__ volatile("" : "+r"(hidden_) : : "memory"); \
        hidden_; \
    })
#endif

/* done stands behind a call that must not become a jump, and behind stores
 * that must have happened. */
#define done() __asm__ volatile("" : : : "memory")

#endif
