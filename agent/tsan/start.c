/* What a program that was built with `diagnose cc` calls at its points. Every
 * executable and library that was linked so has this for itself, and nothing of it
 * is seen outside. Where the program runs by itself, a point does nothing; where it
 * is recorded or replayed, the library that does that counts it. */
#include "tsan.h"

#include <dlfcn.h>

/* Called with every register kept but r11 and the flags: access.S. */
void (*dg_tsan_point)(void) DG_OWN = dg_tsan_nothing;
void (*dg_tsan_within)(void) DG_OWN = dg_tsan_nothing;

/* The first constructors of every file that was compiled so call it. */
__attribute__((constructor(101))) void __tsan_init(void)
{
	static int started;
	void (*point)(void), (*within)(void);

	if (started)
		return;
	started = 1;
	point = (void (*)(void))dlsym(RTLD_DEFAULT, "diagnose_point");
	within = (void (*)(void))dlsym(RTLD_DEFAULT, "diagnose_point_within");
	if (!point || !within) {
		dlerror(); /* the program is not to find what it did not ask for */
		return;
	}
	dg_tsan_point = point;
	dg_tsan_within = within;
}
