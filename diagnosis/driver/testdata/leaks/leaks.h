/* A program of this folder loses objects, unless it is called with an argument: then it keeps them. It ends with finish, where a leak checker or the
 * core shows its heap. LOST in its first line has the numbers of direct and of indirect leaks. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fixed;
static void *volatile kept[64];
static volatile int kept_count;

/* lose drops a pointer, or keeps it in the fixed program. */
__attribute__((noinline, unused)) static void lose(void *p)
{
	if (fixed)
		kept[kept_count++] = p;
}

/* wipe overwrites what earlier calls have left below the caller's frame, and in registers. */
__attribute__((always_inline)) static inline void wipe(void)
{
	__asm__ volatile("lea -32768(%%rsp), %%rdi\n mov $4096, %%ecx\n xor %%eax, %%eax\n rep stosq\n xor %%edx, %%edx\n xor %%esi, %%esi\n xor %%edi, %%edi\n"
			 "xor %%r8d, %%r8d\n xor %%r9d, %%r9d\n xor %%r10d, %%r10d\n xor %%r11d, %%r11d" ::
			 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory");
}

#ifdef CHECKED
#ifdef __cplusplus
extern "C"
#endif
int __lsan_do_recoverable_leak_check(void);
#endif

__attribute__((noreturn, noinline, unused)) static void finish(void)
{
	wipe();
#ifdef CHECKED
	__lsan_do_recoverable_leak_check();
	_exit(0);
#else
	abort();
#endif
}
