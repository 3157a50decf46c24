// A library that threads.c loads.
// FLAGS: -shared -fPIC
#include <stdatomic.h>

static atomic_long calls;
static long last;

long plugin(long n)
{
	last = n;
	return atomic_fetch_add(&calls, 1) + last;
}
