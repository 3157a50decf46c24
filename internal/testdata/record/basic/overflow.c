// The agent finds an overflow, says so on standard error, which a replay does
// not, and ends the process.
//
// FLAGS: -O0
// ENDS: SIGABRT
// EVENTS: syscall 2
#include <stdlib.h>
#include <string.h>

int main(void)
{
	char *object = malloc(24);

	memset(object, 'x', 32);
	free(object);
	return 0;
}
