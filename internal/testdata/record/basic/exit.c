// One thread that ends with a status.
//
// ARGS: 3
// ENDS: exit 3
// EVENTS: syscall 1
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	printf("%d arguments, the last is %s\n", argc, argv[argc - 1]);
	return atoi(argv[1]);
}
