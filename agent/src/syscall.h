/* System calls without libc: they work before it is initialised, and leave the
 * errno of the program that called malloc alone. They return what the kernel
 * returns: negative numbers are errors. */
#ifndef DG_SYSCALL_H
#define DG_SYSCALL_H

#include <sys/syscall.h>

static inline long dg_sys(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

#define dg_sys0(nr) dg_sys(nr, 0, 0, 0, 0, 0, 0)
#define dg_sys1(nr, a) dg_sys(nr, (long)(a), 0, 0, 0, 0, 0)
#define dg_sys2(nr, a, b) dg_sys(nr, (long)(a), (long)(b), 0, 0, 0, 0)
#define dg_sys3(nr, a, b, c) dg_sys(nr, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define dg_sys4(nr, a, b, c, d) dg_sys(nr, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define dg_sys5(nr, a, b, c, d, e) dg_sys(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)

#endif
