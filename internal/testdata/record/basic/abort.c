// One thread that fails an assertion.
//
// ENDS: SIGABRT
// EVENTS: syscall 1
#include <assert.h>
#include <time.h>

int main(void)
{
	assert(time(NULL) < 0);
	return 0;
}
